// A Plan as JSON, in the stable form `shardprop.plan/2`, and back.
//
//   parse_plan_json(plan_to_json(plan)) == plan
//
// Times are microseconds, exact to the nanosecond; placements one text per mesh
// dim. summary.compute_us is the sum of the compute_us of nodes, updates
// included, and of the cut_us of copies. Readers must pass over keys they do not know.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/plan/plan.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace shardprop {

inline constexpr std::string_view kPlanSchema = "shardprop.plan/2";
inline constexpr std::string_view kFirstPlanSchema = "shardprop.plan/1";
// The phase of the optimizer's nodes, which stand behind the graph's.
inline constexpr std::string_view kUpdatePhase = "optimizer";

// How numbers are written in which the ranks differ (`local_args`, and
// `per_rank` in `local_program`). Both are read.
enum class RankForm : std::uint8_t {
  kEachRank,  // [[8,4],[8,4],[7,4],[7,4]], one of each rank in mesh order
  // {"mesh_dims":["dp"],"values":[[8,4],[7,4]]}: one of each coordinate on the
  // mesh dims that they depend on, the last fastest. For thousands of ranks.
  kByDim,
};

// Ends in a newline.
std::string plan_to_json(const Plan& plan, RankForm form = RankForm::kEachRank);

// Everything a plan says is checked against itself: indices, layouts against
// the mesh, totals against what they sum.
//
// Schema 1 is read as what the file says: it lacks local runs, the layouts
// between the steps of a copy, the views behind copies, the optimizer's nodes
// and the topology's figures, and is never called optimal.
//
// Errors: kPlanFile, with the JSON path; kPlanSchemaVersion.
Result<Plan> parse_plan_json(std::string_view text);

}  // namespace shardprop
