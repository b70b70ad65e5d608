// `Pass` lists the passes and the search procedures of the solver by name. Each
// can be switched off, and each has a record of its runs (Solution::procedures).
//
//   SolveOptions options;
//   options.passes.disable(Pass::kDominance);
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardprop::solver {

enum class Pass : std::uint8_t {
  kArcConsistency,    // removes choices without support or over a limit
  kContraction,       // merges variables that determine each other
  kSeparableEdges,    // moves tables f(a) + g(b) into unary costs
  kDominance,         // removes choices that another choice dominates
  kLowDegree,         // eliminates variables of degree 0, 1 and 2
  kElimination,       // eliminates other variables while tables stay small
  kDualBound,         // message passing with Lagrange multipliers on memory
  kBranchAndBound,    // exhaustive search below the dual bound
  kLocalSearch,       // re-solves forests of variables exactly
  kLateElimination,   // elimination once the search has worked as long
  kFrontElimination,  // elimination along one front, pruned by the dual bound
  kProbing,           // elimination of what may cost less than a target
  kExtrapolation,     // repeats the last changes of the dual bound's messages
  kRecombination,     // combines two assignments of the local search
};

inline constexpr std::size_t kNumPasses = 14;

// Returns the name as text, such as "arc-consistency".
std::string_view pass_name(Pass pass);
std::optional<Pass> parse_pass(std::string_view name);

// `PassSet` is the set of enabled passes; all are enabled by default. Late
// elimination, front elimination and probing also need kElimination,
// extrapolation needs kDualBound, and recombination needs kLocalSearch.
class PassSet {
 public:
  bool enabled(Pass pass) const {
    return !off_[static_cast<std::size_t>(pass)];
  }
  void disable(Pass pass) { off_.set(static_cast<std::size_t>(pass)); }
  void enable(Pass pass) { off_.reset(static_cast<std::size_t>(pass)); }

 private:
  std::bitset<kNumPasses> off_;
};

}  // namespace shardprop::solver
