#include "plan/reasons.h"

#include <fmt/format.h>

#include <cmath>

namespace shardprop {
namespace {

// "mm_1", "the gradient of w", "an output of the program".
std::string user_name(const PlanProblem& problem, const NeededCopy& copy,
                      PlanUse use) {
  const Graph& graph = problem.graph();
  const PlanVariable& user = problem.variable(use.variable);
  switch (user.kind) {
    case PlanVariable::Kind::kOperator:
      return "`" + graph.nodes()[user.index].name + "`";
    case PlanVariable::Kind::kOutput:
      return "the result of the program";
    case PlanVariable::Kind::kInput:
      break;
  }
  const ValueId input = user.makes[0];
  const bool gradient = graph.gradient_of(input) == copy.value;
  return fmt::format("{} `{}`", gradient ? "the gradient of" : "the update of",
                     graph.value(input).display_name());
}

// How much dearer the best choice of one user is that does without the copy.
struct Alternative {
  std::int64_t nanoseconds = kUnreachable;
  LayoutId layout;
};

Alternative best_alternative(const PlanProblem& problem,
                             std::span<const std::uint32_t> choices,
                             const NeededCopy& copy, LocalPrices& prices) {
  Alternative best;
  // With several users the copy stays until all of them change; what the first
  // one would pay is then a lower estimate, so it is not given.
  if (copy.users.size() != 1) return best;
  const PlanUse use = copy.users.front();
  const ChoiceSet& set = *problem.variable(use.variable).choices;
  prices.look_at(use.variable);
  const std::int64_t now = prices.price(choices[use.variable.index()]);
  const LocalPrices::Best other = prices.best(
      now + kUnreachable,
      [&](std::uint32_t c) { return set.layout(c, use.operand) != copy.dst; });
  if (other.choice == kUndecided) return best;
  return {other.price - now, set.layout(other.choice, use.operand)};
}

}  // namespace

CopyReason reason_of(const PlanProblem& problem,
                     std::span<const std::uint32_t> choices,
                     const NeededCopy& copy, LocalPrices& prices) {
  const std::string dst = to_string(problem.layouts()[copy.dst]);
  CopyReason reason;
  const PlanVariable& first = problem.variable(copy.users.front().variable);
  const std::string name = user_name(problem, copy, copy.users.front());
  switch (first.kind) {
    case PlanVariable::Kind::kOperator:
      reason.text = name + " takes it as " + dst;
      break;
    case PlanVariable::Kind::kInput:
      reason.text = name + " ends in the layout " + dst + " that it starts in";
      break;
    case PlanVariable::Kind::kOutput:
      reason.text = name + " is handed back as " + dst;
      break;
  }
  if (copy.users.size() > 1) {
    reason.text += fmt::format(", and so do {} more", copy.users.size() - 1);
    return reason;
  }
  const Alternative other = best_alternative(problem, choices, copy, prices);
  if (other.nanoseconds < kUnreachable) {
    reason.alternative_nanoseconds = other.nanoseconds;
    // Less, where only the memory limit speaks for the copy.
    reason.text += fmt::format(
        "; as {} the plan would cost {:.1f} us {}",
        to_string(problem.layouts()[other.layout]),
        std::abs(static_cast<double>(other.nanoseconds) / 1000),
        other.nanoseconds < 0 ? "less, and hold more memory" : "more");
  } else {
    reason.text += "; it can be had in no other layout";
  }
  return reason;
}

}  // namespace shardprop
