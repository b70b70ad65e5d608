#include "cli/graph_options.h"

#include "base/parse_int.h"
#include "base/printable.h"
#include "base/try.h"
#include "ops/foreign_operator.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/ops/rule_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace shardprop::cli {
namespace {

Error said_twice(const std::string& option, const std::string& name,
                 const std::string& place) {
  return {ErrorCode::kInvalidArgument,
          option + " is given twice for `" + name + "`",
          place,
          {},
          "give it once"};
}

bool is_named(std::string_view op, std::string_view rule) {
  return op == rule || (op.starts_with(rule) && op.size() > rule.size() &&
                        op[rule.size()] == '.');
}

// The sizes of --bound or --size, by name.
Result<std::map<std::string, std::int64_t>> sizes_of(
    const std::vector<Said>& given, const std::string& option) {
  std::map<std::string, std::int64_t> sizes;
  for (const auto& [text, place] : given) {
    const std::size_t equals = text.find('=');
    const auto value =
        equals == std::string::npos
            ? std::nullopt
            : parse_int(std::string_view(text).substr(equals + 1));
    if (!value || *value < 0 || equals == 0) {
      return fail(Error{ErrorCode::kInvalidArgument,
                        (option == "--bound" ? "a bound" : "a size") +
                            std::string(" is written NAME=N, N a size"),
                        place,
                        {},
                        option == "--bound" ? "as in --bound u0=128"
                                            : "as in --size batch=64,s1=128"});
    }
    const std::string name = text.substr(0, equals);
    if (!sizes.emplace(name, *value).second) {
      return fail(said_twice(option, name, place));
    }
  }
  return sizes;
}

// If the program refuses a bound or size, the error has the user's place.
Error at_given_size(Error error, const GraphReading& reading) {
  for (const auto& [text, place] : reading.bounds) {
    if (error.location.ends_with("bound " + text)) error.location = place;
  }
  for (const auto& [text, place] : reading.sizes) {
    if (error.location.ends_with("size " + text)) error.location = place;
  }
  return error;
}

}  // namespace

std::vector<Option> graph_options() {
  return {{.name = "--bound",
           .value = "NAME=N",
           .help = "a size that depends on data, such as u0; repeatable",
           .repeatable = true},
          {.name = "--size",
           .value = "NAME=N[,NAME=N]",
           .help = "a symbolic size by its name, such as s72, or batch, seq; "
                   "repeatable",
           .repeatable = true},
          {.name = "--rule",
           .value = "OP=ROW",
           .help = "how an operator may be sharded, as in "
                   "'mylib.swiglu=pointwise()'; OP may be its declaration, "
                   "which states what it writes, as in 'my::add_(Tensor(a!) x, "
                   "Tensor y) -> ()=pointwise()'; repeatable",
           .repeatable = true},
          {.name = "--program",
           .value = "NAME",
           .help = "which one of a .pt2 that holds several"},
          {.name = "--max-input",
           .value = "BYTES",
           .help = "most to read, after decompression",
           .fallback = "2GiB"}};
}

Result<std::shared_ptr<const OpLibrary>> library_of(
    const GraphReading& reading) {
  std::shared_ptr<const OpLibrary> library = OpLibrary::standard();
  std::set<std::string> ruled;
  for (const auto& [text, place] : reading.rules) {
    const std::string op = operator_of(text);
    if (text.find('=') == std::string::npos ||
        op.find('.') == std::string::npos) {
      return fail(Error{ErrorCode::kInvalidArgument,
                        "a rule is written OP=ROW or DECLARATION=ROW",
                        place,
                        {},
                        "as in --rule 'mylib.swiglu=pointwise()'"});
    }
    if (!ruled.insert(op).second) {
      return fail(said_twice("--rule", op, place));
    }
    auto definition = parse_rule(row_of(text));
    if (!definition) return fail(std::move(definition).error().at(place));
    OpLibrary::Addition addition;
    addition.declaration = declaration_of(text);
    if (addition.declaration.empty()) addition.name = op;
    addition.definition = *std::move(definition);
    addition.note = "by --rule";
    SP_ASSIGN(library, placed(library->with(std::move(addition)), place));
  }
  return library;
}

Result<void> check_rules(const GraphReading& reading, const Graph& graph) {
  for (const auto& [text, place] : reading.rules) {
    const std::string op = operator_of(text);
    const auto& nodes = graph.nodes();
    const auto found =
        std::find_if(nodes.begin(), nodes.end(), [&](const Node& node) {
          return is_named(node.op_name(), op);
        });
    if (found != nodes.end() && !declaration_of(text).empty() &&
        found->op.function->has_tag("undeclared")) {
      return fail(Error{ErrorCode::kInvalidArgument,
                        "the graph was read without the declaration of `" + op +
                            "`",
                        place,
                        {},
                        "give the rule when the graph is read: "
                        "load_graph(source, rules=...)"});
    }
    if (found == nodes.end()) {
      return fail(Error{ErrorCode::kInvalidArgument,
                        "`" + op + "` is not an operator of the graph",
                        place,
                        {},
                        "shardprop ops --supported lists its operators"});
    }
  }
  return {};
}

Result<Graph> graph_of(const Arguments& arguments, const std::string& path,
                       const GraphReading& reading, const OpLibrary& library) {
  SP_ASSIGN(const auto max_input, arguments.bytes("--max-input"));
  LoadOptions load;
  load.max_input_bytes = *max_input;
  load.program = reading.program.text;
  load.deadline = reading.deadline;
  SP_ASSIGN(load.bounds, sizes_of(reading.bounds, "--bound"));
  SP_ASSIGN(load.sizes, sizes_of(reading.sizes, "--size"));
  Result<Graph> loaded = load_graph(path, library, load);
  if (!loaded) return fail(at_given_size(std::move(loaded).error(), reading));
  Graph graph = *std::move(loaded);
  SP_CHECK(check_rules(reading, graph));
  return graph;
}

void print_notes(const Graph& graph, Console& console) {
  for (const std::string& note : graph.notes()) {
    console.messages << "note: " << printable(note) << '\n';
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
  for (const Node& node : graph.nodes()) {
    if (node.op_name() != op) continue;
    for (const TensorMeta& output : node.op.outputs) {
      for (const TensorMeta& input : node.op.inputs) {
        elementwise = elementwise &&
                      (input.shape() == output.shape() || input.rank() == 0);
      }
    }
    elementwise = elementwise && !node.op.inputs.empty();
  }
  return fmt::format("--rule '{}={}' says that {}", base,
                     elementwise ? "pointwise()" : "batch(0)",
                     elementwise ? "it treats every element alike"
                                 : "dim 0 of its tensors may be cut");
}

}  // namespace shardprop::cli
