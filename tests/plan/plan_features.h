// The features of a plan that its price and its memory depend on, so that a
// test can count which of them optima make use of.
#pragma once

#include "plan/evaluate/copy_times.h"
#include "plan/evaluate/plan_assignment.h"
#include "plan/problem/plan_problem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shardprop::test {

class PlanFeatures {
 public:
  static constexpr const char* kSharded = "a parameter is sharded";
  static constexpr const char* kFinerState =
      "optimizer state is finer than its parameter";
  static constexpr const char* kOnceAStep = "a copy is made once a step";
  static constexpr const char* kAccumulated =
      "a partial gradient is accumulated";
  static constexpr const char* kEachTime =
      "a gradient is reduced in each micro-batch";
  static constexpr const char* kTwoLayouts =
      "a buffer is cached in two layouts";
  static constexpr const char* kChain = "a copy is made of a copy";
  static constexpr const char* kShared = "a copy has two readers";
  static constexpr const char* kOverlapped = "a transfer is overlapped";
  static constexpr const char* kExposed = "a transfer exceeds its compute";
  static constexpr const char* kTwoWindows =
      "two overlap windows have transfers";
  static constexpr const char* kLateGather =
      "a gather after an update is overlapped";
  static constexpr const char* kGatherAhead =
      "a gather overlaps with the window before its reader";
  static constexpr const char* kLaterReduction =
      "a reduction overlaps with the window after its producer";
  static constexpr const char* kKeptInF32 = "a 16-bit parameter is kept in f32";

  // By feature: in how many plans it is.
  using Counts = std::map<std::string, int>;

  PlanFeatures(const PlanProblem& problem, const PlanAssignment& plan,
               const PlanEvaluation& judged)
      : problem_(problem),
        plan_(plan),
        judged_(judged),
        once_a_step_(copies_once_a_step(problem, plan)),
        times_(copy_times(problem, plan)) {}

  // All that there are, whether a plan has them or not.
  static Counts none() {
    Counts out;
    for (const char* feature :
         {kSharded, kFinerState, kOnceAStep, kAccumulated, kEachTime,
          kTwoLayouts, kChain, kShared, kOverlapped, kExposed, kTwoWindows,
          kLateGather, kGatherAhead, kLaterReduction, kKeptInF32}) {
      out[feature] = 0;
    }
    return out;
  }

  // Adds 1 for each feature of the plan.
  void count_in(Counts& counts) {
    for (const PlanVariable& variable : problem_.variables()) {
      look_at(variable);
    }
    for (std::size_t c = 0; c < plan_.copies.size(); ++c) look_at_copy(c);
    look_at_windows();
    for (const char* feature : found_) ++counts[feature];
  }

 private:
  void look_at(const PlanVariable& variable) {
    const auto v =
        static_cast<std::size_t>(&variable - problem_.variables().data());
    const std::uint32_t choice = plan_.choices[v];
    const ChoiceSet& set = *variable.choices;
    const auto layout = [&](std::size_t operand) -> const Layout& {
      return problem_.layouts()[set.layout(choice, operand)];
    };
    if (variable.kind != PlanVariable::Kind::kInput) return;
    const std::size_t own = variable.uses.size();
    if (problem_.graph().inputs()[variable.index].kind ==
        InputKind::kParameter) {
      if (layout(own)[0].is_shard()) found_.insert(kSharded);
      if (!set.state_layouts.empty() &&
          problem_.is_kept_in_f32(variable.makes[0])) {
        found_.insert(kKeptInF32);
      }
    }
    if (!set.state_layouts.empty() &&
        set.state_layouts[choice] != set.layout(choice, own)) {
      found_.insert(kFinerState);
    }
    if (!set.overlapped.empty() && set.overlapped[choice] > 0 &&
        overlaps(problem_.window_after_update(variable))) {
      found_.insert(kLateGather);
    }
    look_at_gradients(variable, choice);
  }

  void look_at_gradients(const PlanVariable& parameter, std::uint32_t choice) {
    if (parameter.choices->reduced_late.empty()) return;
    for (std::size_t u = 0; u < parameter.uses.size(); ++u) {
      const PlanBufferId id = problem_.value(parameter.uses[u]).buffer;
      const PlanBuffer& gradient = problem_.buffer(id);
      const bool is_copied =
          plan_.read[id.index()][parameter.use_places[u]].has_value();
      if (!problem_.is_reduced_late(parameter, choice)) {
        if (is_copied) found_.insert(kEachTime);
        continue;
      }
      const Layout& produced =
          problem_.layouts()[problem_.variable(gradient.producer)
                                 .choices->layout(
                                     plan_.choices[gradient.producer.index()],
                                     gradient.operand)];
      if (is_copied && produced[0].is_partial()) found_.insert(kAccumulated);
    }
  }

  // Whether the copy is there next to another layout of its buffer in a slot
  // after the one in which it is made.
  bool is_second_layout(std::size_t c) const {
    const AssignedCopy& copy = plan_.copies[c];
    if (copy.freed_at <= copy.produced_at) return false;
    if (plan_.freed_at[copy.buffer.index()] > copy.produced_at) return true;
    return std::any_of(plan_.copies.begin(), plan_.copies.end(),
                       [&](const AssignedCopy& of) {
                         return &of != &copy && of.buffer == copy.buffer &&
                                of.produced_at <= copy.produced_at &&
                                of.freed_at > copy.produced_at;
                       });
  }

  // Whether some transfer of the window overlaps with compute.
  bool overlaps(std::optional<std::size_t> window) const {
    if (!window) return false;
    const WindowLoads loads = problem_.window_loads();
    for (std::size_t l = loads.first(*window); l <= loads.last(*window); ++l) {
      const WindowLoad& load = judged_.windows[l];
      if (load.overlappable > load.exposed()) return true;
    }
    return false;
  }

  void look_at_copy(std::size_t c) {
    const AssignedCopy& copy = plan_.copies[c];
    if (copy_cost(problem_, plan_, c, once_a_step_[c]).overlappable > 0 &&
        overlaps(times_[c].window)) {
      found_.insert(problem_.buffer(copy.buffer).in_flight == InFlight::kAhead
                        ? kGatherAhead
                        : kLaterReduction);
    }
    if (once_a_step_[c]) found_.insert(kOnceAStep);
    if (copy.source) found_.insert(kChain);
    if (is_second_layout(c)) found_.insert(kTwoLayouts);
    std::ptrdiff_t readers = 0;
    for (const auto& of_buffer : plan_.read) {
      readers += std::count(of_buffer.begin(), of_buffer.end(), c);
    }
    if (readers > 1) found_.insert(kShared);
  }

  void look_at_windows() {
    int loaded = 0;
    for (const WindowLoad& window : judged_.windows) {
      loaded += window.overlappable > 0 ? 1 : 0;
      if (window.exposed() > 0) found_.insert(kExposed);
      if (window.overlappable > window.exposed()) found_.insert(kOverlapped);
    }
    if (loaded > 1) found_.insert(kTwoWindows);
  }

  const PlanProblem& problem_;
  const PlanAssignment& plan_;
  const PlanEvaluation& judged_;
  std::vector<bool> once_a_step_;  // by copy
  std::vector<CopyTimes> times_;   // by copy
  std::set<const char*> found_;
};

}  // namespace shardprop::test
