// Assignments made and bettered by looking at one variable and its neighbours.
#pragma once

#include "plan/local_prices.h"

#include <shardprop/plan/plan_problem.h>

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace shardprop {

// When to stop: a wall clock that is read between rounds, and a count of
// variables looked at, times their choices.
class SearchBudget {
 public:
  explicit SearchBudget(const PlanOptions& options);
  void spend(std::size_t choices) {
    work_ -= static_cast<std::int64_t>(choices);
  }
  bool spent() const;

 private:
  std::chrono::steady_clock::time_point end_;
  std::int64_t work_;
};

class LocalSearch {
 public:
  LocalSearch(const PlanProblem& problem, SearchBudget& budget)
      : problem_(problem), budget_(budget), prices_(problem, choices_) {}

  const std::vector<std::uint32_t>& choices() const { return choices_; }
  void set_choices(std::vector<std::uint32_t> choices) {
    choices_ = std::move(choices);
  }
  LocalPrices& prices() { return prices_; }

  // In schedule order, each the least it costs with one edge looked ahead.
  // `start` decides variables beforehand. What a node takes from an undecided
  // input is what the input becomes.
  void greedy(const std::vector<std::uint32_t>& start);

  // Every variable anew given its neighbours, forwards and backwards, until
  // nothing changes. Never makes the assignment cost more.
  void improve();

  // For each copy: its value is made as the copy is, or its users take the
  // value as it is made, and neighbours follow as long as that costs them
  // nothing. Kept where all of it together costs less. Moves the border between
  // two layouts through any number of operators, which no single one can.
  void spread_copies();

 private:
  struct Change {
    PlanVariableId variable;
    std::uint32_t before;
  };

  bool decide(PlanVariableId id);
  void follow(PlanVariableId maker, LayoutId wanted);
  template <class Function>
  void for_neighbours(PlanVariableId id, const Function& function) const;

  bool spread(PlanVariableId seed, std::size_t operand, LayoutId layout);
  bool spread_value(ValueId value);
  std::int64_t move(PlanVariableId id, std::uint32_t choice, std::int64_t price,
                    std::vector<Change>& changes);

  const PlanProblem& problem_;
  SearchBudget& budget_;
  std::vector<std::uint32_t> choices_;
  LocalPrices prices_;
  std::vector<std::uint32_t> moved_in_;  // by variable: the spread it moved in
  std::uint32_t spread_number_ = 0;
};

}  // namespace shardprop
