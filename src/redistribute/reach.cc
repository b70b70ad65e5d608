#include "redistribute/reach.h"

#include "redistribute/planner_body.h"

#include <algorithm>
#include <functional>
#include <tuple>
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
      empty_(meta.numel() == 0),
      pricer_(planner_.body_->times, planner_.body_->active, graph_->alphabet(),
              meta_) {
  const auto state = to_state(source, active(), graph_->alphabet());
  if (!state) throw InternalError("a layout lies outside its own alphabet");
  source_ = graph_->number(*state);
  if (empty_) return;
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
    const std::size_t count = graph_->states().size();
    nodes_.resize(count);
    labels_.assign(count, kUnreached);
    labels_[source_] = 0;
    unreached_ = count - 1;
    queue_.push_back({0, source_});
  }
  std::vector<Postponed> again;
  again.swap(postponed_);
  for (const Postponed& one : again) {
    if (one.least > most_) {
      postponed_.push_back(one);
    } else if (one.run == kCollectives) {
      expand(one.at, true);
    } else {
      relax(one.at, graph_->exits(one.at, scratch_), one.run);
    }
  }
  settle();
  whole_ = true;
}

void Reach::settle() {
  Label largest = kUnreached;  // of all labels, once all are reached
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    const Waiting next = queue_.back();
    queue_.pop_back();
    if (next.label > labels_[next.node]) continue;
    if (unreached_ == 0) {
      if (largest == kUnreached) {
        largest = *std::max_element(labels_.begin(), labels_.end());
      }
      if (next.label + 1 > largest) {
        postponed_.clear();
        queue_.clear();
        return;
      }
    }
    expand(next.node, false);
  }
}

std::int64_t Reach::beyond() const {
  Label least = kUnreached;
  for (const Postponed& one : postponed_) least = std::min(least, one.least);
  return least == kUnreached ? kBeyond : nanoseconds_of(least);
}

// After a slice, a second slice equals one larger slice. A gather or exchange
// of a dim that was just sliced equals a smaller or another slice.
bool Reach::is_needless(const Exits::Run& run, std::uint32_t at) const {
  const Node& node = nodes_[at];
  if (node.before == kNone || node.move != Move::kSlice) return false;
  return run.move == Move::kSlice ||
         ((run.move == Move::kGather || run.move == Move::kExchange) &&
          (run.group & ~node.group) == 0);
}

void Reach::expand(std::uint32_t at, bool only_collectives) {
  const bool any_fits = labels_[at] + any_collective_ <= most_;
  if (!any_fits) {
    postponed_.push_back({labels_[at] + any_collective_, at, kCollectives});
  }
  const Exits& exits = graph_->exits(at, scratch_);
  for (std::uint32_t r = 0; r < exits.runs.size(); ++r) {
    const Exits::Run& run = exits.runs[r];
    const bool fits = sends(run.move) ? any_fits : !only_collectives;
    if (fits && !is_needless(run, at)) relax(at, exits, r);
  }
}

// Returns a lower bound on the labels that the moves of the run reach.
Label Reach::least_of(std::uint32_t at, const Exits::Run& run) {
  const Label least = labels_[at] + 1;
  if (!sends(run.move) || empty_) return least;
  if (run.move == Move::kExchange) return least + least_exchange(at, run.group);
  const GroupTimes& times = planner_.body_->times;
  return least + label_of(times.least_nanoseconds(run.move, run.group), 0);
}

Label Reach::least_exchange(std::uint32_t at, Mask group) {
  const std::int64_t bytes = shard_bytes(at);
  LeastExchange& entry =
      least_exchanges_[hash_mix(group, static_cast<std::uint64_t>(bytes)) %
                       least_exchanges_.size()];
  if (entry.bytes != bytes || entry.group != group) {
    entry = {bytes, group, label_of(pricer_.least_exchange(group, bytes), 0)};
  }
  return entry.least;
}

// The order is that in which one search without a limit finds the paths.
bool Reach::is_before(std::uint32_t at, std::uint32_t run,
                      const Node& known) const {
  if (known.before == kNone) return false;
  return std::tuple(labels_[at], at, run) <
         std::tuple(labels_[known.before], known.before, known.run);
}

