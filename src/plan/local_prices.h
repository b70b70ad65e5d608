// What the choices of one variable cost, given what its neighbours chose.
//
// The price of a choice is its own cost, what its uses add to the copies that
// there are, and the copies of what it makes. Undecided makers ask nothing; of
// undecided users the cheapest way to take each layout is counted. The
// difference of two prices is the difference the change makes to the objective.
// Prices of kUnreachable and more are not possible.
#pragma once

#include <shardprop/plan/plan_problem.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace shardprop {

inline constexpr std::uint32_t kUndecided = 0xffffffffU;

class LocalPrices {
 public:
  // `choices` by variable, kUndecided allowed; watched, not copied.
  LocalPrices(const PlanProblem& problem,
              const std::vector<std::uint32_t>& choices)
      : problem_(problem), choices_(choices) {}

  // Looks at one variable. The rest is about that variable until the next call
  // or until a choice of a neighbour changes.
  void look_at(PlanVariableId variable);

  std::int64_t price(std::uint32_t choice);

  struct Best {
    std::uint32_t choice = kUndecided;
    std::int64_t price = std::numeric_limits<std::int64_t>::max();
  };
  // The cheapest choice that `allowed` lets through and that costs less than
  // `below`; the first in order of own cost among equals. Prices are worked out
  // only as far as it takes.
  template <class Allowed>
  Best best(std::int64_t below, const Allowed& allowed) {
    Best found{kUndecided, below};
    const ChoiceSet& set = *problem_.variable(variable_).choices;
    for (const std::uint32_t c : set.by_cost) {
      if (set.costs[c] >= found.price) break;
      if (!allowed(c)) continue;
      const std::int64_t price = price_below(c, found.price);
      if (price < found.price) found = {c, price};
    }
    return found;
  }

  // A byte of a value that lives at the peak costs that much on top.
  void set_memory_price(double nanoseconds_per_byte,
                        std::vector<bool> lives_at_peak);

 private:
  struct OperandView {
    ValueId value;
    bool counts = false;             // a use of an undecided maker asks nothing
    LayoutId made;                   // uses: the layout the value is made in
    std::vector<LayoutId> wanted;    // by others that are decided
    std::vector<PlanUse> undecided;  // makes: users yet to decide
    std::vector<std::int64_t> prices;  // by layout; kUnknown until asked for
    std::vector<std::size_t> earlier;  // uses of the same value before it
  };
  static constexpr std::int64_t kUnknown = -1;

  void view_use(std::size_t use);
  void view_made(std::size_t operand, ValueId value);
  void collect_users(const PlanValue& value, OperandView& view) const;
  std::int64_t price_below(std::uint32_t choice, std::int64_t below);
  std::int64_t operand_price(std::size_t operand, std::size_t layout);
  std::int64_t ahead(PlanUse use, ValueId value, LayoutId made) const;
  bool paid_before(std::uint32_t choice, std::size_t operand) const;

  const PlanProblem& problem_;
  const std::vector<std::uint32_t>& choices_;
  PlanVariableId variable_;
  std::vector<OperandView> operands_;
  double memory_price_ = 0;
  std::vector<bool> lives_at_peak_;
};

}  // namespace shardprop
