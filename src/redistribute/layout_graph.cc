#include "redistribute/layout_graph.h"

#include "base/index.h"

#include <algorithm>

namespace shardprop::redistribute {
namespace {

// Returns the tensor dim that all mesh dims of the group cut, or kManyDims.
MoveForm cut_dim(Mask group, const State& sharded, const ActiveDims& active,
                 const Alphabet& alphabet) {
  int dim = -1;
  for (int i = 0; i < active.count; ++i) {
    if ((group >> i & 1U) == 0) continue;
    const int cut = alphabet[sharded.symbol[i]].dim;
    if ((dim >= 0 && cut != dim) || cut >= kManyDims) return kManyDims;
    dim = cut;
  }
  return static_cast<MoveForm>(dim);
}

MoveForm exchange_form(Mask group, const State& from, const State& to,
                       const ActiveDims& active, const Alphabet& alphabet) {
  std::uint64_t left = 0;
  std::uint64_t cut = 0;
  for (int i = 0; i < active.count; ++i) {
    if ((group >> i & 1U) == 0) continue;
    left |= std::uint64_t{1} << alphabet[from.symbol[i]].dim;
    cut |= std::uint64_t{1} << alphabet[to.symbol[i]].dim;
  }
  // The cuts of mesh dims outside the group do not change; those of the group
  // are larger than 1.
  const auto parts = [&](const State& state, std::int16_t dim) {
    std::int64_t product = 1;
    for (int i = 0; i < active.count; ++i) {
      if ((group >> i & 1U) != 0 && alphabet[state.symbol[i]].dim == dim) {
        product *= active.sizes[index(i)];
      }
    }
    return product;
  };
  bool same_points = left == cut;
  for (int i = 0; i < active.count && same_points; ++i) {
    if ((group >> i & 1U) == 0) continue;
    const std::int16_t dim = alphabet[from.symbol[i]].dim;
    same_points = parts(from, dim) == parts(to, dim);
  }
  if (same_points) return kSamePoints;
  constexpr std::uint64_t kOutermost = 1;
  const MoveForm form = (left & cut) == 0 ? kOtherDims : kOverlapping;
  const bool unpacks = left != kOutermost && cut != kOutermost;
  return static_cast<MoveForm>(form + (unpacks ? kUnpacked : 0));
}

MoveForm form_of(Move move, Mask group, const State& from, const State& to,
                 const ActiveDims& active, const Alphabet& alphabet) {
  switch (move) {
    case Move::kGather:
      return cut_dim(group, from, active, alphabet);
    case Move::kReduceScatter:
      return cut_dim(group, to, active, alphabet);
    case Move::kExchange:
      return exchange_form(group, from, to, active, alphabet);
    default:
      return 0;
  }
}

}  // namespace

std::shared_ptr<const LayoutGraph> LayoutGraph::build(const ActiveDims& active,
                                                      const Alphabet& alphabet,
                                                      std::size_t most_states) {
  std::shared_ptr<LayoutGraph> graph(new LayoutGraph(active, alphabet));
  if (!graph->find_states(most_states)) return nullptr;
  graph->count_parts();
  graph->kept_ = std::vector<std::atomic<const Exits*>>(graph->states().size());
  return graph;
}

LayoutGraph::LayoutGraph(const ActiveDims& active, Alphabet alphabet)
    : active_(active),
      alphabet_(std::move(alphabet)),
      rank_(alphabet_.first_partial() - std::size_t{1}) {}

bool LayoutGraph::find_states(std::size_t most_states) {
  const MoveTable table(active_, alphabet_);
  // Each layout is the replicated one with some mesh dims made partial and then
  // some other mesh dims sharded.
  index_.insert(State{});
  const auto add = [&](Move, Mask, const State& to) {
    if (states().size() <= most_states) index_.insert(to);
  };
  for (const Move kind : {Move::kToPartial, Move::kSlice}) {
    const auto admit = [&](Move move, Mask) { return move == kind; };
    const std::size_t count = states().size();
    for (std::size_t at = 0; at < count; ++at) {
      table.for_each(State(states()[at]), admit, add);
    }
    if (states().size() > most_states) return false;
  }
  return true;
}

const Exits& LayoutGraph::list_exits(std::uint32_t state,
                                     Exits& scratch) const {
  scratch.runs.clear();
  MoveTable(active_, alphabet_)
      .for_each(
          states()[state],
          [&](Move move, Mask group) {
            scratch.runs.push_back({move, static_cast<std::uint8_t>(group)});
            return false;
          },
          [](Move, Mask, const State&) {});
  const std::scoped_lock lock(mutex_);
  std::atomic<const Exits*>& kept = kept_[state];
  if (const Exits* other = kept.load(std::memory_order_relaxed)) return *other;
  if (count_kept_ >= kMostKept) return scratch;
  Exits& exits = kept_exits_.emplace_back();
  exits.runs = scratch.runs;
  exits.targets = std::vector<std::atomic<const Targets*>>(scratch.runs.size());
  count_kept_ += scratch.runs.size();
  kept.store(&exits, std::memory_order_release);
  return exits;
}

const Targets& LayoutGraph::list_targets(std::uint32_t state,
                                         const Exits& exits, std::size_t run,
                                         Targets& scratch) const {
  list(state, exits.runs[run], scratch);
  const std::scoped_lock lock(mutex_);
  std::atomic<const Targets*>& kept = exits.targets[run];
  if (const Targets* other = kept.load(std::memory_order_relaxed)) {
    return *other;
  }
  if (count_kept_ >= kMostKept) return scratch;
  const Targets& targets = kept_targets_.emplace_back(scratch);
  count_kept_ += scratch.states.size();
  kept.store(&targets, std::memory_order_release);
  return targets;
}

void LayoutGraph::list(std::uint32_t state, Exits::Run run,
                       Targets& targets) const {
  targets.states.clear();
  targets.forms.clear();
  std::vector<std::uint32_t> later;
  MoveTable(active_, alphabet_)
      .for_each(
          states()[state], [&](Move move, Mask) { return move == run.move; },
          [&](Move, Mask, const State& target) {
            const std::uint32_t to = number(target);
            (is_in_mesh_order(to) ? targets.states : later).push_back(to);
          },
          run.group);
  targets.in_order = targets.states.size();
  targets.states.insert(targets.states.end(), later.begin(), later.end());
  targets.forms.reserve(targets.states.size());
  for (const std::uint32_t to : targets.states) {
    targets.forms.push_back(form_of(run.move, run.group, states()[state],
                                    states()[to], active_, alphabet_));
  }
}

void LayoutGraph::count_parts() {
  parts_.assign(states().size() * rank_, 1);
  all_parts_.assign(states().size(), 1);
  in_mesh_order_.assign(states().size(), 1);
  for (std::size_t at = 0; at < states().size(); ++at) {
    const State& state = states()[at];
    for (int i = 0; i < active_.count; ++i) {
      const std::int16_t dim = alphabet_[state.symbol[i]].dim;
      if (dim < 0) continue;
      for (int j = 0; j < i; ++j) {
        if (alphabet_[state.symbol[j]].dim == dim &&
            state.order[j] > state.order[i]) {
          in_mesh_order_[at] = 0;
        }
      }
      const std::int64_t size = active_.sizes[index(i)];
      parts_[at * rank_ + index(dim)] *= size;
      all_parts_[at] *= size;
    }
  }
}

LayoutGraphs::Entry& LayoutGraphs::entry_of(const Key& key) const {
  if (entries_.size() >= kMostEntries && !entries_.contains(key)) {
    entries_.clear();
  }
  return entries_[key];
}

void LayoutGraphs::build(Entry& entry, const ActiveDims& active,
                         const Alphabet& alphabet, std::size_t most_states) {
  if (entry.graph != nullptr || entry.tried >= most_states) return;
  entry.tried = most_states;
  entry.graph = LayoutGraph::build(active, alphabet, most_states);
}

LayoutGraphs::Key LayoutGraphs::key_of(const Alphabet& alphabet) {
  Key key{alphabet.first_partial()};
  for (std::uint8_t s = alphabet.first_partial(); s < alphabet.size(); ++s) {
    key.push_back(alphabet[s].placement.bits());
  }
  return key;
}

std::shared_ptr<const LayoutGraph> LayoutGraphs::get(
    const ActiveDims& active, const Alphabet& alphabet) const {
  if (alphabet.has_strided()) return nullptr;
  const Key key = key_of(alphabet);
  const std::scoped_lock lock(mutex_);
  Entry& entry = entry_of(key);
  if (++entry.asked >= kAskedBefore) {
    build(entry, active, alphabet, kMostStates);
  }
  return entry.graph;
}

std::shared_ptr<const LayoutGraph> LayoutGraphs::listed(
    const ActiveDims& active, const Alphabet& alphabet) const {
  const Key key = key_of(alphabet);
  const std::scoped_lock lock(mutex_);
  Entry& entry = entry_of(key);
  build(entry, active, alphabet, kMostListed);
  return entry.graph;
}

std::shared_ptr<const LayoutGraph> LayoutGraphs::listed(
    const ActiveDims& active, int mesh_ndim, const TensorMeta& meta,
    std::span<const Placement> partials) const {
  Key key{static_cast<std::uint64_t>(meta.rank()) + 1};
  for (const Placement partial : partials) key.push_back(partial.bits());
  // The partials are in the order of Alphabet::create().
  std::sort(key.begin() + 1, key.end());
  const std::scoped_lock lock(mutex_);
  Entry& entry = entry_of(key);
  if (entry.graph != nullptr || entry.tried >= kMostListed) {
    return entry.graph;
  }
  std::vector<Layout> endpoints;
  for (const Placement partial : partials) {
    auto all = Layout::create(
        Placements(static_cast<std::size_t>(mesh_ndim), partial));
    if (!all) throw InternalError("one partial does not mix with itself");
    endpoints.push_back(*std::move(all));
  }
  auto alphabet =
      Alphabet::create(active, meta, endpoints, SplitFactors::kEndpoints);
  if (!alphabet) return nullptr;
  build(entry, active, *alphabet, kMostListed);
  return entry.graph;
}

}  // namespace shardprop::redistribute
