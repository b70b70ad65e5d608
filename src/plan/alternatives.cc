#include "plan/alternatives.h"

#include <algorithm>

namespace shardprop {
namespace {

struct UseOfStorage {
  PlanStorageId storage;
  std::size_t use = 0;
};

// The place of a variable's operand among the uses of its storage.
UseOfStorage use_of(const PlanProblem& problem, PlanVariableId user,
                    std::size_t operand) {
  const PlanVariable& variable = problem.variable(user);
  return {problem.value(variable.uses[operand]).storage,
          variable.use_places[operand]};
}

}  // namespace

std::vector<CopyUsers> users_of_copies(const PlanProblem& problem,
                                       const PlanAssignment& plan) {
  std::vector<CopyUsers> users(plan.copies.size());
  for (std::size_t s = 0; s < plan.taken.size(); ++s) {
    for (std::size_t u = 0; u < plan.taken[s].size(); ++u) {
      if (const auto& copy = plan.taken[s][u]) {
        users[*copy].uses.push_back(problem.storages()[s].uses[u]);
      }
    }
  }
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    if (const auto& source = plan.copies[c].source) {
      users[*source].copies.push_back(c);
    }
  }
  return users;
}

AlternativeCosts::AlternativeCosts(const PlanProblem& problem,
                                   const PlanAssignment& plan)
    : problem_(problem),
      plan_(plan),
      users_(users_of_copies(problem, plan)),
      copies_(problem, plan) {
  for (const WindowLoad& load : evaluate(problem, plan).windows) {
    exposed_.push_back(load.exposed() > 0);
  }
}

std::int64_t AlternativeCosts::price(const PlanVariable& user,
                                     std::uint32_t choice) const {
  const ChoiceSet& set = *user.choices;
  std::int64_t cost = set.costs[choice];
  if (user.kind == PlanVariable::Kind::kOperator) {
    const auto slot = static_cast<std::int64_t>(user.index);
    if (is_exposed(slot)) cost -= set.compute[choice];
  } else if (!set.hidden.empty() && is_exposed(0)) {
    cost += set.hidden[choice];
  }
  return cost;
}

StorageState AlternativeCosts::made(const PlanStorage& storage,
                                    std::uint32_t choice) const {
  return storage.kind->made[problem_.variable(storage.maker)
                                .choices->pick(choice, storage.operand)];
}

StorageState AlternativeCosts::state(
    const AssignedCopy& copy, const std::optional<std::size_t>& at) const {
  if (at) return plan_.copies[*at].state;
  const PlanStorage& storage = problem_.storage(copy.storage);
  return made(storage, plan_.choices[storage.maker.index()]);
}

bool AlternativeCosts::only_for(std::size_t copy, PlanVariableId user) const {
  const CopyUsers& users = users_[copy];
  return users.copies.empty() && users.uses.size() == 1 &&
         users.uses[0].variable == user;
}

std::int64_t AlternativeCosts::taking_now(PlanVariableId user,
                                          std::size_t operand) const {
  const UseOfStorage at = use_of(problem_, user, operand);
  const auto& copy = plan_.taken[at.storage.index()][at.use];
  if (!copy || !only_for(*copy, user)) return 0;
  const AssignedCopy& taken = plan_.copies[*copy];
  return price(problem_.storage(at.storage)
                   .kind->move(state(taken, taken.source), taken.state),
               taken.made_at);
}

std::int64_t AlternativeCosts::taking(PlanVariableId user, std::size_t operand,
                                      std::uint32_t choice) const {
  const UseOfStorage at = use_of(problem_, user, operand);
  const PlanStorage& storage = problem_.storage(at.storage);
  const StorageClass& kind = *storage.kind;
  const std::int64_t slot = storage.uses[at.use].slot;
  const StorageState wanted =
      kind.wanted[at.use]
                 [problem_.variable(user).choices->pick(choice, operand)];
  std::int64_t least = kUnreachable;
  const auto from = [&](StorageState held) {
    least = std::min(least,
                     held == wanted ? 0 : price(kind.move(held, wanted), slot));
  };
  if (plan_.freed_at[at.storage.index()] >= slot) {
    from(made(storage, plan_.choices[storage.maker.index()]));
  }
  copies_.held_at(at.storage, slot, [&](std::size_t c) {
    if (!only_for(c, user)) from(plan_.copies[c].state);
  });
  return least;
}

std::int64_t AlternativeCosts::making(PlanStorageId id,
                                      std::uint32_t choice) const {
  const PlanStorage& storage = problem_.storage(id);
  const StorageClass& kind = *storage.kind;
  const StorageState now = made(storage, plan_.choices[storage.maker.index()]);
  const StorageState then = made(storage, choice);
  std::int64_t sum = 0;
  const auto& taken = plan_.taken[id.index()];
  if (now != then &&
      std::any_of(taken.begin(), taken.end(),
                  [](const auto& copy) { return !copy.has_value(); })) {
    sum += price(kind.move(then, now), storage.made_at);
  }
  for (const std::size_t c : copies_.of(id)) {
    const AssignedCopy& copy = plan_.copies[c];
    if (copy.source || copy.state == then) continue;
    sum += price(kind.move(then, copy.state), copy.made_at);
  }
  return sum;
}

const std::vector<std::int64_t>& AlternativeCosts::prices_of(
    PlanVariableId id) const {
  if (priced_ == id) return prices_;
  const PlanVariable& user = problem_.variable(id);
  const std::uint32_t now = plan_.choices[id.index()];
  priced_ = id;
  prices_.clear();
  for (std::uint32_t choice = 0; choice < user.choices->size(); ++choice) {
    std::int64_t sum = price(user, choice);
    for (std::size_t u = 0; u < user.uses.size(); ++u) {
      sum += choice == now ? taking_now(id, u) : taking(id, u, choice);
    }
    for (const ValueId value : user.makes) {
      sum += making(problem_.value(value).storage, choice);
    }
    prices_.push_back(sum);
  }
  return prices_;
}

std::optional<Alternative> AlternativeCosts::without(std::size_t copy) const {
  const CopyUsers& users = users_[copy];
  if (users.uses.size() != 1 || !users.copies.empty()) return std::nullopt;
  const StorageUse& use = users.uses[0];
  const PlanVariable& user = problem_.variable(use.variable);
  const std::uint32_t now = plan_.choices[use.variable.index()];
  const std::vector<std::int64_t>& prices = prices_of(use.variable);
  const LayoutId unwanted = user.choices->layout(now, use.operand);
  std::optional<Alternative> best;
  for (std::uint32_t c = 0; c < user.choices->size(); ++c) {
    if (user.choices->layout(c, use.operand) == unwanted) continue;
    const std::int64_t more = prices[c] - prices[now];
    if (more >= kUnreachable / 2 || (best && more >= best->nanoseconds)) {
      continue;
    }
    best = Alternative{more, user.choices->layout(c, use.operand)};
  }
  return best;
}

}  // namespace shardprop
