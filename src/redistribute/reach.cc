#include "redistribute/reach.h"

#include "redistribute/planner_body.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace shardprop::redistribute {
namespace {

bool sends(Move move) {
  return move == Move::kGather || move == Move::kReduceScatter ||
         move == Move::kReduce || move == Move::kExchange;
}

}  // namespace

std::unique_ptr<Reach> Reach::from(const RedistributePlanner& planner,
                                   const Layout& source, const TensorMeta& meta,
                                   std::span<const Placement> partials) {
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
  auto listed = body.graphs.listed(
      body.active, body.mesh.ndim(), meta,
      std::span<const Placement>(known.data(), known.size()));
  if (listed == nullptr) return nullptr;
  return std::unique_ptr<Reach>(
      new Reach(planner, std::move(listed), source, meta));
}

Reach::Reach(const RedistributePlanner& planner,
             std::shared_ptr<const ListedLayouts> listed, const Layout& source,
             const TensorMeta& meta)
    : planner_(planner),
      listed_(std::move(listed)),
      graph_(listed_->graph),
      source_layout_(source),
      meta_(meta),
      pricer_(planner_.body_->times, planner_.body_->active, listed_->alphabet,
              meta_) {
  const auto state = to_state(source, active(), listed_->alphabet);
  if (!state) throw InternalError("a layout lies outside its own alphabet");
  source_ = graph_.number(*state);
}

Reach::~Reach() = default;

const ActiveDims& Reach::active() const { return planner_.body_->active; }

void Reach::extend(std::int64_t nanoseconds) {
  if (is_complete_ || nanoseconds <= limit_) return;
  limit_ = nanoseconds;
  const std::size_t count = graph_.states().size();
  nodes_.resize(count);
  labels_.assign(count, kUnreached);
  labels_[source_] = 0;
  unreached_ = count - 1;
  is_complete_ = true;
  nodes_[source_].before = kNone;
  queue_.clear();
  queue_.push_back({0, source_});
  const Label most =
      label_of(std::min(limit_, nanoseconds_of(kUnreached) - 1), 63);
  Label largest = kUnreached;  // once all are reached, none has more
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    const Waiting next = queue_.back();
    queue_.pop_back();
    if (next.label > labels_[next.node]) continue;
    if (unreached_ == 0) {
      if (largest == kUnreached) {
        largest = *std::max_element(labels_.begin(), labels_.end());
      }
      if (next.label + 1 >= largest) break;
    }
    expand(next.node, most);
  }
}

// After a slice: to slice again is one larger slice, and what gathers or
// exchanges some of what was just cut is a smaller or another one.
bool Reach::is_needless(const LayoutGraph::Run& run, std::uint32_t at) const {
  const Node& node = nodes_[at];
  if (node.before == kNone || node.move != Move::kSlice) return false;
  return run.move == Move::kSlice ||
         ((run.move == Move::kGather || run.move == Move::kExchange) &&
          (run.group & ~node.group) == 0);
}

void Reach::expand(std::uint32_t at, Label most) {
  const Label here = labels_[at];
  const bool has_elements = meta_.numel() > 0;
  for (const LayoutGraph::Run& run : graph_.runs(at)) {
    if (is_needless(run, at)) continue;
    Label least = here + 1;
    if (has_elements && sends(run.move)) {
      least +=
          label_of(pricer_.least(run.move, run.group, sizes_[size_of(at)]), 0);
      if (least > most) {
        is_complete_ = false;
        continue;
      }
    }
    const auto targets = graph_.targets(run);
    const auto forms = graph_.forms(run);
    for (std::size_t k = 0; k < targets.size(); ++k) {
      const std::uint32_t to = targets[k];
      if (least >= labels_[to]) continue;
      const Label label = here + label_of(price(at, run, forms[k], to), 1);
      if (label >= labels_[to]) continue;
      if (label > most) {
        is_complete_ = false;
        continue;
      }
      if (labels_[to] == kUnreached) --unreached_;
      labels_[to] = label;
      Node& node = nodes_[to];
      node.before = at;
      node.move = run.move;
      node.group = run.group;
      queue_.push_back({label, to});
      std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
    }
  }
}

