#include "report/once_a_step.h"

#include <cstddef>
#include <unordered_set>

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

std::vector<bool> copies_once_a_step(const Plan& plan) {
  std::vector<bool> out(plan.copies.size(), false);
  if (is_one_micro_batch(plan)) return out;
  std::unordered_set<std::string_view> reduced_once;
  for (const PlannedValue& value : plan.values) {
    if (value.reduced_once) reduced_once.insert(value.name);
  }
  for (const PlannedOutput& output : plan.outputs) {
    if (output.kind != OutputKind::kGradient ||
        !reduced_once.contains(output.target)) {
      continue;
    }
    for (auto copy = output.value.copy; copy;
         copy = plan.copies[*copy].source) {
      out[*copy] = true;
    }
  }
  std::unordered_set<std::string_view> updated;
  for (const PlannedUpdate& update : plan.updates) {
    updated.insert(update.result.name);
  }
  for (std::size_t c = 0; c < out.size(); ++c) {
    if (updated.contains(plan.copies[c].of)) out[c] = true;
  }
  return out;
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
