#include "cli/graph_options.h"

#include "base/printable.h"
#include "base/try.h"
#include "ops/schema/foreign_operator.h"

#include <shardprop/request/operator_file.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace shardprop::cli {

namespace {

// Returns whether dim 0 of all tensors, except of scalars, has one size. Only
// then it may be the dim of a batch.
bool has_common_rows(const OpSchema& op) {
  std::optional<std::int64_t> rows;
  const auto has_them = [&](const TensorMeta& meta) {
    if (meta.rank() == 0) return true;
    if (!rows) rows = meta.size(0);
    return meta.size(0) == *rows;
  };
  return std::all_of(op.inputs.begin(), op.inputs.end(), has_them) &&
         std::all_of(op.outputs.begin(), op.outputs.end(), has_them) &&
         rows.has_value();
}

}  // namespace

Option rule_option() {
  return {.name = "--rule",
          .value = "OP=ROW|@FILE",
          .help =
              "how an operator may be sharded, as in "
              "'mylib.swiglu=pointwise()'; OP may be its declaration, "
              "which states what it writes, as in 'my::add_(Tensor(a!) x, "
              "Tensor y) -> ()=pointwise()'; @FILE reads declarations and "
              "rules from a file; repeatable",
          .repeatable = true};
}

std::vector<Option> graph_options() {
  return {{.name = "--bound",
           .value = "NAME=N",
           .help = "a size that depends on data, such as u0; repeatable",
           .repeatable = true},
          {.name = "--size",
           .value = "NAME=N[,NAME=N]",
           .help = "a size by its name: batch, seq, a symbol such as s72, or "
                   "dim 2 of an input as image.2; repeatable",
           .repeatable = true},
          {.name = "--other-size",
           .value = "GRAPH2",
           .help = "the same program exported at other sizes, which shows what "
                   "--size changes; repeatable",
           .repeatable = true,
           .input = input_value},
          {.name = "--blocks",
           .value = "N[,N]",
           .help = "the repeated block of the graph stands for N, so that a "
                   "few layers suffice; a number for each row of blocks"},
          rule_option(),
          {.name = "--program",
           .value = "NAME",
           .help = "which one of a .pt2 that holds several"},
          {.name = "--max-input",
           .value = "BYTES",
           .help = "most to read, after decompression",
           .fallback = "2GiB"}};
}

Result<GraphReading> reading_of(const Arguments& arguments) {
  GraphReading reading;
  SP_ASSIGN(const auto max_input, arguments.bytes("--max-input"));
  reading.max_input_bytes = max_input.value_or(reading.max_input_bytes);
  for (const char* name :
       {"rule", "bound", "size", "other_size", "blocks", "program"}) {
    std::string flag = std::string("--") + name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    for (const std::string& text : arguments.all(flag)) {
      add_option(reading, name, {text, flag + " " + text});
    }
  }
  return reading;
}

Result<std::shared_ptr<const OpLibrary>> library_of(
    const Arguments& arguments) {
  std::vector<GivenText> rules;
  for (const std::string& text : arguments.all("--rule")) {
    rules.push_back({text, "--rule " + text});
  }
  SP_ASSIGN(rules, with_files(std::move(rules)));
  return library_with(rules);
}

void print_notes(const Graph& graph, Console& console) {
  for (const ReadingNote& note : graph.notes()) {
    console.messages << "note: " << printable(to_string(note)) << '\n';
  }
}

std::string rule_hint(const Graph& graph, std::string_view op) {
  // Only shardprop and PyTorch define these operators, so no rule of a user
  // applies.
  if (op.starts_with("aten.") || op.starts_with("prims.") ||
      op.starts_with("shardprop.") || is_functionalized_write(op)) {
    return {};
  }
  const std::string_view base = op.substr(0, op.rfind('.'));
  // The operators inside control flow are not known.
  bool elementwise = !op.starts_with("higher_order.");
  bool has_batch = true;
  for (const Node& node : graph.nodes()) {
    if (node.op_name() != op) continue;
    for (const TensorMeta& output : node.op.outputs) {
      for (const TensorMeta& input : node.op.inputs) {
        elementwise = elementwise &&
                      (input.shape() == output.shape() || input.rank() == 0);
      }
    }
    elementwise = elementwise && !node.op.inputs.empty();
    has_batch = has_batch && has_common_rows(node.op);
  }
  if (!elementwise && !has_batch) {
    return fmt::format(
        "--rule '{}=RULE' states which dims may be sharded, for example in "
        "factor notation such as mk,kn->mn (docs/ops.md)",
        base);
  }
  return fmt::format("--rule '{}={}' says that {}", base,
                     elementwise ? "pointwise()" : "batch(0)",
                     elementwise ? "it treats every element alike"
                                 : "dim 0 of its tensors may be cut");
}

}  // namespace shardprop::cli
