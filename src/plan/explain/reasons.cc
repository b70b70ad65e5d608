#include "plan/explain/reasons.h"

#include "plan/problem/pin_match.h"
#include "plan/tuning.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

namespace shardprop {
namespace {

// Returns a text such as "`mm_1` (model.py:53)".
std::string named(const Node& node) {
  if (node.source.empty()) return "`" + node.name + "`";
  const std::string source = to_string(node.source);
  return fmt::format("`{}` ({})", node.name,
                     source.substr(source.rfind('/') + 1));
}

// Returns "`mm_1`", "the gradient of `w`" or "the result of the program".
std::string user_name(const PlanProblem& problem, const BufferUse& use) {
  const Graph& graph = problem.graph();
  const PlanVariable& user = problem.variable(use.variable);
  switch (user.kind) {
    case PlanVariable::Kind::kOperator:
      return named(graph.nodes()[user.index]);
    case PlanVariable::Kind::kOutput:
      return "the result of the program";
    case PlanVariable::Kind::kInput:
      break;
  }
  const ValueId input = user.makes[0];
  const bool gradient = graph.gradient_of(input) == user.uses[use.operand];
  return fmt::format("{} `{}`", gradient ? "the gradient of" : "the update of",
                     graph.value(input).display_name());
}

// Returns the layout that a gradient or an update takes from its parameter:
// "that is stored, S(0),R".
std::string stored_as(const PlanProblem& problem, const PlanAssignment& plan,
                      const BufferUse& use) {
  const PlanVariable& input = problem.variable(use.variable);
  const std::uint32_t choice = plan.choices[use.variable.index()];
  const std::string dst =
      to_string(problem.layouts()[input.choices->layout(choice, use.operand)]);
  const auto& states = input.choices->state_layouts;
  const bool like_state =
      !states.empty() &&
      states[choice] != input.choices->layout(choice, input.uses.size());
  return (like_state ? "the optimizer's state lies, " : "that is stored, ") +
         dst;
}

// Returns whether a pin decides how the user reads a value.
bool decides(const PlanProblem& problem, const Pin& pin, const BufferUse& use) {
  const Graph& graph = problem.graph();
  const PlanVariable& user = problem.variable(use.variable);
  if (user.kind == PlanVariable::Kind::kOutput) return false;
  if (user.kind == PlanVariable::Kind::kInput) {
    return pin.pins_buffer() && matches_input(pin, graph.value(user.makes[0]));
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

// Returns why the user cannot read another layout.
std::string why_no_other(const PlanProblem& problem, const BufferUse& use) {
  for (const Pin& pin : problem.options().pins) {
    if (decides(problem, pin, use)) {
      return "; pinned by --pin '" + to_string(pin) + "'";
    }
  }
  const PlanVariable& user = problem.variable(use.variable);
  const bool restricted = user.kind != PlanVariable::Kind::kOutput &&
                          user.choices->unsupported.empty();
  // The text names the recipe, since --compare may have chosen it.
  if (const auto& recipe = problem.options().recipe; recipe && restricted) {
    const auto used = on_mesh(*recipe, problem.mesh());
    return "; the recipe " + to_string(used ? *used : *recipe) + " asks for it";
  }
  return "; it can be had in no other layout";
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
  const std::string dst = to_string(problem.layouts()[first.choices->layout(
      plan.choices[use.variable.index()], use.operand)]);
  const std::string name = user_name(problem, use);
  switch (first.kind) {
    case PlanVariable::Kind::kOperator:
      reason.text = name +
                    (is_between ? " takes a copy of it as " : " takes it as ") +
                    dst;
      break;
    case PlanVariable::Kind::kInput:
      reason.text = name + (is_between ? " is made of it and" : "") +
                    " ends as " + stored_as(problem, plan, use);
      break;
    case PlanVariable::Kind::kOutput:
      reason.text = name + " is " + (is_between ? "made of it and " : "") +
                    "handed back as " + dst;
      break;
  }
  const std::size_t more =
      uses.size() + (is_between ? 0 : users[copy].copies.size()) - 1;
  if (more > 0) {
    reason.text += fmt::format(", and so do {} more", more);
    return reason;
  }
  if (is_between) return reason;
  if (const auto other = alternatives.without(copy)) {
    reason.alternative_nanoseconds = other->nanoseconds;
    if (std::abs(other->nanoseconds) < tuning::kLeastReasonNanoseconds)
      return reason;
    // A plan can be cheaper than a proven one only if it exceeds the memory
    // limit.
    reason.text += fmt::format(
        "; as {} the plan would cost {:.1f} us {}",
        to_string(problem.layouts()[other->layout]),
        std::abs(static_cast<double>(other->nanoseconds) / 1000),
        other->nanoseconds >= 0          ? "more"
        : problem.options().memory_limit ? "less, and hold more memory"
                                         : "less");
  } else {
    reason.text += why_no_other(problem, use);
  }
  return reason;
}

}  // namespace shardprop
