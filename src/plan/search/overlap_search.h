// OverlapSearch searches plans in which a window has more overlappable time than
// compute (windows.h). These windows couple all operators of a phase to all its
// transfers.
//
// It starts from a plan that was found with overlappable time free, and takes
// three steps:
//   1. overlap multipliers raise the bound and lead to plans with more and
//      with less overlappable time than compute (overlap_multipliers.h);
//   2. mixes of these plans follow them layer by layer (layer_mix.h), unless
//      equal layers choose alike;
//   3. branches with multipliers of their own close the rest of the gap, unless
//      the network is large (overlap_branching.h).
#pragma once

#include "plan/problem/equal_choices.h"
#include "plan/search/layer_mix.h"
#include "plan/search/network_search.h"
#include "plan/search/overlap_branching.h"
#include "plan/search/overlap_multipliers.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop {

class OverlapSearch {
 public:
  // `network` describes the network in which the best plan was found. `settles`
  // states whether to spend time on the last part of the gap. Precondition: the
  // search has a plan.
  OverlapSearch(NetworkSearch& search, NetworkOptions network, bool settles)
      : search_(search),
        best_(search.incumbent()),
        network_(std::move(network)),
        settles_(settles),
        mixes_(!search.problem().equal_choices().have_layers()),
        mix_(search),
        branching_(search) {}

  // Starts with the last network that the search solved, and with the overlap
  // multipliers of `network` (0 if it has none). The last network may have
  // other variables than `network`. Returns the overlap multipliers that gave the
  // best bound, by load of an overlap window (window_loads.h). Empty if no plan
  // has exposed time.
  std::vector<std::int64_t> run(SolvedNetwork last);

  // The cost of the cheapest plan found in which equal layers have the same
  // layouts; empty if there is none.
  std::optional<std::int64_t> uniform() const { return uniform_; }

 private:
  void price();
  void raise_bound(OverlapMultipliers& prices, double enough_gap);
  // Solves the network without restriction, and notes its solution. Returns
  // whether there is one.
  bool solve(const Attempt& attempt);
  void note();
  void note_uniform();
  bool is_close() const;
  bool takes_long() const;

  NetworkSearch& search_;
  PlanIncumbent& best_;
  NetworkOptions network_;
  SolvedNetwork last_;  // the last solution without restriction
  bool settles_;
  bool mixes_;  // whether layers may follow different plans
  LayerMix mix_;
  OverlapBranching branching_;
  std::optional<std::int64_t> uniform_;
};

}  // namespace shardprop
