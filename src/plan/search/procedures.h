// The search procedures of planning. Each has a line in kPlanProcedures: its
// name and whether it can be switched off (PlanOptions::switched_off).
//
//   search.run(PlanProcedure::kLayerMix, [&] { mix.run(network); });
//
// The procedures of the solver follow them in every list (solver/pass.h).
#pragma once

#include <shardprop/base/procedure.h>
#include <shardprop/plan/plan_options.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/index.h"

namespace shardprop {

enum class PlanProcedure : std::uint8_t {
  kSetUp,
  kEarlierPlan,
  kEqualLayers,
  kRecipePlans,
  kJoinedDims,
  kFreeNetwork,
  kReducedEachTime,
  kSmallPlan,
  kMemoryNetwork,
  kCheaperPlans,
  kReserveRounds,
  kScratchBounds,
  kBestReserve,
  kOverlapMultipliers,
  kLayerMix,
  kLayerResolve,
  kOverlapBranching,
  kMixedPlans,
  kTieBreaking,
  kReplicatedPlan,
  kMinimalConflict,
  kFreeLayersBound,
  kRecipeComparison,
  kReport,
};

struct PlanProcedureRow {
  std::string_view name;
  bool can_be_off = true;
};

// In the order of PlanProcedure.
inline constexpr PlanProcedureRow kPlanProcedures[] = {
    {"set-up", false},        // builds the problem of a space
    {"earlier-plan"},         // the plan of --start-from and plans near it
    {"equal-layers"},         // first plans, in which equal layers are alike
    {"recipe-plans"},         // first plans, which follow a known recipe
    {"joined-dims"},          // first plans, which join mesh dims
    {"free-network", false},  // the full problem without memory
    {"reduced-each-time"},    // plans that reduce all gradients each time
    {"small-plan"},           // another plan of the same cost, with less memory
    {"memory-network"},       // the full problem with memory
    {"cheaper-plans"},        // all plans below the best one that fits, if few
    {"reserve-rounds"},       // reserves the bytes that plans lacked, by slot
    {"scratch-bounds"},       // bounds the scratch of redistributions
    {"best-reserve"},         // the best of these networks, solved again
    {"overlap-multipliers"},  // raises the bound, meets plans on the way
    {"layer-mix"},            // follows known plans layer by layer
    {"layer-resolve"},        // solves single layers of the best mix again
    {"overlap-branching"},    // branches on choices in which two optima differ
    {"mixed-plans"},          // the choices of all plans found
    {"tie-breaking"},         // prefers one of the plans of the same cost
    {"replicated-plan", false},    // the plan without any sharding
    {"minimal-conflict", false},   // the pins that cannot hold together
    {"free-layers-bound"},         // what --layers free could save
    {"recipe-comparison", false},  // the prices of --compare
    {"report", false},             // steps, reasons and alternatives
};

// Returns whether the options leave the procedure on.
bool is_on(PlanProcedure procedure, const PlanDebugging& debugging);
// Returns the names of all procedures that can be switched off, those of the
// solver included.
std::vector<std::string_view> procedures_with_switch();

// Returns the records of the procedures of planning without any run.
std::vector<Procedure> no_runs(const PlanDebugging& debugging);

// Runs `work`, and adds the run and its time to the record of the procedure.
// `records` begins with no_runs().
template <class Work>
auto timed_run(std::vector<Procedure>& records, PlanProcedure procedure,
               Work&& work) {
  struct Timer {
    std::vector<Procedure>& records;
    std::size_t at;
    std::chrono::steady_clock::time_point start;
    ~Timer() {
      ++records[at].runs;
      records[at].seconds += std::chrono::duration<double>(
                                 std::chrono::steady_clock::now() - start)
                                 .count();
    }
  } const timer{records, index(procedure), std::chrono::steady_clock::now()};
  return work();
}

}  // namespace shardprop
