#include "plan/explain/reasons.h"

#include "plan/problem/pin_match.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// Returns the user of a copy: a node, a gradient or update of an input, or a
// result of the program.
CopyUser user_of(const PlanProblem& problem, const BufferUse& use) {
  const Graph& graph = problem.graph();
  const PlanVariable& user = problem.variable(use.variable);
  const ValueId read = user.uses[use.operand];
  switch (user.kind) {
    case PlanVariable::Kind::kOperator:
      return {CopyUser::Kind::kNode, graph.nodes()[user.index].name};
    case PlanVariable::Kind::kOutput:
      return {CopyUser::Kind::kResult, graph.value(read).display_name()};
    case PlanVariable::Kind::kInput:
      break;
  }
  const ValueId input = user.makes[0];
  return {graph.gradient_of(input) == read ? CopyUser::Kind::kGradient
                                           : CopyUser::Kind::kUpdate,
          graph.value(input).display_name()};
}

// Returns whether a pin decides how the user reads a value.
bool decides(const PlanProblem& problem, const Pin& pin, const BufferUse& use) {
  const Graph& graph = problem.graph();
  const PlanVariable& user = problem.variable(use.variable);
  if (user.kind == PlanVariable::Kind::kOutput) return false;
  if (user.kind == PlanVariable::Kind::kInput) {
    const ValueId input = user.makes[0];
    const bool is_gradient = graph.gradient_of(input) == user.uses[use.operand];
    const bool is_for =
        pin.place == Pin::Place::kState ? is_gradient : pin.pins_buffer();
    return is_for && matches_input(pin, graph.value(input));
  }
  const Node& node = graph.nodes()[user.index];
  for (const ValueId produced : node.outputs) {
    if (matches_result(pin, node, graph.value(produced))) return true;
  }
  // The value is read as it is, or through a view.
  const PlanBufferId buffer = problem.value(user.uses[use.operand]).buffer;
  const Value& value = graph.value(problem.buffer(buffer).values[0]);
  return pin.pins_uses() && !value.producer.valid() &&
         matches_use(pin, value, node);
}

// Adds to the reason why the user cannot read another layout.
void add_why_no_other(const PlanProblem& problem, const BufferUse& use,
                      CopyReason& reason) {
  for (const Pin& pin : problem.options().pins) {
    if (!decides(problem, pin, use)) continue;
    reason.cause = CopyCause::kPin;
    reason.pin = pin;
    return;
  }
  const PlanVariable& user = problem.variable(use.variable);
  const bool restricted = user.kind != PlanVariable::Kind::kOutput &&
                          user.choices->unsupported.empty();
  // The reason has the recipe, since --compare may have chosen it.
  if (const auto& recipe = problem.options().recipe; recipe && restricted) {
    const auto used = on_mesh(*recipe, problem.mesh());
    reason.cause = CopyCause::kRecipe;
    reason.recipe = used ? *used : *recipe;
    return;
  }
  reason.cause = CopyCause::kOnlyLayout;
}

// Returns the uses that read copies made from this copy, directly or through
// further copies.
std::vector<BufferUse> uses_behind(const std::vector<CopyUsers>& users,
                                   std::size_t copy) {
  std::vector<BufferUse> out;
  std::vector<std::size_t> open = {copy};
  for (std::size_t i = 0; i < open.size(); ++i) {
    const CopyUsers& here = users[open[i]];
    out.insert(out.end(), here.uses.begin(), here.uses.end());
    open.insert(open.end(), here.copies.begin(), here.copies.end());
  }
  return out;
}

}  // namespace

CopyReason reason_of(const PlanProblem& problem, const PlanAssignment& plan,
                     std::size_t copy, const std::vector<CopyUsers>& users,
                     const AlternativeCosts& alternatives) {
  CopyReason reason;
  // A copy that only feeds other copies is explained by the uses of these.
  const bool is_between = users[copy].uses.empty();
  const std::vector<BufferUse> uses =
      is_between ? uses_behind(users, copy) : users[copy].uses;
  if (uses.empty()) return reason;
  const BufferUse& use = uses.front();
  const PlanVariable& first = problem.variable(use.variable);
  reason.user = user_of(problem, use);
  if (first.kind == PlanVariable::Kind::kOperator) reason.operand = use.operand;
  reason.wanted = problem.layouts()[first.choices->layout(
      plan.choices[use.variable.index()], use.operand)];
  reason.other_users = static_cast<std::int64_t>(uses.size()) - 1;
  if (is_between) {
    reason.cause = CopyCause::kSource;
    return reason;
  }
  reason.other_users += static_cast<std::int64_t>(users[copy].copies.size());
  if (reason.other_users > 0) {
    reason.cause = CopyCause::kShared;
  } else if (const auto other = alternatives.without(copy)) {
    reason.cause = CopyCause::kCost;
    reason.alternative = {other->nanoseconds, problem.layouts()[other->layout]};
  } else {
    add_why_no_other(problem, use, reason);
  }
  return reason;
}

}  // namespace shardprop
