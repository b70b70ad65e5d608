#include <shardprop/request/saved_plan.h>

#include "base/try.h"
#include "io/inflate.h"
#include "io/input_file.h"

#include <shardprop/report/plan_json.h>

#include <map>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

Error made_for_other(const SavedPlanUse& use, const char* what,
                     std::vector<std::string> notes, const char* help) {
  return {ErrorCode::kPlanOtherGraph,
          std::string("the plan was made for another ") + what, use.place,
          std::move(notes), help};
}

// Finds the operators without a strategy in the graph.
std::vector<UnsupportedOp> found_unsupported(const Graph& graph,
                                             const OpLibrary& library) {
  std::map<std::string, UnsupportedOp> by_op;
  for (const Node& node : graph.nodes()) {
    if (node.outputs.empty()) continue;
    const auto space = library.index_space(node.op);
    if (space) continue;
    UnsupportedOp& entry = by_op[node.op_name()];
    entry.op = node.op_name();
    entry.reason = space.error().message;
    ++entry.count;
  }
  std::vector<UnsupportedOp> out;
  out.reserve(by_op.size());
  for (auto& [name, entry] : by_op) out.push_back(std::move(entry));
  return out;
}

// Checks that a saved plan belongs to the graph, and to the mesh if one is given.
Result<void> check_belongs(const Plan& plan, const SavedPlanUse& use,
                           const Graph& graph) {
  const std::string hash = hash_text(graph.hash());
  if (plan.graph_hash != hash) {
    return fail(made_for_other(
        use, "graph",
        {"plan: " + plan.graph_name + " " + plan.graph_hash,
         "graph: " + graph.name() + " " + hash},
        "give the graph it was made for, or plan anew without --plan"));
  }
  if (!use.mesh || *use.mesh == plan.mesh) return {};
  return fail(made_for_other(
      use, "mesh",
      {"plan: " + to_string(plan.mesh), "--mesh: " + to_string(*use.mesh)},
      "leave out --mesh"));
}

Result<void> check_supported(const Plan& plan, const SavedPlanUse& use) {
  if (!use.strict || plan.unsupported.empty()) return {};
  const UnsupportedOp& first = plan.unsupported.front();
  return fail(
      Error{ErrorCode::kNoStrategy,
            "`" + first.op + "` runs replicated in this plan: " + first.reason,
            use.place,
            {},
            "make a plan with a rule for it, or leave out --strict"});
}

Error in_file(Error error, const SavedPlanUse& use) {
  error.location =
      error.location.empty() ? use.place : use.place + " " + error.location;
  return error;
}

// Returns the plan with its figures as the use requires them.
Result<JudgedPlan> judged(Plan plan, const SavedPlanUse& use,
                          const Graph& graph, const OpLibrary& library) {
  // A plan of schema 1 lacks fields that judging needs.
  if (!use.is_judged || plan.is_proof_given) {
    auto options = options_of(plan);
    if (!options) return fail(in_file(std::move(options).error(), use));
    plan.is_proof_given = true;
    plan.unsupported = found_unsupported(graph, library);
    return JudgedPlan{std::move(plan), {}, {}};
  }
  Result<JudgedPlan> judged = judge_plan(plan, graph, library);
  if (judged) return judged;
  return fail(in_file(std::move(judged).error(), use));
}

}  // namespace

Result<Plan> load_plan(
    const std::string& path, const std::string& place,
    std::int64_t max_input_bytes,
    std::optional<std::chrono::steady_clock::time_point> deadline) {
  auto text = read_file(path, max_input_bytes, deadline);
  if (text && is_gzip(*text)) text = inflate_gzip(*text, max_input_bytes);
  if (!text) {
    Error error = std::move(text).error();
    if (error.code != ErrorCode::kStopped) error.code = ErrorCode::kPlanFile;
    error.location = place;
    return fail(std::move(error));
  }
  Result<Plan> plan = parse_plan_json(*text);
  if (!plan) return fail(std::move(plan).error().at(place));
  return plan;
}

Result<JudgedPlan> take_plan(Plan saved, const SavedPlanUse& use,
                             const Graph& graph, const OpLibrary& library) {
  SP_CHECK(check_belongs(saved, use, graph));
  SP_ASSIGN(JudgedPlan taken, judged(std::move(saved), use, graph, library));
  SP_CHECK(check_supported(taken.plan, use));
  return taken;
}

}  // namespace shardprop
