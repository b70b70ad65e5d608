// Fuzzes saved plans. A plan that is read must print as text, page, graph and
// timeline, and as JSON that reads back as the same plan. Schema 1 lacks some
// fields, so the test does not write such a plan as JSON. It judges the other
// plans against the graph of the seeds.
#include "fuzz_input.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/judge_plan.h>
#include <shardprop/report/plan_dot.h>
#include <shardprop/report/plan_html.h>
#include <shardprop/report/plan_json.h>
#include <shardprop/report/plan_text.h>
#include <shardprop/report/plan_trace.h>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

void judge(const Plan& plan) {
  static const auto library = OpLibrary::standard();
  static const Graph graph =
      load_graph(SHARDPROP_FUZZ_FOLDER
                 "/../../examples/graphs/tiny/mlp_dynamic.json.gz",
                 *library)
          .value();
  // More takes longer than a fuzzer waits.
  if (plan.mesh.ndim() > 3 || plan.mesh.size() > 64) return;
  const Result<JudgedPlan> judged = judge_plan(plan, graph, *library);
  if (!judged) return require_reason(judged);
  require(!plan_to_text(judged->plan).empty());
  require(!judged->differences.empty() ||
          judged->plan.objective_nanoseconds == plan.objective_nanoseconds);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text = as_text(data, size);
  const Result<Plan> plan = parse_plan_json(text);
  if (!plan) {
    require_reason(plan);
    return 0;
  }
  require(!plan_to_text(*plan).empty());
  require(!plan_to_html(*plan).empty());
  require(!plan_to_dot(*plan).empty());
  require(!plan_to_trace(*plan).empty());
  if (text.find(kPlanSchemas[0]) != std::string_view::npos) return 0;
  const Result<Plan> again = parse_plan_json(plan_to_json(*plan));
  require(again.has_value() && *again == *plan);
  judge(*plan);
  return 0;
}