void Reach::relax(std::uint32_t at, const Exits& exits, std::uint32_t number) {
  const Exits::Run& run = exits.runs[number];
  const Label least = least_of(at, run);
  if (least > most_) {
    postponed_.push_back({least, at, number});
    return;
  }
  const bool evenly = is_even(at);
  // Prices of the forms that moves of the run have.
  std::array<std::int64_t, kExchangeForms> by_form;
  by_form.fill(-1);
  Label later = kUnreached;
  const Targets& targets = graph_->targets(at, exits, number, scratch_);
  std::size_t count = targets.states.size();
  if (least + back_ > most_ && targets.in_order != count) {
    later = least + back_;
    count = targets.in_order;
  }
  for (std::size_t k = 0; k < count; ++k) {
    const std::uint32_t to = targets.states[k];
    if (least > labels_[to]) continue;
    Label label = labels_[at] + 1;
    if (sends(run.move)) {
      std::int64_t nanoseconds = 0;
      if (evenly && is_even(to)) {
        const unsigned form = form_of(run, targets.forms[k], at, to);
        if (by_form[form] < 0) by_form[form] = even_price(at, run, form, to);
        nanoseconds = by_form[form];
      } else {
        nanoseconds = price(at, run, to);
      }
      label += label_of(nanoseconds, 0);
    }
    if (label > labels_[to]) continue;
    const bool is_new = label < labels_[to];
    if (!is_new && !is_before(at, number, nodes_[to])) continue;
    const Label asked = label + (graph_->is_in_mesh_order(to) ? 0 : back_);
    if (asked > most_) {
      later = std::min(later, asked);
      continue;
    }
    if (labels_[to] == kUnreached) --unreached_;
    labels_[to] = label;
    Node& node = nodes_[to];
    node.before = at;
    node.move = run.move;
    node.group = run.group;
    node.run = static_cast<std::uint16_t>(number);
    if (!is_new) continue;
    queue_.push_back({label, to});
    std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
  }
  if (later != kUnreached) postponed_.push_back({later, at, number});
}

std::uint32_t Reach::size_of(std::uint32_t number) {
  Node& node = nodes_[number];
  if (node.size == kNone) {
    node.size = static_cast<std::uint32_t>(sizes_.size());
    sizes_.push_back(pricer_.local_size(graph_->states()[number]));
  }
  return node.size;
}

std::int64_t Reach::shard_bytes(std::uint32_t number) {
  Node& node = nodes_[number];
  if (node.bytes < 0) {
    node.bytes = is_even(number) ? meta_.bytes() / graph_->all_parts(number)
                                 : pricer_.bytes(sizes_[size_of(number)]);
  }
  return node.bytes;
}

bool Reach::is_even(std::uint32_t number) {
  Node& node = nodes_[number];
  if (node.shards == Shards::kUnknown) {
    const auto parts = graph_->parts(number);
    bool even = true;
    for (std::size_t d = 0; d < parts.size() && even; ++d) {
      even = parts[d] == 1 || meta_.size(static_cast<int>(d)) % parts[d] == 0;
    }
    node.shards = even ? Shards::kEven : Shards::kUneven;
  }
  return node.shards == Shards::kEven;
}

std::int64_t Reach::price(std::uint32_t at, const Exits::Run& run,
                          std::uint32_t to) {
  const auto& states = graph_->states();
  const std::uint32_t before = size_of(at);
  const std::uint32_t after = size_of(to);
  return pricer_
      .price(run.move, run.group, states[at], sizes_[before], states[to],
             sizes_[after])
      .nanoseconds;
}

// Between even shards, a price depends on the group, the size of the shard at
// the start, this form, and the reduced partials.
unsigned Reach::form_of(const Exits::Run& run, MoveForm form, std::uint32_t at,
                        std::uint32_t to) const {
  switch (run.move) {
    case Move::kExchange:
      return form;
    // A gather leaves the full dim at the target; a reduce-scatter starts with
    // it at the source.
    case Move::kGather:
      return is_staged(form, to) ? 1 : 0;
    case Move::kReduceScatter:
      return is_staged(form, at) ? 1 : 0;
    default:
      return 0;
  }
}

std::int64_t Reach::even_price(std::uint32_t at, const Exits::Run& run,
                               unsigned form, std::uint32_t to) {
  std::uint64_t key = static_cast<std::uint64_t>(run.move) << 11 |
                      static_cast<std::uint64_t>(run.group) << 3 | form;
  const State& from = graph_->states()[at];
  for (int i = 0; i < active().count; ++i) {
    if ((run.group >> i & 1U) == 0) continue;
    const int term = from.symbol[i] - alphabet().first_partial();
    if (term >= 16) return price(at, run, to);
    if (term >= 0) key |= std::uint64_t{1} << (16 + term);
  }
  const std::int64_t parts = graph_->all_parts(at);
  Remembered& entry = prices_[hash_mix(key, static_cast<std::uint64_t>(parts)) %
                              prices_.size()];
  if (entry.key != key || entry.parts != parts) {
    entry = {key, parts, price(at, run, to)};
  }
  return entry.nanoseconds;
}

// Returns whether the shards of the cut dim are not consecutive in the memory
// of `whole`.
bool Reach::is_staged(MoveForm form, std::uint32_t whole) const {
  if (form == 0) return false;
  if (form == kManyDims) return true;
  const auto parts = graph_->parts(whole);
  for (std::size_t d = 0; d < form; ++d) {
    if (meta_.size(static_cast<int>(d)) > parts[d]) return true;
  }
  return false;
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
  Path path;
  std::uint32_t at = graph_->number(*state);
  path.nanoseconds = nanoseconds_of(labels_[at]);
  for (; nodes_[at].before != kNone; at = nodes_[at].before) {
    path.steps.push_back({nodes_[at].move, nodes_[at].group,
                          graph_->states()[nodes_[at].before],
                          graph_->states()[at]});
  }
  std::reverse(path.steps.begin(), path.steps.end());
  return planner_.body_->along(path, alphabet(), source_layout_, target, meta_);
}

}  // namespace shardprop::redistribute
