#include "plan/explain/alternatives.h"

#include "base/saturating.h"
#include "plan/problem/build/cached_layouts.h"

#include <algorithm>

namespace shardprop {
namespace {

struct UseOfBuffer {
  PlanBufferId buffer;
  std::size_t use = 0;
};

// Returns the index of a variable's operand among the uses of its buffer.
UseOfBuffer use_of(const PlanProblem& problem, PlanVariableId user,
                   std::size_t operand) {
  const PlanVariable& variable = problem.variable(user);
  return {problem.value(variable.uses[operand]).buffer,
          variable.use_places[operand]};
}

bool is_in(const std::vector<std::size_t>& copies, std::size_t copy) {
  return std::find(copies.begin(), copies.end(), copy) != copies.end();
}

}  // namespace

AlternativeCosts::AlternativeCosts(const PlanProblem& problem,
                                   const PlanAssignment& plan,
                                   std::int64_t lower_bound)
    : problem_(problem),
      plan_(plan),
      users_(users_of_copies(problem, plan)),
      once_a_step_(copies_once_a_step(problem, plan)),
      times_(copy_times(problem, plan)),
      copies_(problem, plan),
      lower_bound_(lower_bound) {
  const PlanEvaluation judged = evaluate(problem, plan);
  loads_ = judged.windows;
  objective_ = judged.objective;
}

void AlternativeCosts::add_in_each(CostPart& part,
                                   std::optional<std::size_t> window,
                                   std::int64_t nanoseconds) const {
  if (!window) {
    part.nanoseconds = sat_add(part.nanoseconds, nanoseconds);
    return;
  }
  problem_.window_loads().divide(*window, nanoseconds,
                                 [&](std::size_t load, std::int64_t divided) {
                                   part.add_load(load, divided);
                                 });
}

void AlternativeCosts::add_transfer(CostPart& part,
                                    std::optional<std::size_t> window,
                                    std::int64_t nanoseconds, bool once) const {
  if (window && once) {
    part.add_load(problem_.window_loads().last(*window), nanoseconds);
  } else {
    add_in_each(part, window, nanoseconds);
  }
}

std::int64_t AlternativeCosts::more(const CostPart& now,
                                    const CostPart& then) const {
  CostPart change = then;
  change.subtract(now);
  WideInt sum = change.nanoseconds;
  for (const CostPart::Load& load : change.loads) {
    const WideInt before =
        WideInt{loads_[load.index].overlappable} - loads_[load.index].compute;
    sum += std::max(before + load.nanoseconds, WideInt{0}) -
           std::max(before, WideInt{0});
  }
  return saturated(sum);
}

std::int64_t AlternativeCosts::weight(const CostPart& part) const {
  if (!part.is_possible) return kMostInt;
  std::int64_t sum = part.nanoseconds;
  for (const CostPart::Load& load : part.loads) {
    if (loads_[load.index].exposed() > 0) {
      sum = sat_add(sum, load.nanoseconds);
    }
  }
  return sum;
}

BufferLayout AlternativeCosts::produced(const PlanBuffer& buffer,
                                        std::uint32_t choice) const {
  return buffer.kind->produced[problem_.variable(buffer.producer)
                                   .choices->pick(choice, buffer.operand)];
}

CostPart AlternativeCosts::choosing(const PlanVariable& user,
                                    std::uint32_t choice) const {
  const ChoiceSet& set = *user.choices;
  CostPart out;
  out.nanoseconds = set.costs[choice];
  if (user.kind == PlanVariable::Kind::kOperator) {
    add_in_each(out, problem_.window_of(static_cast<std::int64_t>(user.index)),
                -set.compute[choice]);
  } else if (!set.overlapped.empty()) {
    const auto window = problem_.window_after_update(user);
    if (window) {
      out.add_load(problem_.window_loads().first(*window),
                   set.overlapped[choice]);
    } else {
      out.nanoseconds = sat_add(out.nanoseconds, set.overlapped[choice]);
    }
  }
  return out;
}

CostPart AlternativeCosts::moving(const PlanBuffer& buffer, BufferLayout from,
                                  BufferLayout to, std::int64_t slot,
                                  bool once) const {
  CostPart out;
  if (from == to) return out;
  const BufferClass::Move& move = buffer.kind->move(from, to);
  if (!move.is_reachable()) {
    out.is_possible = false;
    return out;
  }
  const Fetch way = once ? once_a_step(problem_, buffer, from, to)
                         : Fetch{move.nanoseconds, move.overlapped, from};
  out.nanoseconds = way.nanoseconds;
  add_transfer(out, problem_.overlap_window(buffer, slot), way.overlapped,
               once);
  return out;
}

CostPart AlternativeCosts::copying(std::size_t copy, bool once) const {
  CostPart out;
  const CopyCost cost = copy_cost(problem_, plan_, copy, once);
  out.nanoseconds = cost.nanoseconds;
  add_transfer(out, times_[copy].window, cost.overlappable, once);
  return out;
}

AlternativeCosts::Chain AlternativeCosts::chain(PlanVariableId user,
                                                std::size_t operand) const {
  const UseOfBuffer at = use_of(problem_, user, operand);
  Chain out;
  for (auto copy = plan_.read[at.buffer.index()][at.use]; copy;
       copy = plan_.copies[*copy].source) {
    const CopyUsers& users = users_[*copy];
    if (users.uses.size() + users.copies.size() != 1) break;
    out.push_back(*copy);
  }
  return out;
}

AlternativeCosts::Chain AlternativeCosts::chains(PlanVariableId user) const {
  Chain out;
  for (std::size_t u = 0; u < problem_.variable(user).uses.size(); ++u) {
    const Chain own = chain(user, u);
    out.insert(out.end(), own.begin(), own.end());
  }
  return out;
}

CostPart AlternativeCosts::reading_now(PlanVariableId user,
                                       std::size_t operand) const {
  CostPart sum;
  for (const std::size_t c : chain(user, operand)) {
    sum.add(copying(c, once_a_step_[c]));
  }
  return sum;
}

CostPart AlternativeCosts::reading(PlanVariableId user, std::size_t operand,
                                   std::uint32_t choice) const {
  const UseOfBuffer at = use_of(problem_, user, operand);
  const PlanBuffer& buffer = problem_.buffer(at.buffer);
  const BufferClass& kind = *buffer.kind;
  const std::int64_t slot = buffer.uses[at.use].slot;
  const PlanVariable& reader = problem_.variable(user);
  const BufferLayout required =
      kind.required[at.use][reader.choices->pick(choice, operand)];
  const bool once = problem_.is_reduced_late(reader, choice);
  // The user's own chain goes, but its source may be kept until `slot`. A way
  // over a copy of the chain is left out: a move of the class is already the way
  // of least transfer, and a split of it that rounds better is in no plan.
  const Chain own = chain(user, operand);
  const auto own_source = own.empty() ? plan_.read[at.buffer.index()][at.use]
                                      : plan_.copies[own.back()].source;
  const bool is_made_there =
      plan_.freed_at[at.buffer.index()] >= slot || !own_source;
  const Chain gone = chains(user);
  CostPart best;
  best.is_possible = false;
  const auto from = [&](const Source& source) {
    CostPart part = moving(buffer, source.layout, required, slot, once);
    if (source.copy != own_source) {
      if (source.copy) part.add(read_by_one_more(*source.copy));
      if (own_source) {
        part.add(read_by_one_less(*own_source, gone, user, source.copy));
      }
    }
    if (weight(part) < weight(best)) best = std::move(part);
  };
  // `brief` has the layouts that exist at the slot for one operator.
  std::vector<Source> cached;
  std::vector<Source> brief;
  const auto note = [&](std::vector<Source>& sources, Source source) {
    const auto same = std::find_if(
        sources.begin(), sources.end(),
        [&](const Source& of) { return of.layout == source.layout; });
    if (same == sources.end()) {
      sources.push_back(source);
    } else if (same->copy && once_a_step_[*same->copy]) {
      *same = source;
    }
  };
  if (is_made_there || buffer.persistent) {
    note(cached,
         {produced(buffer, plan_.choices[buffer.producer.index()]), {}});
  }
  if (own_source) note(cached, {plan_.copies[*own_source].state, own_source});
  copies_.cached_at(at.buffer, slot, [&](std::size_t c) {
    if (is_in(gone, c)) return;
    const AssignedCopy& copy = plan_.copies[c];
    const std::size_t readers = users_[c].uses.size() + users_[c].copies.size();
    note(copy.freed_at > copy.produced_at || readers > 1 ? cached : brief,
         {copy.state, c});
  });
  for (const Source& source : cached) from(source);
  // A copy that one other use has for itself can serve both if it is cached: no
  // more than two layouts are (plan_assignment.h).
  const bool has_room =
      cached.size() < 2 && (buffer.persistent || buffer.uses.size() > 2);
  for (const Source& source : brief) {
    if (has_room) from(source);
  }
  return best;
}

CostPart AlternativeCosts::making(std::size_t copy, bool once) const {
  CostPart out = copying(copy, once);
  out.subtract(copying(copy, !once));
  return out;
}

CostPart AlternativeCosts::read_by_one_more(std::size_t copy) const {
  CostPart out;
  for (std::optional<std::size_t> c = copy; c && once_a_step_[*c];
       c = plan_.copies[*c].source) {
    out.add(making(*c, /*once=*/false));
  }
  return out;
}

CostPart AlternativeCosts::read_by_one_less(
    std::size_t copy, const Chain& gone, PlanVariableId user,
    std::optional<std::size_t> read_instead) const {
  CostPart out;
  const auto& [uses, copies] = users_[copy];
  if (uses.size() + copies.size() != 2) return out;
  // These copies get a reader.
  Chain read;
  for (auto c = read_instead; c; c = plan_.copies[*c].source)
    read.push_back(*c);
  // The reader that is left lets the copy be made once a step.
  const auto is_left = [&](std::size_t c) {
    return once_a_step_[c] && !is_in(gone, c) && !is_in(read, c);
  };
  const auto is_late = [&](const BufferUse& use) {
    return use.variable != user &&
           problem_.is_reduced_late(problem_.variable(use.variable),
                                    plan_.choices[use.variable.index()]);
  };
  if (!std::any_of(copies.begin(), copies.end(), is_left) &&
      !std::any_of(uses.begin(), uses.end(), is_late)) {
    return out;
  }
  std::optional<std::size_t> c = copy;
  do {
    out.add(making(*c, /*once=*/true));
    c = plan_.copies[*c].source;
  } while (c && !is_in(read, *c) && users_[*c].uses.empty() &&
           users_[*c].copies.size() == 1);
  return out;
}

CostPart AlternativeCosts::producing(PlanBufferId id,
                                     std::uint32_t choice) const {
  const PlanBuffer& buffer = problem_.buffer(id);
  const BufferLayout now =
      produced(buffer, plan_.choices[buffer.producer.index()]);
  const BufferLayout then = produced(buffer, choice);
  // The uses that read the buffer as it is produced.
  std::vector<PlanVariableId> as_made;
  for (std::size_t u = 0; u < buffer.uses.size(); ++u) {
    if (!plan_.read[id.index()][u]) as_made.push_back(buffer.uses[u].variable);
  }
  if (now == then) {
    CostPart all;
    for (const std::size_t c : copies_.of(id)) {
      if (!plan_.copies[c].source) all.add(copying(c, once_a_step_[c]));
    }
    return all;
  }
  // If something reads the buffer as it is produced, its present layout is
  // restored at once.
  const bool has_late_use =
      as_made.size() == 1 &&
      problem_.is_reduced_late(problem_.variable(as_made[0]),
                               plan_.choices[as_made[0].index()]);
  // Makes a copy from the restored layout if is_restored(copy), and from the new
  // one otherwise.
  const auto copied = [&](const auto& is_restored) {
    CostPart out;
    std::size_t readers = as_made.size();  // of the restored layout
    bool has_late_reader = has_late_use;
    for (const std::size_t c : copies_.of(id)) {
      const AssignedCopy& copy = plan_.copies[c];
      if (copy.source) continue;
      if (is_restored(c)) {
        out.add(copying(c, once_a_step_[c]));
        ++readers;
        has_late_reader = has_late_reader || once_a_step_[c];
      } else {
        out.add(moving(buffer, then, copy.state, copy.produced_at,
                       once_a_step_[c]));
      }
    }
    // One reader alone can let the layout be restored once a step.
    if (readers > 0) {
      out.add(moving(buffer, then, now, buffer.produced_at,
                     readers == 1 && has_late_reader));
    }
    return out;
  };
  // A copy is made from the layout of less transfer if two layouts exist.
  CostPart all = copied([&](std::size_t c) {
    const BufferLayout state = plan_.copies[c].state;
    return !as_made.empty() && buffer.kind->move(now, state).transfer() <
                                   buffer.kind->move(then, state).transfer();
  });
  if (buffer.persistent) return all;
  const CostPart same = copied([](std::size_t) { return true; });
  return weight(same) < weight(all) ? same : all;
}

const std::vector<std::optional<std::int64_t>>& AlternativeCosts::prices_of(
    PlanVariableId id) const {
  if (priced_ == id) return prices_;
  const PlanVariable& user = problem_.variable(id);
  const std::uint32_t now = plan_.choices[id.index()];
  priced_ = id;
  prices_.clear();
  const auto part_of = [&](std::uint32_t choice) {
    CostPart sum = choosing(user, choice);
    for (std::size_t u = 0; u < user.uses.size(); ++u) {
      sum.add(choice == now ? reading_now(id, u) : reading(id, u, choice));
    }
    for (const ValueId value : user.makes) {
      sum.add(producing(problem_.value(value).buffer, choice));
    }
    return sum;
  };
  const CostPart at_present = part_of(now);
  for (std::uint32_t choice = 0; choice < user.choices->size(); ++choice) {
    const CostPart part = part_of(choice);
    prices_.push_back(part.is_possible ? std::optional(more(at_present, part))
                                       : std::nullopt);
  }
  return prices_;
}

std::optional<Alternative> AlternativeCosts::without(std::size_t copy) const {
  const CopyUsers& users = users_[copy];
  if (users.uses.size() != 1 || !users.copies.empty()) return std::nullopt;
  const BufferUse& use = users.uses[0];
  const PlanVariable& user = problem_.variable(use.variable);
  const std::uint32_t now = plan_.choices[use.variable.index()];
  const auto& prices = prices_of(use.variable);
  const LayoutId not_required = user.choices->layout(now, use.operand);
  std::optional<Alternative> best;
  for (std::uint32_t c = 0; c < user.choices->size(); ++c) {
    if (user.choices->layout(c, use.operand) == not_required || !prices[c]) {
      continue;
    }
    const bool is_in_space = problem_.options().memory_limit ||
                             sat_add(objective_, *prices[c]) >= lower_bound_;
    if (!is_in_space || (best && *prices[c] >= best->nanoseconds)) continue;
    best = Alternative{*prices[c], user.choices->layout(c, use.operand), c};
  }
  return best;
}

}  // namespace shardprop
