#include "redistribute/search.h"

#include <shardprop/base/hash.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

namespace shardprop::redistribute {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

struct Node {
  LocalSize size;
  std::int64_t nanoseconds = std::numeric_limits<std::int64_t>::max();
  std::uint32_t steps = 0;
  std::uint32_t before = kNone;
  Move move = Move::kSlice;
  Mask group = 0;
  bool done = false;
};

struct Reached {
  std::int64_t nanoseconds;
  std::uint32_t steps;
  std::uint32_t node;
  friend bool operator>(const Reached& a, const Reached& b) {
    return std::tie(a.nanoseconds, a.steps, a.node) >
           std::tie(b.nanoseconds, b.steps, b.node);
  }
};

class Search {
 public:
  explicit Search(const SearchProblem& problem)
      : problem_(problem),
        table_(problem.active, problem.alphabet),
        pricer_(problem.times, problem.active, problem.alphabet, problem.meta) {
  }

  std::optional<Path> run(const State& source, const State& target) {
    source_ = node_of(source);
    target_ = node_of(target);
    nodes_[source_].nanoseconds = 0;
    queue_.push({0, 0, source_});
    while (!queue_.empty()) {
      const Reached top = queue_.top();
      queue_.pop();
      if (nodes_[top.node].done) continue;
      nodes_[top.node].done = true;
      if (top.node == target_) return path();
      expand(top.node);
    }
    return std::nullopt;
  }

 private:
  std::uint32_t node_of(const State& state) {
    const auto [number, made] = index_.insert(state);
    if (made) {
      nodes_.emplace_back();
      nodes_.back().size = pricer_.local_size(state);
    }
    return number;
  }

  void expand(std::uint32_t from) {
    const State state = index_.states()[from];
    table_.for_each(state, [&](Move move, Mask group, const State& to) {
      const std::int64_t before = nodes_[from].nanoseconds;
      const std::int64_t least =
          before + problem_.times.least_nanoseconds(move, group);
      if (least > nodes_[target_].nanoseconds) return;
      if (!problem_.alphabet.has_strided()) {
        relax(from, state, move, group, to, least);
        return;
      }
      const auto form = canonical_state(to, problem_.active, problem_.alphabet,
                                        problem_.mesh, problem_.meta.shape());
      if (form && !(*form == state)) {
        relax(from, state, move, group, *form, least);
      }
    });
  }

  void relax(std::uint32_t from, const State& state, Move move, Mask group,
             const State& to, std::int64_t least) {
    const std::uint32_t number = node_of(to);
    if (nodes_[number].done || least > nodes_[number].nanoseconds) return;
    const MovePrice price = pricer_.price(move, group, state, nodes_[from].size,
                                          to, nodes_[number].size);
    if (problem_.memory_limit) {
      const std::int64_t source =
          from == source_ ? 0 : pricer_.bytes(nodes_[source_].size);
      if (price.held_bytes + source > *problem_.memory_limit) return;
    }
    Node& node = nodes_[number];
    const std::int64_t cost = nodes_[from].nanoseconds + price.nanoseconds;
    const std::uint32_t steps = nodes_[from].steps + 1;
    const auto rank = [&](std::int64_t ns, std::uint32_t count,
                          std::uint32_t before, Mask mask, Move kind) {
      const std::uint64_t code =
          before == kNone ? 0 : index_.states()[before].code();
      return std::make_tuple(ns, count, code, mask, kind);
    };
    if (rank(cost, steps, from, group, move) >= rank(node.nanoseconds,
                                                     node.steps, node.before,
                                                     node.group, node.move)) {
      return;
    }
    const bool sooner = cost < node.nanoseconds || steps < node.steps;
    node.nanoseconds = cost;
    node.steps = steps;
    node.before = from;
    node.group = group;
    node.move = move;
    if (sooner) queue_.push({cost, steps, number});
  }

  Path path() const {
    Path path;
    path.nanoseconds = nodes_[target_].nanoseconds;
    for (std::uint32_t at = target_; nodes_[at].before != kNone;
         at = nodes_[at].before) {
      path.steps.push_back({nodes_[at].move, nodes_[at].group,
                            index_.states()[nodes_[at].before],
                            index_.states()[at]});
    }
    std::reverse(path.steps.begin(), path.steps.end());
    return path;
  }

  const SearchProblem& problem_;
  MoveTable table_;
  MovePricer pricer_;
  StateIndex index_;
  std::vector<Node> nodes_;
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> queue_;
  std::uint32_t source_ = kNone;
  std::uint32_t target_ = kNone;
};

}  // namespace

std::pair<std::uint32_t, bool> StateIndex::insert(const State& state) {
  if (2 * states_.size() >= slots_.size()) grow();
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash_mix(0, state.code()) & mask;;
       at = (at + 1) & mask) {
    if (slots_[at] == kEmpty) {
      slots_[at] = static_cast<std::uint32_t>(states_.size());
      states_.push_back(state);
      return {slots_[at], true};
    }
    if (states_[slots_[at]] == state) return {slots_[at], false};
  }
}

std::optional<std::uint32_t> StateIndex::find(const State& state) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash_mix(0, state.code()) & mask;;
       at = (at + 1) & mask) {
    if (slots_[at] == kEmpty) return std::nullopt;
    if (states_[slots_[at]] == state) return slots_[at];
  }
}

void StateIndex::grow() {
  slots_.assign(slots_.size() * 4, kEmpty);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    std::size_t at = hash_mix(0, states_[i].code()) & mask;
    while (slots_[at] != kEmpty) at = (at + 1) & mask;
    slots_[at] = i;
  }
}

std::optional<Path> shortest_path(const SearchProblem& problem,
                                  const State& source, const State& target) {
  return Search(problem).run(source, target);
}

}  // namespace shardprop::redistribute