std::uint32_t Reach::size_of(std::uint32_t number) {
  Node& node = nodes_[number];
  if (node.size == kNone) {
    node.size = static_cast<std::uint32_t>(sizes_.size());
    sizes_.push_back(pricer_.local_size(graph_.states()[number]));
  }
  return node.size;
}

std::int64_t Reach::price(std::uint32_t at, const LayoutGraph::Run& run,
                          MoveForm form, std::uint32_t to) {
  if (!sends(run.move)) return 0;
  const auto priced = [&] {
    const auto& states = graph_.states();
    const std::uint32_t before = size_of(at);
    const std::uint32_t after = size_of(to);
    return pricer_
        .price(run.move, run.group, states[at], sizes_[before], states[to],
               sizes_[after])
        .nanoseconds;
  };
  const auto key = price_key(at, run, form, to);
  if (!key) return priced();
  const std::int64_t parts = graph_.all_parts(at);
  Remembered& entry =
      prices_[hash_mix(*key, static_cast<std::uint64_t>(parts)) %
              prices_.size()];
  if (entry.key != *key || entry.parts != parts) {
    entry = {*key, parts, priced()};
  }
  return entry.nanoseconds;
}

std::optional<std::uint64_t> Reach::price_key(std::uint32_t at,
                                              const LayoutGraph::Run& run,
                                              MoveForm form,
                                              std::uint32_t to) const {
  for (const std::uint32_t side : {at, to}) {
    const auto parts = graph_.parts(side);
    for (std::size_t d = 0; d < parts.size(); ++d) {
      if (meta_.size(static_cast<int>(d)) % parts[d] != 0) return std::nullopt;
    }
  }
  std::uint64_t key = static_cast<std::uint64_t>(run.move) << 8 | run.group;
  if (run.move == Move::kExchange) return key << 24 | form;
  // What is gathered lies whole at the target, what is scattered at the source.
  const bool gathers = run.move == Move::kGather;
  if (gathers) return key << 24 | (is_staged(form, to) ? 1U : 0U);
  const State& from = graph_.states()[at];
  std::uint64_t terms = 0;
  for (int i = 0; i < active().count; ++i) {
    if ((run.group >> i & 1U) == 0) continue;
    const int term = from.symbol[i] - alphabet().first_partial();
    if (term >= 16) return std::nullopt;
    terms |= std::uint64_t{1} << term;
  }
  const bool staged = run.move == Move::kReduceScatter && is_staged(form, at);
  return key << 24 | terms << 1 | (staged ? 1U : 0U);
}

// Whether shards of the cut dim do not follow one another in memory of `whole`.
bool Reach::is_staged(MoveForm form, std::uint32_t whole) const {
  if (form == kManyDims) return true;
  const auto parts = graph_.parts(whole);
  for (std::size_t d = 0; d < form; ++d) {
    if (meta_.size(static_cast<int>(d)) > parts[d]) return true;
  }
  return false;
}

std::int64_t Reach::nanoseconds(std::uint64_t code) const {
  const auto number = graph_.find(code);
  if (!number || labels_.empty() || labels_[*number] == kUnreached) {
    return kBeyond;
  }
  return nanoseconds_of(labels_[*number]);
}

RedistributePlan Reach::plan(const Layout& target) const {
  const auto state = to_state(target, active(), alphabet());
  if (!state) throw InternalError("a plan to a layout that is not listed");
  Path path;
  std::uint32_t at = graph_.number(*state);
  path.nanoseconds = nanoseconds_of(labels_[at]);
  for (; nodes_[at].before != kNone; at = nodes_[at].before) {
    path.steps.push_back({nodes_[at].move, nodes_[at].group,
                          graph_.states()[nodes_[at].before],
                          graph_.states()[at]});
  }
  std::reverse(path.steps.begin(), path.steps.end());
  return planner_.body_->along(path, alphabet(), source_layout_, target, meta_);
}

}  // namespace shardprop::redistribute
