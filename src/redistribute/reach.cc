#include "redistribute/reach.h"

#include "redistribute/planner_body.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace shardprop::redistribute {

std::unique_ptr<Reach> Reach::from(const RedistributePlanner& planner,
                                   const Layout& source, const TensorMeta& meta,
                                   std::span<const Placement> partials,
                                   Orders orders) {
  const RedistributePlanner::Body& body = *planner.body_;
  if (source.has_strided() || body.options.memory_limit ||
      !body.options.allow_empty_shards || !check_size(body.mesh, meta) ||
      body.options.split_factors == SplitFactors::kAll) {
    return nullptr;
  }
  InlineVector<Placement, 8> known;
  const auto know = [&](Placement placement) {
    if (placement.is_partial() &&
        std::find(known.begin(), known.end(), placement) == known.end()) {
      known.push_back(placement);
    }
  };
  for (const std::int32_t m : body.active.mesh_dims) know(source[m]);
  for (const Placement partial : partials) know(partial);
  auto graph = body.graphs.listed(
      body.active, body.mesh.ndim(), meta,
      std::span<const Placement>(known.data(), known.size()));
  if (graph == nullptr) return nullptr;
  return std::unique_ptr<Reach>(
      new Reach(planner, std::move(graph), source, meta, partials, orders));
}

Reach::Reach(const RedistributePlanner& planner,
             std::shared_ptr<const LayoutGraph> graph, const Layout& source,
             const TensorMeta& meta, std::span<const Placement> partials,
             Orders orders)
    : planner_(planner),
      graph_(std::move(graph)),
      source_layout_(source),
      meta_(meta),
      partials_(partials.begin(), partials.end()),
      orders_(orders),
      prices_(planner_.body_->times, planner_.body_->active, *graph_, meta_) {
  const auto state = to_state(source, active(), graph_->alphabet());
  if (!state) throw InternalError("a layout lies outside its own alphabet");
  source_ = graph_->number(*state);
  if (meta.numel() == 0) return;
  const GroupTimes& times = planner_.body_->times;
  any_collective_ = kUnreached;
  for (Mask group = 1; group <= times.all(); ++group) {
    any_collective_ =
        std::min(any_collective_, label_of(times.least_nanoseconds(group), 1));
  }
  if (orders == Orders::kOfMesh) back_ = any_collective_;
}

bool Reach::is_from(const Layout& source, const TensorMeta& meta,
                    std::span<const Placement> partials, Orders orders) const {
  return orders == orders_ && meta == meta_ && source == source_layout_ &&
         std::equal(partials.begin(), partials.end(), partials_.begin(),
                    partials_.end());
}

Reach::~Reach() = default;

const ActiveDims& Reach::active() const { return planner_.body_->active; }

void Reach::extend(std::int64_t nanoseconds) {
  const bool begins = limit_ < 0;
  if (nanoseconds <= limit_ || (!begins && postponed_.empty())) return;
  whole_ = false;
  limit_ = nanoseconds;
  most_ = label_of(std::min(limit_, nanoseconds_of(kUnreached) - 1), 63);
  if (begins) {
    resize(graph_->states().size());
    prices_.resize(graph_->states().size());
    start(source_);
  }
  std::vector<Postponed> again;
  again.swap(postponed_);
  for (const Postponed& one : again) {
    if (one.least > most_) {
      postponed_.push_back(one);
    } else if (one.run == kCollectives) {
      expand(one.at, true);
    } else {
      const Exits& exits = graph_->exits(one.at, scratch_);
      follow(*graph_, prices_, one.at, exits, one.run);
    }
  }
  largest_ = kUnreached;
  settle();
  whole_ = true;
}

bool Reach::is_finished(const WaitingLayout& next) {
  if (unreached_ != 0) return false;
  if (largest_ == kUnreached) {
    largest_ = *std::max_element(labels_.begin(), labels_.end());
  }
  if (next.priority + 1 <= largest_) return false;
  postponed_.clear();
  queue_.clear();
  return true;
}

std::int64_t Reach::beyond() const {
  Label least = kUnreached;
  for (const Postponed& one : postponed_) least = std::min(least, one.least);
  return least == kUnreached ? kBeyond : nanoseconds_of(least);
}

// After a slice, a second slice equals one larger slice. A gather or exchange
// of a dim that was just sliced equals a smaller or another slice.
bool Reach::is_needless(const Exits::Run& run, std::uint32_t at) const {
  const Arrival& arrival = arrivals_[at];
  if (arrival.before == kNone || arrival.move != Move::kSlice) return false;
  return run.move == Move::kSlice ||
         ((run.move == Move::kGather || run.move == Move::kExchange) &&
          (run.group & ~arrival.group) == 0);
}

void Reach::expand(std::uint32_t at, bool only_collectives) {
  const bool any_fits = labels_[at] + any_collective_ <= most_;
  if (!any_fits) postpone(labels_[at] + any_collective_, at, kCollectives);
  const Exits& exits = graph_->exits(at, scratch_);
  for (std::uint32_t r = 0; r < exits.runs.size(); ++r) {
    const Exits::Run& run = exits.runs[r];
    const bool fits = sends(run.move) ? any_fits : !only_collectives;
    if (fits && !is_needless(run, at)) follow(*graph_, prices_, at, exits, r);
  }
}

bool Reach::is_preferred(std::uint32_t at, const Step& step,
                         const Arrival& known) const {
  if (known.before == kNone) return false;
  const std::uint32_t known_run = known.run;
  return std::tie(labels_[at], at, step.run) <
         std::tie(labels_[known.before], known.before, known_run);
}

bool Reach::is_asked(std::uint64_t code) const {
  const auto number = graph_->find(code);
  return number &&
         (orders_ == Orders::kAll || graph_->is_in_mesh_order(*number));
}

std::int64_t Reach::nanoseconds(std::uint64_t code) const {
  const auto number = graph_->find(code);
  if (!number || labels_.empty() || labels_[*number] == kUnreached) {
    return kBeyond;
  }
  return nanoseconds_of(labels_[*number]);
}

RedistributePlan Reach::plan(const Layout& target) const {
  const auto state = to_state(target, active(), alphabet());
  if (!state) throw InternalError("a plan to a layout that is not listed");
  const Path path = path_to(graph_->number(*state), graph_->states());
  return planner_.body_->along(path, alphabet(), source_layout_, target, meta_);
}

}  // namespace shardprop::redistribute
