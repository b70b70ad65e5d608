#include "cli/graph_options.h"
#include "commands.h"

#include "base/printable.h"
#include "base/quantities.h"
#include "base/try.h"
#include "io/json_text.h"

#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_proofs.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace shardprop::cli {
namespace {

struct CatalogueRow {
  std::string op;
  std::string family;
  std::string rule;
  std::string proof;
  std::string note;
};

// Lists every operator with a definition, including the overloads that derive
// from one.
std::vector<CatalogueRow> catalogue(const OpLibrary& library) {
  std::vector<CatalogueRow> rows;
  for (const std::string& name : library.names()) {
    const auto function = library.find(name);
    const OpRow* row = library.row(*function);
    if (row == nullptr) continue;
    std::string note = row->note;
    if (library.form(*function) != nullptr && row->name != name) {
      if (note.empty()) {
        note = "derived from the functional overload";
      } else {
        note.insert(0, "derived; ");
      }
    }
    if (const auto why = op_unproven_reason(name); !why.empty()) {
      note +=
          (note.empty() ? "not proven: " : "; not proven: ") + std::string(why);
    }
    rows.push_back({name, row->family, row->definition.summary(),
                    std::string(op_proof(name)), std::move(note)});
  }
  // A rule of the user may be of an operator that nothing declares.
  for (const OpRow* row : library.rows()) {
    const bool is_declared = library.find(row->name) != nullptr ||
                             !library.overloads(row->name).empty();
    if (row->family != "user" || is_declared) continue;
    rows.push_back(
        {row->name, row->family, row->definition.summary(), {}, row->note});
  }
  return rows;
}

void print_catalogue(const std::vector<CatalogueRow>& rows, bool json,
                     Console& console) {
  if (json) {
    JsonText text(JsonText::Form::kIndented);
    text.list(rows, [&](const CatalogueRow& row) {
      text.open('{').member("op", row.op).member("family", row.family);
      text.member("rule", row.rule).member("proof", row.proof);
      text.member("note", row.note).close('}');
    });
    console.data << text.take() << '\n';
    return;
  }
  std::size_t width = 0;
  for (const CatalogueRow& row : rows) width = std::max(width, row.op.size());
  for (const CatalogueRow& row : rows) {
    console.data << fmt::format("{:<{}}  {:<12} {:<9} {}{}{}\n", row.op, width,
                                row.family, row.proof, row.rule,
                                row.note.empty() ? "" : "   # ", row.note);
  }
  console.data << counted(rows.size(), "operator") << '\n';
}

struct Usage {
  std::int64_t count = 0;
  std::string why_not;  // empty if there is a strategy
};

// Counts the operators of the graph. An operator is supported if each of its
// applications has strategies; a rule for its name is not enough.
std::map<std::string, Usage> usage_of(const Graph& graph,
                                      const OpLibrary& library) {
  std::map<std::string, Usage> used;
  for (const Node& node : graph.nodes()) {
    Usage& entry = used[node.op_name()];
    ++entry.count;
    if (node.outputs.empty() || !entry.why_not.empty()) continue;
    if (auto space = library.index_space(node.op); !space) {
      entry.why_not = space.error().message;
    }
  }
  return used;
}

Result<int> print_supported(const Arguments& arguments, Console& console) {
  SP_ASSIGN(GraphReading reading, reading_of(arguments));
  SP_ASSIGN(const LoadedGraph loaded,
            load_graph(arguments.get("--supported"), std::move(reading)));
  const Graph& graph = *loaded.graph;
  print_notes(graph, console);
  const auto used = usage_of(graph, *loaded.library);
  const bool all = std::all_of(used.begin(), used.end(), [](const auto& entry) {
    return entry.second.why_not.empty();
  });
  if (arguments.get("--format") == "json") {
    JsonText json(JsonText::Form::kIndented);
    json.open('[');
    for (const auto& [op, usage] : used) {
      json.open('{').member("op", op).member("count", usage.count);
      json.member("supported", usage.why_not.empty());
      json.member("note", usage.why_not).close('}');
    }
    console.data << json.close(']').take() << '\n';
  } else {
    for (const auto& [op, usage] : used) {
      console.data << fmt::format(
          "{:>6}  {:<4} {}{}{}\n", usage.count,
          usage.why_not.empty() ? "yes" : "NO", printable(op),
          usage.why_not.empty() ? "" : "   # ", printable(usage.why_not));
    }
    console.data << fmt::format(
        "{} in {}, {}\n", counted(used.size(), "operator"),
        counted(graph.nodes().size(), "node"),
        all ? "all with strategies" : "not all with strategies");
  }
  return all ? kDone : kUnsupported;
}

Result<int> run_ops(const Arguments& arguments, Console& console) {
  if (arguments.has("--supported")) return print_supported(arguments, console);
  SP_ASSIGN(const auto library, library_of(arguments));
  print_catalogue(catalogue(*library), arguments.get("--format") == "json",
                  console);
  return kDone;
}

}  // namespace

Command ops_command() {
  std::vector<Option> options = {
      {.name = "--supported",
       .value = "GRAPH",
       .help = "what this graph uses, how often, and whether it has "
               "strategies; exit 4 if anything has none",
       .input = input_value}};
  for (Option& option : graph_options()) options.push_back(std::move(option));
  options.push_back(format_option());
  options.push_back(output_option());
  return {.name = "ops",
          .summary = "the operators with a sharding rule",
          .example = "shardprop ops --supported model.pt2",
          .options = std::move(options),
          .run = run_ops};
}

}  // namespace shardprop::cli
