#include "plan/search/parts/restricted_problem.h"

#include "base/index.h"
#include "plan/problem/choices/choice_subsets.h"
#include "plan/problem/equal_choices.h"
#include "plan/problem/problem_data.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

// ClassProjector projects each BufferClass once for all buffers with the same
// producers and readers.
class ClassProjector {
 public:
  struct Projected {
    std::shared_ptr<const BufferClass> kind;
    std::vector<BufferLayout> states;  // of the unrestricted class
  };

  ClassProjector(const PlanProblem& whole,
                 const std::vector<PlanVariable>& variables)
      : whole_(whole), variables_(variables) {}

  const Projected& of(const PlanBuffer& buffer) {
    Key key{buffer.kind.get(), {}};
    key.second.push_back(choices(buffer.producer));
    for (const BufferUse& use : buffer.uses) {
      key.second.push_back(choices(use.variable));
    }
    auto [known, is_new] = known_.try_emplace(std::move(key));
    if (is_new) known->second = project(buffer);
    return known->second;
  }

 private:
  using Key = std::pair<const BufferClass*, std::vector<const ChoiceSet*>>;

  const ChoiceSet* choices(PlanVariableId id) const {
    return variables_[id.index()].choices.get();
  }

  // Returns states of the unrestricted class, by layout that the remaining
  // choices of the variable use for the operand.
  std::vector<BufferLayout> states_of(
      PlanVariableId variable, std::size_t operand,
      const std::vector<BufferLayout>& by_layout) const {
    const std::vector<LayoutId>& before =
        whole_.variable(variable).choices->layouts[operand];
    std::vector<BufferLayout> out;
    for (const LayoutId id : choices(variable)->layouts[operand]) {
      out.push_back(by_layout[index(
          std::find(before.begin(), before.end(), id) - before.begin())]);
    }
    return out;
  }

  Projected project(const PlanBuffer& buffer) const {
    const BufferClass& from = *buffer.kind;
    BufferClass to;
    to.produced = states_of(buffer.producer, buffer.operand, from.produced);
    for (std::size_t u = 0; u < buffer.uses.size(); ++u) {
      to.required.push_back(states_of(
          buffer.uses[u].variable, buffer.uses[u].operand, from.required[u]));
    }
    const std::vector<BufferLayout> kept = kept_states(from, to);
    std::vector<BufferLayout> place(from.num_states(), 0);
    for (std::size_t s = 0; s < kept.size(); ++s) {
      place[kept[s]] = static_cast<BufferLayout>(s);
    }
    for (BufferLayout& state : to.produced) state = place[state];
    for (auto& of_use : to.required) {
      for (BufferLayout& state : of_use) state = place[state];
    }
    for (const std::vector<LayoutId>& of_value : from.layouts) {
      auto& layouts = to.layouts.emplace_back();
      for (const BufferLayout s : kept) layouts.push_back(of_value[s]);
    }
    for (const BufferLayout s : kept) {
      to.bytes.push_back(from.bytes[s]);
      for (const BufferLayout t : kept) {
        BufferClass::Move move = from.move(s, t);
        if (move.via != BufferClass::Move::kDirect) {
          move.via = place[index(move.via)];
        }
        to.moves.push_back(move);
      }
    }
    return {std::make_shared<const BufferClass>(std::move(to)), kept};
  }

  // Returns the states that are produced or read, and those on the path from
  // one of them to another.
  static std::vector<BufferLayout> kept_states(const BufferClass& from,
                                               const BufferClass& to) {
    std::vector<bool> is_kept(from.num_states(), false);
    for (const BufferLayout s : to.produced) is_kept[s] = true;
    for (const auto& of_use : to.required) {
      for (const BufferLayout s : of_use) is_kept[s] = true;
    }
    std::vector<BufferLayout> kept;
    for (bool grows = true; grows;) {
      kept.clear();
      for (std::size_t s = 0; s < is_kept.size(); ++s) {
        if (is_kept[s]) kept.push_back(static_cast<BufferLayout>(s));
      }
      grows = false;
      for (const BufferLayout s : kept) {
        for (const BufferLayout t : kept) {
          const BufferClass::Move& move = from.move(s, t);
          if (!move.is_reachable() || move.via == BufferClass::Move::kDirect ||
              is_kept[index(move.via)]) {
            continue;
          }
          is_kept[index(move.via)] = true;
          grows = true;
        }
      }
    }
    return kept;
  }

  const PlanProblem& whole_;
  const std::vector<PlanVariable>& variables_;
  std::map<Key, Projected> known_;
};

// Returns the restriction with the choices of the first one for all variables
// that choose alike.
Restriction made_alike(const PlanProblem& problem, Restriction restriction) {
  for (std::size_t v = 0; v < restriction.left.size(); ++v) {
    const std::size_t first =
        problem.equal_choices().first(PlanVariableId(v)).index();
    if (first != v) restriction.left[v] = restriction.left[first];
  }
  return restriction;
}

// Returns the variables with the remaining choices. Variables that shared their
// choices before and keep the same ones share them again.
std::vector<PlanVariable> restricted_variables(const PlanProblem& problem,
                                               const Restriction& restriction) {
  std::map<std::pair<const ChoiceSet*, std::vector<std::uint32_t>>,
           std::shared_ptr<const ChoiceSet>>
      known;
  std::vector<PlanVariable> out(problem.variables().begin(),
                                problem.variables().end());
  for (std::size_t v = 0; v < out.size(); ++v) {
    const std::vector<std::uint32_t>& left = restriction.left[v];
    if (left.empty()) continue;
    auto& choices = known[{out[v].choices.get(), left}];
    if (!choices) {
      choices = without_spare_layouts(with_choices(*out[v].choices, left));
    }
    out[v].choices = choices;
  }
  return out;
}

}  // namespace

RestrictedProblem::RestrictedProblem(const PlanProblem& problem,
                                     Restriction restriction,
                                     std::optional<double> gap)
    : restriction_(made_alike(problem, std::move(restriction))),
      part_(ProblemData(problem.data())) {
  ProblemData& data = part_.data_;
  // A bound of the part is not a bound of the whole problem.
  data.options.progress = nullptr;
  data.options.keeps_warm_start = false;
  if (gap) data.options.gap = *gap;
  data.variables = restricted_variables(problem, restriction_);
  for (const PlanVariable& variable : data.variables) {
    if (variable.kind == PlanVariable::Kind::kOperator) {
      data.choices_of_node[variable.index] = variable.choices;
    }
  }
  ClassProjector projector(problem, data.variables);
  for (PlanBuffer& buffer : data.buffers) {
    const ClassProjector::Projected& projected = projector.of(buffer);
    buffer.kind = projected.kind;
    states_.push_back(projected.states);
  }
}

RestrictedProblem::RestrictedProblem(const PlanProblem& problem, EqualLayers)
    : restriction_(no_restriction(problem)),
      part_(ProblemData(problem.data())) {
  ProblemData& data = part_.data_;
  data.options.progress = nullptr;
  data.options.keeps_warm_start = false;
  data.options.layers = Layers::kAlike;
  data.equal_choices = std::make_shared<const EqualChoices>(data);
}

PlanAssignment RestrictedProblem::widened(PlanAssignment part) const {
  for (std::size_t v = 0; v < part.choices.size(); ++v) {
    const std::vector<std::uint32_t>& left = restriction_.left[v];
    if (!left.empty()) part.choices[v] = left[part.choices[v]];
  }
  if (states_.empty()) return part;
  for (AssignedCopy& copy : part.copies) {
    copy.state = states_[copy.buffer.index()][copy.state];
  }
  return part;
}

}  // namespace shardprop
