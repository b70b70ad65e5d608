#include "cli/graph_options.h"
#include "cli/graph_plan.h"
#include "cli/plan_file.h"
#include "cli/plan_options.h"
#include "commands.h"

#include "base/printable.h"
#include "base/try.h"

#include <shardprop/report/plan_dot.h>
#include <shardprop/report/plan_html.h>
#include <shardprop/report/plan_text.h>
#include <shardprop/report/plan_trace.h>
#include <shardprop/report/procedure_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace shardprop::cli {
namespace {

void warn_of_unsupported(const Plan& plan, const Graph& graph,
                         Console& console) {
  for (const UnsupportedOp& op : plan.unsupported) {
    console.messages << fmt::format(
        "warning: `{}` runs replicated ({} of them): {}\n", printable(op.op),
        op.count, printable(op.reason));
    if (const std::string hint = rule_hint(graph, op.op); !hint.empty()) {
      console.messages << "   = help: " << printable(hint) << '\n';
    }
  }
}

// Whether the format shows the notes of a plan, which has those of its graph.
bool shows_notes(const Plan& plan, const std::string& format) {
  return format == "json" ||
         (plan.has_plan() && (format == "text" || format == "html"));
}

void tell_of_pins(const Plan& plan, Console& console) {
  for (const PlanPin& pin : plan.pins) {
    if (pin.pinned == pin.matched) continue;
    console.messages << fmt::format(
        "note: --pin '{}' pins {} of the {} values that it matches; the "
        "placements do not fit the others\n",
        printable(to_string(pin.pin)), pin.pinned, pin.matched);
  }
}

std::string written(const Plan& plan, const Arguments& arguments) {
  const std::string format = arguments.get("--format");
  if (format == "json") return saved_plan(plan, arguments);
  if (format == "html") return plan_to_html(plan);
  if (format == "dot") return plan_to_dot(plan);
  if (format == "perfetto") return plan_to_trace(plan);
  return plan_to_text(plan, {.detail = arguments.has("--detail"),
                             .statistics = arguments.has("--statistics")});
}

Result<int> run_explain(const Arguments& arguments, Console& console) {
  SP_ASSIGN(const GraphPlan given,
            graph_plan(arguments, console, {.next = WithPlan::kOutput}));
  const Plan& plan = given.plan;
  warn_of_differences(given, console);
  if (!shows_notes(plan, arguments.get("--format"))) {
    print_notes(*given.graph, console);
  }
  warn_of_unsupported(plan, *given.graph, console);
  tell_of_pins(plan, console);
  if (arguments.has("--statistics") && arguments.get("--format") != "text") {
    console.messages << procedures_to_text(plan.procedures,
                                           CostUnit::kNanoseconds);
  }
  console.data << written(plan, arguments);
  return plan.has_plan() && given.differences.empty() ? kDone : kFinding;
}

}  // namespace

Command explain_command() {
  std::vector<Option> options = graph_plan_options();
  options.push_back({.name = "--detail",
                     .help = "every module and every redistribution, with its "
                             "reason; else about a screen"});
  options.push_back({.name = "--statistics",
                     .help = "every search procedure with its clock, work and "
                             "gain; as messages unless the format is text"});
  options.push_back(local_args_option());
  options.push_back(format_option({"text", "json", "html", "dot", "perfetto"}));
  options.push_back(output_option());
  return {.name = "explain",
          .summary = "plan a graph on a mesh and say why",
          .example = "shardprop explain model.pt2 --mesh dp=2,tp=4",
          .options = std::move(options),
          .run = run_explain};
}

}  // namespace shardprop::cli
