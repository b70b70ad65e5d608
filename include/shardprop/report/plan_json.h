// This header writes a Plan as JSON in the stable form `shardprop.plan/3`, and
// reads it. docs/schema/plan-3.schema.json is the JSON Schema of the form.
//
//   parse_plan_json(plan_to_json(plan)) == plan
//
// Times are microseconds, exact to the nanosecond. Placements are one text per
// mesh dim. summary.compute_us is the sum of the compute_us of nodes, including
// updates, and of the cut_us of copies. Readers must ignore unknown keys.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/plan/plan.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace shardprop {

// The schemas that can be read, by number. Plans are written in the last one.
inline constexpr std::string_view kPlanSchemas[] = {
    "shardprop.plan/1", "shardprop.plan/2", "shardprop.plan/3"};
inline constexpr std::string_view kPlanSchema = kPlanSchemas[2];
// Phase of the optimizer's nodes, which follow the graph's.
inline constexpr std::string_view kUpdatePhase = "optimizer";
// The phase of a node that runs again; `of` names the node of the first run.
inline constexpr std::string_view kSecondRunPhase = "recompute";

// `RankForm` is the form of numbers that differ between ranks (`local_args`,
// and `per_rank` in `local_program`). Both forms can be read.
enum class RankForm : std::uint8_t {
  kEachRank,  // [[8,4],[8,4],[7,4],[7,4]]: per rank, in mesh order
  // {"mesh_dims":["dp"],"values":[[8,4],[7,4]]}: per coordinate on the mesh
  // dims on which they depend; the last dim varies fastest. This form suits
  // thousands of ranks.
  kByDim,
};

// Returns the text, which ends in a newline.
std::string plan_to_json(const Plan& plan, RankForm form = RankForm::kEachRank);

// Reads a plan and checks that it is consistent: indices, layouts against the
// mesh, totals against their terms.
//
// Schemas 1 and 2 have reasons and notes as texts, which are read as kReported
// and ReportedNote. Schema 1 also lacks local runs, the layouts between the steps of a copy, the views
// of copies, the optimizer's nodes and the topology's figures. A plan of schema
// 1 is read as written and is never reported as optimal.
//
// Errors: kPlanFile, with the JSON path; kPlanSchemaVersion.
Result<Plan> parse_plan_json(std::string_view text);

}  // namespace shardprop
