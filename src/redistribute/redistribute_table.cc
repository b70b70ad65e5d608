#include <shardprop/redistribute/redistribute_table.h>

#include "base/try.h"
#include "redistribute/planner_body.h"
#include "redistribute/search.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace shardprop {
namespace {

using redistribute::Alphabet;
using redistribute::LocalSize;
using redistribute::Mask;
using redistribute::Move;
using redistribute::MovePrice;
using redistribute::MovePricer;
using redistribute::MoveTable;
using redistribute::State;
using redistribute::StateIndex;

struct Edge {
  std::uint32_t to;
  std::int64_t nanoseconds;
  std::int64_t held_bytes;
};

// Every layout that moves lead to, and the cheapest move between neighbours.
class Graph {
 public:
  Graph(const RedistributePlanner& planner, const DeviceMesh& mesh,
        const redistribute::ActiveDims& active,
        const redistribute::GroupTimes& times, const Alphabet& alphabet,
        const TensorMeta& meta)
      : planner_(planner),
        mesh_(mesh),
        active_(active),
        alphabet_(alphabet),
        meta_(meta),
        pricer_(times, active, alphabet, meta) {
    // Everything is reached from the replicated layout.
    index_.insert(State{});
    sizes_.push_back(pricer_.local_size(State{}));
    for (std::uint32_t at = 0; at < index_.states().size(); ++at) grow(at);
  }

  const std::vector<State>& states() const { return index_.states(); }

  // Costs from `source` to every state.
  void distances(std::uint32_t source, std::int64_t* costs) {
    using Item = std::pair<std::int64_t, std::uint32_t>;
    std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
    std::fill_n(costs, states().size(), RedistributeTable::kImpossible);
    costs[source] = 0;
    queue.emplace(0, source);
    const auto limit = planner_.options().memory_limit;
    const std::int64_t source_bytes = pricer_.bytes(sizes_[source]);
    while (!queue.empty()) {
      const auto [cost, at] = queue.top();
      queue.pop();
      if (cost > costs[at]) continue;
      const std::int64_t kept = at == source ? 0 : source_bytes;
      for (const Edge& edge : edges_[at]) {
        const std::int64_t reached = cost + edge.nanoseconds;
        if (reached >= costs[edge.to]) continue;
        if (limit && edge.held_bytes + kept > *limit) continue;
        costs[edge.to] = reached;
        queue.emplace(reached, edge.to);
      }
    }
    for (std::uint32_t to = 0; to < states().size(); ++to) {
      if (shard_to_partial(states()[source], states()[to])) {
        costs[to] = RedistributeTable::kImpossible;
      }
    }
  }

 private:
  void grow(std::uint32_t at) {
    const State state = states()[at];
    edges_.emplace_back();
    MoveTable(active_, alphabet_)
        .for_each(
            state, [](Move, Mask) { return true; },
            [&](Move move, Mask group, const State& raw) {
              State to = raw;
              if (alphabet_.has_strided()) {
                const auto form = canonical_state(raw, active_, alphabet_,
                                                  mesh_, meta_.shape());
                if (!form || *form == state) return;
                to = *form;
              }
              const auto [number, made] = index_.insert(to);
              if (made) sizes_.push_back(pricer_.local_size(to));
              const MovePrice price = pricer_.price(
                  move, group, state, sizes_[at], to, sizes_[number]);
              edges_[at].push_back(
                  {number, price.nanoseconds, price.held_bytes});
            });
  }

  bool shard_to_partial(const State& from, const State& to) const {
    for (int i = 0; i < active_.count; ++i) {
      if (alphabet_[from.symbol[i]].shard() &&
          alphabet_[to.symbol[i]].partial) {
        return true;
      }
    }
    return false;
  }

  const RedistributePlanner& planner_;
  const DeviceMesh& mesh_;
  const redistribute::ActiveDims& active_;
  const Alphabet& alphabet_;
  const TensorMeta& meta_;
  MovePricer pricer_;
  StateIndex index_;
  std::vector<LocalSize> sizes_;
  std::vector<std::vector<Edge>> edges_;
};

}  // namespace

Result<RedistributeTable> RedistributeTable::create(
    const RedistributePlanner& planner, const TensorMeta& meta,
    std::span<const Layout> wanted) {
  const auto& body = *planner.body_;
  std::vector<Layout> named;
  for (const Layout& layout : wanted) {
    SP_CHECK(check_layout(layout, body.mesh, meta));
    named.push_back(canonical(layout, body.mesh, meta.shape()));
  }
  const Placement sum = Placement::partial(ReduceOp::kSum);
  if (is_defined(ReduceOp::kSum, meta.dtype())) {
    Placements sums(static_cast<std::size_t>(body.mesh.ndim()), sum);
    SP_ASSIGN(Layout layout, Layout::create(std::move(sums)));
    named.push_back(std::move(layout));
  }
  SP_ASSIGN(
      const Alphabet alphabet,
      Alphabet::create(body.active, meta, named, body.options.split_factors));
  Graph graph(planner, body.mesh, body.active, body.times, alphabet, meta);

  RedistributeTable table(body.mesh, meta.shape());
  const Layout others = Layout::replicated(body.mesh.ndim());
  for (const State& state : graph.states()) {
    table.index_.emplace(to_layout(state, body.active, alphabet, others),
                         table.layouts_.size());
    table.layouts_.push_back(to_layout(state, body.active, alphabet, others));
  }
  const std::size_t count = table.layouts_.size();
  table.costs_.resize(count * count);
  for (std::uint32_t from = 0; from < count; ++from) {
    graph.distances(from, table.costs_.data() + from * count);
  }
  return table;
}

std::optional<std::size_t> RedistributeTable::index_of(
    const Layout& layout) const {
  Layout form = canonical(layout, mesh_, shape_);
  for (int i = 0; i < mesh_.ndim(); ++i) {
    if (mesh_.size(i) > 1 || form[i].is_replicate()) continue;
    auto without = form.with(i, Placement::replicate());
    if (!without) throw InternalError("R does not fit a layout");
    form = *std::move(without);
  }
  const auto found = index_.find(form);
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

}  // namespace shardprop
