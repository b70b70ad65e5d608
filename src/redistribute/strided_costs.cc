#include "redistribute/strided_costs.h"

#include "redistribute/planner_body.h"
#include "redistribute/shortest_paths.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <functional>

namespace shardprop {

using redistribute::Alphabet;
using redistribute::kUnreached;
using redistribute::Label;
using redistribute::label_of;
using redistribute::Mask;
using redistribute::Move;
using redistribute::nanoseconds_of;
using redistribute::ShortestPaths;
using redistribute::State;
using redistribute::to_state;
using redistribute::WaitingLayout;

// Search finds the costs from one layout, the nearest layouts first. It pauses
// once the cost to the requested layout is known. Labels count no steps.
class StridedCosts::Search : private ShortestPaths<Search> {
 public:
  // Without `makes_partials`, no move makes partials: they only help if source
  // or target have some.
  Search(StridedCosts& costs, std::uint32_t source, bool makes_partials)
      : costs_(costs), makes_partials_(makes_partials) {
    resize(costs.graph_.states().size());
    start(source);
  }

  Label label(std::uint32_t target) {
    resize(costs_.graph_.states().size());
    target_ = target;
    settle();
    return labels_[target];
  }

 private:
  friend ShortestPaths;

  bool is_finished(const WaitingLayout& next) {
    if (labels_[target_] > next.priority) return false;
    // The search continues here.
    queue_.push_back(next);
    std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
    return true;
  }

  void expand(std::uint32_t at) {
    std::vector<Run>& runs = costs_.runs_from(at);
    resize(costs_.graph_.states().size());
    for (Run& run : runs) {
      if (run.move == Move::kToPartial && !makes_partials_) continue;
      const Label least = labels_[at] + run.least;
      for (SharedMove& move : run.moves) {
        if (least >= labels_[move.to]) continue;
        relax(at, {run.move, run.group, 0}, move.to, least, [&] {
          if (move.label == kUnpriced) {
            move.label =
                label_of(costs_.prices_.price(at, run.move, run.group, move.to)
                             .nanoseconds,
                         0);
          }
          return move.label;
        });
      }
    }
  }

  StridedCosts& costs_;
  bool makes_partials_;
  std::uint32_t target_ = 0;
};

std::unique_ptr<StridedCosts> StridedCosts::create(
    const RedistributePlanner& planner, const TensorMeta& meta,
    std::span<const Layout> endpoints) {
  const auto& shared = *planner.body_;
  // The moves between the layouts on two mesh dims are far fewer than those
  // after which a planner gives up.
  constexpr int kMostDims = 2;
  if (shared.options.memory_limit || !shared.options.allow_empty_shards ||
      shared.active.count > kMostDims || !check_size(shared.mesh, meta)) {
    return nullptr;
  }
  std::vector<Layout> named(endpoints.begin(), endpoints.end());
  if (is_defined(ReduceOp::kSum, meta.dtype())) {
    auto sums =
        Layout::create(Placements(static_cast<std::size_t>(shared.mesh.ndim()),
                                  Placement::partial(ReduceOp::kSum)));
    if (!sums) throw InternalError("a layout of partials is malformed");
    named.push_back(*std::move(sums));
  }
  auto alphabet = Alphabet::create(shared.active, meta, named,
                                   shared.options.split_factors);
  if (!alphabet) return nullptr;
  return std::unique_ptr<StridedCosts>(
      new StridedCosts(planner.body_, *std::move(alphabet), meta));
}

StridedCosts::StridedCosts(
    std::shared_ptr<const RedistributePlanner::Body> planner, Alphabet alphabet,
    const TensorMeta& meta)
    : planner_(std::move(planner)),
      alphabet_(std::move(alphabet)),
      meta_(meta),
      graph_(planner_->active, alphabet_, planner_->mesh, meta_.shape()),
      prices_(planner_->times, planner_->active, alphabet_, meta_,
              graph_.states()) {}

StridedCosts::~StridedCosts() = default;

std::optional<std::uint32_t> StridedCosts::number(const Layout& layout) {
  const auto state = to_state(layout, planner_->active, alphabet_);
  if (!state || canonical(layout, planner_->mesh, meta_.shape()) != layout) {
    return std::nullopt;
  }
  return graph_.insert(*state);
}

std::optional<std::int64_t> StridedCosts::nanoseconds(std::uint32_t from,
                                                      std::uint32_t to) {
  const Mask reduced = mesh_dims(from, true);
  const Mask made = mesh_dims(to, true);
  if ((mesh_dims(from, false) & made) != 0) return std::nullopt;
  if (from == to) return 0;
  if (searches_.size() <= from) searches_.resize(from + 1);
  const bool makes_partials = (reduced | made) != 0;
  auto& search =
      makes_partials ? searches_[from].second : searches_[from].first;
  if (!search) search = std::make_unique<Search>(*this, from, makes_partials);
  const Label label = search->label(to);
  if (label == kUnreached) {
    throw InternalError("no path between two layouts");
  }
  return nanoseconds_of(label);
}

std::vector<StridedCosts::Run>& StridedCosts::runs_from(std::uint32_t at) {
  if (runs_.size() <= at) runs_.resize(graph_.states().size());
  std::vector<Run>& runs = runs_[at];
  if (!runs.empty()) return runs;
  prices_.resize(graph_.states().size());
  const State state = graph_.states()[at];
  graph_.for_each_move(
      state,
      [&](Move move, Mask group) {
        if (runs.empty() || !runs.back().moves.empty()) runs.emplace_back();
        runs.back().move = move;
        runs.back().group = group;
        runs.back().least =
            label_of(prices_.least_nanoseconds(at, move, group), 0);
        return true;
      },
      [&](Move, Mask, const State& produced) {
        const auto to = graph_.insert_canonical(produced);
        if (to && *to != at) runs.back().moves.push_back({*to, kUnpriced});
      });
  prices_.resize(graph_.states().size());
  return runs;
}

// Returns the mesh dims that are partial, or that shard.
Mask StridedCosts::mesh_dims(std::uint32_t layout, bool partial) const {
  const State& state = graph_.states()[layout];
  Mask found = 0;
  for (int i = 0; i < planner_->active.count; ++i) {
    const Alphabet::Symbol& symbol = alphabet_[state.symbol[i]];
    if (partial ? symbol.partial : symbol.shard()) found |= Mask{1} << i;
  }
  return found;
}

}  // namespace shardprop
