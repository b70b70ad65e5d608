#include "redistribute/redistribute_rows.h"

#include "base/guard.h"
#include "base/try.h"
#include "placement/single_ranks.h"
#include "redistribute/planner_body.h"
#include "redistribute/priced_moves.h"
#include "redistribute/shortest_paths.h"

#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

using redistribute::ActiveDims;
using redistribute::Alphabet;
using redistribute::kUnreached;
using redistribute::Label;
using redistribute::Mask;
using redistribute::nanoseconds_of;
using redistribute::PricedMove;
using redistribute::PricedMoves;
using redistribute::ShortestPaths;
using redistribute::State;

// RowSearch finds the costs from one layout to all others. Labels count no
// steps, because a row has no paths.
class RowSearch : private ShortestPaths<RowSearch> {
 public:
  RowSearch(const PricedMoves& moves, std::uint32_t source,
            std::optional<std::int64_t> memory_limit)
      : moves_(moves), source_(source), memory_limit_(memory_limit) {
    resize(moves.states().size());
    start(source);
    settle();
  }

  // The result is kImpossible without a path.
  std::int64_t nanoseconds(std::uint32_t to) const {
    return labels_[to] == kUnreached ? RedistributeRows::kImpossible
                                     : nanoseconds_of(labels_[to]);
  }

 private:
  friend ShortestPaths;

  void expand(std::uint32_t at) {
    const Label here = labels_[at];
    const Label* labels = labels_.data();
    for (const PricedMove& move : moves_.from(at)) {
      // Few moves pass, so the loop without the rest is much faster.
      if (here + move.label < labels[move.to]) improve(at, move);
    }
  }

  [[gnu::noinline]] void improve(std::uint32_t at, const PricedMove& move) {
    relax(at, {}, move.to, labels_[at] + move.label, [&] {
      const std::int64_t kept = at == source_ ? 0 : moves_.bytes(source_);
      const bool fits =
          !memory_limit_ || move.held_bytes + kept <= *memory_limit_;
      return fits ? move.label : kUnreached;
    });
  }

  const PricedMoves& moves_;
  std::uint32_t source_;
  std::optional<std::int64_t> memory_limit_;
};

// Kinds are the active mesh dims of a layout that shard or are partial.
struct Kinds {
  Mask sharded = 0;
  Mask partial = 0;
};

Kinds kinds_of(const State& state, const ActiveDims& active,
               const Alphabet& alphabet) {
  Kinds kinds;
  for (int i = 0; i < active.count; ++i) {
    const Alphabet::Symbol& symbol = alphabet[state.symbol[i]];
    if (symbol.shard()) kinds.sharded |= Mask{1} << i;
    if (symbol.partial) kinds.partial |= Mask{1} << i;
  }
  return kinds;
}

}  // namespace

struct RedistributeRows::Body {
  // Returns null if there are too many layouts or moves to store.
  static std::shared_ptr<Body> create(
      std::shared_ptr<const RedistributePlanner::Body> planner,
      Alphabet alphabet, const TensorMeta& meta) {
    auto body = std::make_shared<Body>();
    body->planner = std::move(planner);
    body->alphabet = std::move(alphabet);
    const auto& shared = *body->planner;
    if (body->alphabet.has_strided()) {
      body->moves.emplace(shared.times, shared.active, body->alphabet,
                          shared.mesh, meta);
    } else {
      const auto graph = shared.graphs.listed(shared.active, body->alphabet);
      if (graph == nullptr) return nullptr;
      body->moves.emplace(shared.times, shared.active, *graph, meta,
                          shared.options.memory_limit.has_value());
    }
    if (body->moves->is_too_large()) return nullptr;
    body->shape = meta.shape();
    const Layout others = Layout::replicated(shared.mesh.ndim());
    for (const State& state : body->moves->states()) {
      body->kinds.push_back(kinds_of(state, shared.active, body->alphabet));
      Layout layout = to_layout(state, shared.active, body->alphabet, others);
      body->index.emplace(layout, body->layouts.size());
      body->layouts.push_back(std::move(layout));
    }
    return body;
  }

  bool is_shard_to_partial(std::size_t from, std::size_t to) const {
    return (kinds[from].sharded & kinds[to].partial) != 0;
  }

  std::shared_ptr<const RedistributePlanner::Body> planner;
  Alphabet alphabet;
  std::optional<PricedMoves> moves;
  Dims shape;
  std::vector<Layout> layouts;
  std::vector<Kinds> kinds;  // by layout
  std::unordered_map<Layout, std::size_t> index;
};

RedistributeRows::RedistributeRows(std::shared_ptr<const Body> body)
    : body_(std::move(body)) {}

Result<RedistributeRows> RedistributeRows::create(
    const RedistributePlanner& planner, const TensorMeta& meta,
    std::span<const Layout> wanted) {
  return guarded([&]() -> Result<RedistributeRows> {
    const Placement sum = Placement::partial(ReduceOp::kSum);
    std::vector<Layout> sums;
    if (is_defined(ReduceOp::kSum, meta.dtype())) {
      const int dims = planner.body_->mesh.ndim();
      SP_ASSIGN(Layout layout, Layout::create(Placements(
                                   static_cast<std::size_t>(dims), sum)));
      sums.push_back(std::move(layout));
    }
    return of_alphabet(planner, meta, std::move(sums), wanted);
  });
}

Result<RedistributeRows> RedistributeRows::create_between(
    const RedistributePlanner& planner, const TensorMeta& meta,
    std::span<const Layout> ends) {
  return guarded([&]() -> Result<RedistributeRows> {
    return of_alphabet(planner, meta, {}, ends);
  });
}

// Returns rows with the placements of all these layouts. Those of `checked` are
// the caller's.
Result<RedistributeRows> RedistributeRows::of_alphabet(
    const RedistributePlanner& planner, const TensorMeta& meta,
    std::vector<Layout> named, std::span<const Layout> checked) {
  const auto& shared = *planner.body_;
  SP_CHECK(check_size(shared.mesh, meta));
  for (const Layout& layout : checked) {
    SP_CHECK(check_layout(layout, shared.mesh, meta));
    named.push_back(canonical(layout, shared.mesh, meta.shape()));
  }
  SP_ASSIGN(Alphabet alphabet, Alphabet::create(shared.active, meta, named,
                                                shared.options.split_factors));
  auto body = Body::create(planner.body_, std::move(alphabet), meta);
  if (body == nullptr) {
    return fail(ErrorCode::kRedistributeMeshTooLarge,
                to_string(meta) + " can be laid out on " +
                    to_string(shared.mesh) + " in more ways than can be listed",
                "merge mesh dims that always act together");
  }
  return RedistributeRows(std::move(body));
}

const std::vector<Layout>& RedistributeRows::layouts() const {
  return body_->layouts;
}

std::vector<std::int64_t> RedistributeRows::costs_from(std::size_t from) const {
  const RowSearch search(*body_->moves, static_cast<std::uint32_t>(from),
                         body_->planner->options.memory_limit);
  std::vector<std::int64_t> costs(body_->layouts.size(), kImpossible);
  for (std::size_t to = 0; to < costs.size(); ++to) {
    if (body_->is_shard_to_partial(from, to)) continue;
    costs[to] = search.nanoseconds(static_cast<std::uint32_t>(to));
  }
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
