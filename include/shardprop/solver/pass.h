// The passes of the solver by name: each can be switched off, and each reports
// how often it ran and for how long.
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
  kArcConsistency,  // choices without support, or that overflow a row alone
  kContraction,     // variables that determine each other become one
  kSeparableEdges,  // tables f(a) + g(b) move into unary costs
  kDominance,       // a choice that costs and uses no less than another goes
  kLowDegree,       // variables of degree 0, 1 and 2 are eliminated
  kElimination,     // the rest is eliminated where tables stay small
  kDualBound,       // message passing with Lagrange prices on memory rows
  kBranchAndBound,  // exhaustive search below the dual bound
  kLocalSearch,     // forests of variables re-solved under local prices
};

inline constexpr std::size_t kNumPasses = 9;

// "arc-consistency".
std::string_view pass_name(Pass pass);
std::optional<Pass> parse_pass(std::string_view name);

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

struct PassStats {
  Pass pass = Pass::kArcConsistency;
  std::uint64_t runs = 0;
  double seconds = 0;  // of all threads
};

}  // namespace shardprop::solver
