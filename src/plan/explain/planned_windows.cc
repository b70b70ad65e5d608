#include "plan/explain/planned_windows.h"

#include "plan/problem/window_loads.h"

#include <algorithm>
#include <cstdint>

namespace shardprop {
namespace {

bool is_after_update(const PlannedCopy& copy) {
  return copy.reason.user &&
         copy.reason.user->kind == CopyUser::Kind::kNextStep;
}

MicroBatches micro_batches_of(const WindowLoads& numbers, std::size_t load) {
  const std::size_t window = numbers.window_of(load);
  if (numbers.of_window() == 1) return MicroBatches::kAll;
  if (load == numbers.first(window)) return MicroBatches::kFirst;
  return load == numbers.last(window) ? MicroBatches::kLast
                                      : MicroBatches::kBetween;
}

// The last copies of a window pay for its exposed time. Copies that are made once
// a step pay first, because they are in one load only.
void expose(const WindowLoads& numbers, const std::vector<WindowLoad>& loads,
            const std::vector<std::optional<std::size_t>>& windows,
            Plan& plan) {
  std::vector<std::int64_t> exposed;
  exposed.reserve(loads.size());
  for (const WindowLoad& load : loads) exposed.push_back(load.exposed());
  const auto charge = [&](PlannedCopy& copy, std::size_t load) {
    const std::int64_t part =
        std::min(exposed[load], copy.overlapped_nanoseconds);
    exposed[load] -= part;
    copy.overlapped_nanoseconds -= part;
  };
  for (const bool once : {true, false}) {
    for (std::size_t c = plan.copies.size(); c-- > 0;) {
      PlannedCopy& copy = plan.copies[c];
      if (!windows[c] || copy.once_a_step != once) continue;
      const std::size_t first = numbers.first(*windows[c]);
      const std::size_t last = numbers.last(*windows[c]);
      if (once) {
        charge(copy, is_after_update(copy) ? first : last);
        continue;
      }
      for (std::size_t load = first; load <= last; ++load) charge(copy, load);
    }
  }
}

}  // namespace

void add_loads(const PlanProblem& problem, const std::vector<WindowLoad>& loads,
               const std::vector<std::optional<std::size_t>>& windows,
               Plan& plan) {
  const WindowLoads numbers = problem.window_loads();
  expose(numbers, loads, windows, plan);
  const bool overlaps =
      std::any_of(loads.begin(), loads.end(),
                  [](const WindowLoad& load) { return load.overlappable > 0; });
  if (!overlaps) return;
  for (std::size_t load = 0; load < loads.size(); ++load) {
    plan.windows.push_back(
        {problem.windows().first_slot(numbers.window_of(load)),
         loads[load].compute, loads[load].overlappable,
         micro_batches_of(numbers, load)});
  }
}

}  // namespace shardprop
