#include "redistribute/redistribute_rows.h"

#include "base/guard.h"
#include "base/try.h"
#include "placement/single_ranks.h"
#include "redistribute/planner_body.h"
#include "redistribute/search.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
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

// Graph stores every layout that moves reach, and the cheapest move between
// neighbours.
class Graph {
 public:
  Graph(const DeviceMesh& mesh, const redistribute::ActiveDims& active,
        const redistribute::GroupTimes& times, Alphabet alphabet,
        const TensorMeta& meta)
      : mesh_(mesh),
        active_(active),
        alphabet_(std::move(alphabet)),
        meta_(meta),
        pricer_(times, active, alphabet_, meta_) {
    // All layouts can be reached from the replicated layout.
    index_.insert(State{});
    sizes_.push_back(pricer_.local_size(State{}));
    for (std::uint32_t at = 0;
         at < index_.states().size() && moves_ <= kMostMoves; ++at) {
      grow(at);
    }
  }

  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Returns whether there are more moves than are kept; some are then missing.
  bool is_too_large() const { return moves_ > kMostMoves; }
  const std::vector<State>& states() const { return index_.states(); }
  const Alphabet& alphabet() const { return alphabet_; }

  // Computes the costs from `source` to every state.
  void distances(std::uint32_t source, std::optional<std::int64_t> limit,
                 std::int64_t* costs) const {
    using Item = std::pair<std::int64_t, std::uint32_t>;
    std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
    std::fill_n(costs, states().size(), RedistributeRows::kImpossible);
    costs[source] = 0;
    queue.emplace(0, source);
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
        costs[to] = RedistributeRows::kImpossible;
      }
    }
  }

 private:
  void grow(std::uint32_t at) {
    const State state = states()[at];
    grown_.clear();
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
              grown_.push_back({number, price.nanoseconds, price.held_bytes});
              ++moves_;
            });
    edges_.emplace_back(grown_.begin(), grown_.end());
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

  // A move takes 24 bytes. Four mesh dims and a tensor of five dims stay below
  // this limit. Five mesh dims and three tensor dims have about seven million
  // moves.
  static constexpr std::int64_t kMostMoves = std::int64_t{1} << 22;

  const DeviceMesh& mesh_;
  const redistribute::ActiveDims& active_;
  Alphabet alphabet_;
  TensorMeta meta_;
  MovePricer pricer_;
  StateIndex index_;
  std::vector<LocalSize> sizes_;
  std::vector<std::vector<Edge>> edges_;
  std::vector<Edge> grown_;  // the edges of the layout that grow() is at
  std::int64_t moves_ = 0;
};

}  // namespace

struct RedistributeRows::Body {
  Body(std::shared_ptr<const RedistributePlanner::Body> the_planner,
       Alphabet alphabet, const TensorMeta& meta)
      : planner(std::move(the_planner)),
        graph(planner->mesh, planner->active, planner->times,
              std::move(alphabet), meta),
        shape(meta.shape()) {}

  std::shared_ptr<const RedistributePlanner::Body> planner;
  Graph graph;
  Dims shape;
  std::vector<Layout> layouts;
  std::unordered_map<Layout, std::size_t> index;
};

RedistributeRows::RedistributeRows(std::shared_ptr<const Body> body)
    : body_(std::move(body)) {}

Result<RedistributeRows> RedistributeRows::create(
    const RedistributePlanner& planner, const TensorMeta& meta,
    std::span<const Layout> wanted) {
  return guarded([&]() -> Result<RedistributeRows> {
    const auto& shared = *planner.body_;
    std::vector<Layout> named;
    for (const Layout& layout : wanted) {
      SP_CHECK(check_layout(layout, shared.mesh, meta));
      named.push_back(canonical(layout, shared.mesh, meta.shape()));
    }
    const Placement sum = Placement::partial(ReduceOp::kSum);
    if (is_defined(ReduceOp::kSum, meta.dtype())) {
      Placements sums(static_cast<std::size_t>(shared.mesh.ndim()), sum);
      SP_ASSIGN(Layout layout, Layout::create(std::move(sums)));
      named.push_back(std::move(layout));
    }
    SP_ASSIGN(Alphabet alphabet,
              Alphabet::create(shared.active, meta, named,
                               shared.options.split_factors));
    auto body =
        std::make_shared<Body>(planner.body_, std::move(alphabet), meta);
    if (body->graph.is_too_large()) {
      return fail(ErrorCode::kRedistributeMeshTooLarge,
                  to_string(meta) + " can be laid out on " +
                      to_string(shared.mesh) +
                      " in more ways than can be listed",
                  "merge mesh dims that always act together");
    }
    const Layout others = Layout::replicated(shared.mesh.ndim());
    for (const State& state : body->graph.states()) {
      Layout layout =
          to_layout(state, shared.active, body->graph.alphabet(), others);
      body->index.emplace(layout, body->layouts.size());
      body->layouts.push_back(std::move(layout));
    }
    return RedistributeRows(std::move(body));
  });
}

const std::vector<Layout>& RedistributeRows::layouts() const {
  return body_->layouts;
}

std::vector<std::int64_t> RedistributeRows::costs_from(std::size_t from) const {
  std::vector<std::int64_t> costs(body_->layouts.size());
  body_->graph.distances(static_cast<std::uint32_t>(from),
                         body_->planner->options.memory_limit, costs.data());
  return costs;
}

std::optional<std::size_t> RedistributeRows::index_of(
    const Layout& layout) const {
  const DeviceMesh& mesh = body_->planner->mesh;
  const auto found = body_->index.find(
      without_single_ranks(canonical(layout, mesh, body_->shape), mesh));
  if (found == body_->index.end()) return std::nullopt;
  return found->second;
}

}  // namespace shardprop
