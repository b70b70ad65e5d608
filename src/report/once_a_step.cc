#include "report/once_a_step.h"

#include "base/saturating.h"

#include <algorithm>
#include <cstdlib>

namespace shardprop {
namespace {

bool is_one_micro_batch(const Plan& plan) {
  const std::string count = option_of(plan, "accumulate");
  return count.empty() || count == "1";
}

}  // namespace

std::string option_of(const Plan& plan, std::string_view name) {
  for (const auto& [known, value] : plan.options) {
    if (known == name) return value;
  }
  return {};
}

std::optional<std::int64_t> step_nanoseconds(const Plan& plan) {
  if (!plan.objective_nanoseconds) return std::nullopt;
  const std::string count = option_of(plan, "accumulate");
  return sat_mul(*plan.objective_nanoseconds,
                 std::max(std::strtoll(count.c_str(), nullptr, 10), 1LL));
}

std::string micro_batches(const Plan& plan) {
  if (is_one_micro_batch(plan)) return {};
  return "times are those of one of " + option_of(plan, "accumulate") +
         " micro-batches, with its share of what is done once a step; bytes "
         "are not shared out";
}

std::string once_in(const Plan& plan) {
  return "once in " + option_of(plan, "accumulate") + " micro-batches";
}

}  // namespace shardprop
