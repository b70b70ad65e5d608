#include "plan/local_search.h"

#include "plan/copies.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>

namespace shardprop {
namespace {

constexpr auto kAny = [](std::uint32_t) { return true; };

}  // namespace

SearchBudget::SearchBudget(const PlanOptions& options)
    : end_(std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(
               std::chrono::duration<double>(options.time_limit_seconds))),
      work_(options.work_limit.value_or(
          std::numeric_limits<std::int64_t>::max())) {}

bool SearchBudget::spent() const {
  return work_ <= 0 || std::chrono::steady_clock::now() >= end_;
}

void LocalSearch::greedy(const std::vector<std::uint32_t>& start) {
  choices_ = start;
  const auto variables = problem_.variables();
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (variables[v].kind == PlanVariable::Kind::kInput) continue;
    decide(PlanVariableId(v));
    for (std::size_t u = 0; u < variables[v].uses.size(); ++u) {
      follow(problem_.value(variables[v].uses[u]).maker,
             variables[v].choices->layout(choices_[v], u));
    }
  }
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (choices_[v] == kUndecided) decide(PlanVariableId(v));
  }
}

void LocalSearch::improve() {
  const std::size_t count = problem_.variables().size();
  std::vector<bool> stale(count, true);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (bool changed = true; changed && !budget_.spent();) {
    changed = false;
    for (const std::size_t v : order) {
      if (!stale[v]) continue;
      stale[v] = false;
      if (!decide(PlanVariableId(v))) continue;
      changed = true;
      for_neighbours(PlanVariableId(v), [&](PlanVariableId neighbour) {
        stale[neighbour.index()] = true;
      });
    }
    std::reverse(order.begin(), order.end());
  }
}

// Takes the cheapest choice; stays where it is among equals.
bool LocalSearch::decide(PlanVariableId id) {
  std::uint32_t& choice = choices_[id.index()];
  budget_.spend(problem_.variable(id).choices->size());
  prices_.look_at(id);
  const std::int64_t now = choice == kUndecided
                               ? std::numeric_limits<std::int64_t>::max()
                               : prices_.price(choice);
  const LocalPrices::Best best = prices_.best(now, kAny);
  if (best.choice == kUndecided) return false;
  choice = best.choice;
  return true;
}

void LocalSearch::follow(PlanVariableId maker, LayoutId wanted) {
  if (choices_[maker.index()] != kUndecided) return;
  const ChoiceSet& set = *problem_.variable(maker).choices;
  for (std::uint32_t c = 0; c < set.size(); ++c) {
    if (set.layout(c, set.num_uses) == wanted) choices_[maker.index()] = c;
  }
  if (choices_[maker.index()] == kUndecided) decide(maker);
}

template <class Function>
void LocalSearch::for_neighbours(PlanVariableId id,
                                 const Function& function) const {
  const PlanVariable& variable = problem_.variable(id);
  const auto users = [&](ValueId value) {
    for (const PlanUse& use : problem_.value(value).uses) {
      if (use.variable != id) function(use.variable);
    }
  };
  for (const ValueId value : variable.uses) {
    function(problem_.value(value).maker);
    users(value);
  }
  for (const ValueId value : variable.makes) users(value);
}

// The change of the objective.
std::int64_t LocalSearch::move(PlanVariableId id, std::uint32_t choice,
                               std::int64_t price,
                               std::vector<Change>& changes) {
  std::uint32_t& now = choices_[id.index()];
  const std::int64_t delta = price - prices_.price(now);
  changes.push_back({id, now});
  now = choice;
  moved_in_[id.index()] = spread_number_;
  return delta;
}

bool LocalSearch::spread(PlanVariableId seed, std::size_t operand,
                         LayoutId layout) {
  constexpr std::size_t kMostSteps = 4000;
  constexpr std::size_t kMostVisits = 4;
  prices_.look_at(seed);
  const ChoiceSet& set = *problem_.variable(seed).choices;
  const LocalPrices::Best forced = prices_.best(
      kUnreachable,
      [&](std::uint32_t c) { return set.layout(c, operand) == layout; });
  if (forced.choice == kUndecided) return false;
  ++spread_number_;
  std::vector<Change> changes;
  std::int64_t total = move(seed, forced.choice, forced.price, changes);
  std::deque<PlanVariableId> queue;
  std::vector<std::uint8_t> visits(choices_.size(), 0);
  const auto enqueue = [&](PlanVariableId id) {
    if (id == seed || visits[id.index()] >= kMostVisits) return;
    ++visits[id.index()];
    queue.push_back(id);
  };
  for_neighbours(seed, enqueue);
  for (std::size_t step = 0; step < kMostSteps && !queue.empty(); ++step) {
    const PlanVariableId id = queue.front();
    queue.pop_front();
    budget_.spend(problem_.variable(id).choices->size());
    prices_.look_at(id);
    const std::uint32_t now = choices_[id.index()];
    const std::int64_t price = prices_.price(now);
    // What has not moved yet may move for nothing.
    const bool fresh = moved_in_[id.index()] != spread_number_;
    const LocalPrices::Best best = prices_.best(
        price + (fresh ? 1 : 0), [&](std::uint32_t c) { return c != now; });
    if (best.choice == kUndecided) continue;
    total += move(id, best.choice, best.price, changes);
    for_neighbours(id, enqueue);
  }
  if (total < 0) return true;
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    choices_[change->variable.index()] = change->before;
  }
  return false;
}

bool LocalSearch::spread_value(ValueId value) {
  const PlanValue& planned = problem_.value(value);
  const LayoutId made =
      layout_at(problem_, choices_, planned.maker, planned.operand);
  for (const PlanUse& use : planned.uses) {
    const LayoutId wanted =
        layout_at(problem_, choices_, use.variable, use.operand);
    if (wanted == made) continue;
    if (spread(planned.maker, planned.operand, wanted) ||
        spread(use.variable, use.operand, made)) {
      return true;
    }
  }
  return false;
}

void LocalSearch::spread_copies() {
  constexpr int kMostRounds = 8;
  moved_in_.assign(choices_.size(), 0);
  spread_number_ = 0;
  bool better = true;
  for (int round = 0; round < kMostRounds && better; ++round) {
    better = false;
    for (const Value& value : problem_.graph().values()) {
      while (!budget_.spent() && spread_value(value.id)) better = true;
      if (budget_.spent()) return;
    }
    improve();
  }
}

}  // namespace shardprop
