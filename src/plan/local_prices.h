// What every choice of one variable costs, given what its neighbours chose.
#pragma once

#include <shardprop/plan/plan_problem.h>

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

inline constexpr std::uint32_t kUndecided = 0xffffffffU;

class LocalPrices {
 public:
  // `choices` by variable, kUndecided allowed; watched, not copied.
  LocalPrices(const PlanProblem& problem,
              const std::vector<std::uint32_t>& choices)
      : problem_(problem), choices_(choices) {}

  // Own cost, what its uses add to copies that there are, and the copies of
  // what it makes. Undecided makers ask nothing; of undecided users the
  // cheapest way to take each layout is counted. Prices of kUnreachable and
  // more are not possible. The result is valid until the next call.
  const std::vector<std::int64_t>& of(PlanVariableId variable);

  // Extra cost of a byte that lives at the peak; see set_memory_price().
  void set_memory_price(double nanoseconds_per_byte,
                        std::vector<bool> lives_at_peak);

 private:
  void add_use(PlanVariableId variable, std::size_t use);
  void add_made(PlanVariableId variable, std::size_t operand, ValueId value);
  void wanted_by_others(PlanVariableId variable, const PlanValue& value);
  std::int64_t ahead(PlanUse use, ValueId value, LayoutId made) const;
  LayoutId layout(PlanUse use) const;

  const PlanProblem& problem_;
  const std::vector<std::uint32_t>& choices_;
  std::vector<std::int64_t> prices_;
  std::vector<std::int64_t> by_layout_;
  std::vector<LayoutId> wanted_;
  std::vector<PlanUse> undecided_;
  double memory_price_ = 0;
  std::vector<bool> lives_at_peak_;
};

}  // namespace shardprop
