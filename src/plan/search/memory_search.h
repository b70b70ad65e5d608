// MemorySearch searches plans that fit the memory limit, if the cheapest plan
// does not fit.
//
// A network counts the memory of cached layouts, but not the scratch memory of
// every redistribution. So its solution may exceed the limit. Four procedures
// follow, until one finds a plan that fits:
//   1. a plan of the cost of the cheapest one that takes less memory;
//   2. all plans that cost less than the best one that fits, if they are few;
//   3. networks that reserve the bytes by which the last plan exceeded the
//      limit, by slot;
//   4. networks that bound the scratch of redistributions.
#pragma once

#include "plan/search/network_search.h"

#include <cstdint>
#include <optional>

namespace shardprop {

class MemorySearch {
 public:
  // Precondition: the options of the problem have a memory limit.
  explicit MemorySearch(NetworkSearch& search)
      : search_(search),
        best_(search.incumbent()),
        limit_(*search.problem().options().memory_limit) {}

  // Starts with the last network that the search solved, which does not count
  // memory. Returns the last network that it solved.
  SolvedNetwork run(SolvedNetwork last);

  // Judges the plans that cost less than the best one found so far, once more after
  // the search for overlap. `overlap_multipliers` are those of the best bound.
  // Precondition: a plan was found.
  void judge_rest(const std::vector<std::int64_t>& overlap_multipliers);

 private:
  bool solve(const NetworkOptions& network, const Attempt& attempt);
  bool make_small();
  void fit();
  bool none_is_cheaper();
  bool judge_cheaper(const std::vector<std::int64_t>& overlap_multipliers,
                     std::int64_t expected);
  void reserve_rounds(NetworkOptions& network);
  void reserve(NetworkOptions& network) const;
  bool solve_in_round(const NetworkOptions& network);
  bool fits_in(const NetworkOptions& network);
  void spread();
  bool has_looked_enough() const;
  void look_around(NetworkOptions& network);

  NetworkSearch& search_;
  PlanIncumbent& best_;  // of the search
  std::int64_t limit_;
  SolvedNetwork last_;  // the last one with a solution
  // The network that led to the best plan that fits; null if none did.
  std::optional<NetworkOptions> best_look_;
  bool nothing_there_ = false;  // the last round had no solution
};

}  // namespace shardprop
