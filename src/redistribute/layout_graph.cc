#include "redistribute/layout_graph.h"

#include <shardprop/base/hash.h>

#include <algorithm>

namespace shardprop::redistribute {
namespace {

// The tensor dim that the whole group cuts.
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
  // Mesh dims outside the group cut as before; those of it are larger than 1.
  const auto parts = [&](const State& state, std::int16_t dim) {
    std::int64_t product = 1;
    for (int i = 0; i < active.count; ++i) {
      if ((group >> i & 1U) != 0 && alphabet[state.symbol[i]].dim == dim) {
        product *= active.sizes[static_cast<std::size_t>(i)];
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

std::pair<std::uint32_t, bool> StateIndex::insert(const State& state) {
  if (2 * states_.size() >= slots_.size()) grow();
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash_mix(0, state.code()) & mask;;
       at = (at + 1) & mask) {
    if (slots_[at] == kEmpty) {
      slots_[at] = static_cast<std::uint32_t>(states_.size());
      states_.push_back(state);
      codes_.push_back(state.code());
      return {slots_[at], true};
    }
    if (states_[slots_[at]] == state) return {slots_[at], false};
  }
}

std::optional<std::uint32_t> StateIndex::find(std::uint64_t code) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash_mix(0, code) & mask;; at = (at + 1) & mask) {
    if (slots_[at] == kEmpty) return std::nullopt;
    if (codes_[slots_[at]] == code) return slots_[at];
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

std::optional<LayoutGraph> LayoutGraph::build(const ActiveDims& active,
                                              const Alphabet& alphabet,
                                              std::size_t most_states) {
  const std::size_t most_moves = 1024 * most_states;
  LayoutGraph graph;
  const MoveTable table(active, alphabet);
  // Every layout is reached from the replicated one.
  graph.index_.insert(State{});
  for (std::uint32_t at = 0; at < graph.states().size(); ++at) {
    graph.first_run_.push_back(static_cast<std::uint32_t>(graph.runs_.size()));
    const std::size_t first = graph.runs_.size();
    const State state = graph.states()[at];
    table.for_each(
        state, [](Move, Mask) { return true; },
        [&](Move move, Mask group, const State& to) {
          const auto end = static_cast<std::uint32_t>(graph.targets_.size());
          if (graph.runs_.size() == first || graph.runs_.back().move != move ||
              graph.runs_.back().group != group) {
            graph.runs_.push_back(
                {move, static_cast<std::uint8_t>(group), end, end, end});
          }
          graph.targets_.push_back(
              static_cast<std::uint16_t>(graph.index_.insert(to).first));
          graph.forms_.push_back(
              form_of(move, group, state, to, active, alphabet));
          ++graph.runs_.back().end;
        });
    if (graph.states().size() > most_states ||
        graph.targets_.size() > most_moves) {
      return std::nullopt;
    }
  }
  graph.first_run_.push_back(static_cast<std::uint32_t>(graph.runs_.size()));
  graph.count_parts(active, alphabet);
  graph.sort_targets();
  return graph;
}

void LayoutGraph::sort_targets() {
  std::vector<std::pair<std::uint16_t, MoveForm>> later;
  for (Run& run : runs_) {
    later.clear();
    run.in_order = run.begin;
    for (std::uint32_t k = run.begin; k < run.end; ++k) {
      if (!is_in_mesh_order(targets_[k])) {
        later.emplace_back(targets_[k], forms_[k]);
        continue;
      }
      targets_[run.in_order] = targets_[k];
      forms_[run.in_order++] = forms_[k];
    }
    std::uint32_t k = run.in_order;
    for (const auto& [target, form] : later) {
      targets_[k] = target;
      forms_[k++] = form;
    }
  }
}

void LayoutGraph::count_parts(const ActiveDims& active,
                              const Alphabet& alphabet) {
  rank_ = alphabet.first_partial() - std::size_t{1};
  parts_.assign(states().size() * rank_, 1);
  all_parts_.assign(states().size(), 1);
  in_mesh_order_.assign(states().size(), 1);
  for (std::size_t at = 0; at < states().size(); ++at) {
    const State& state = states()[at];
    for (int i = 0; i < active.count; ++i) {
      const std::int16_t dim = alphabet[state.symbol[i]].dim;
      if (dim < 0) continue;
      for (int j = 0; j < i; ++j) {
        if (alphabet[state.symbol[j]].dim == dim &&
            state.order[j] > state.order[i]) {
          in_mesh_order_[at] = 0;
        }
      }
      const std::int64_t size = active.sizes[static_cast<std::size_t>(i)];
      parts_[at * rank_ + static_cast<std::size_t>(dim)] *= size;
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
  if (entry.listed != nullptr || entry.tried >= most_states) return;
  entry.tried = most_states;
  if (auto graph = LayoutGraph::build(active, alphabet, most_states)) {
    entry.listed = std::make_shared<const ListedLayouts>(
        ListedLayouts{alphabet, *std::move(graph)});
  }
}

std::shared_ptr<const LayoutGraph> LayoutGraphs::get(
    const ActiveDims& active, const Alphabet& alphabet) const {
  if (alphabet.has_strided()) return nullptr;
  Key key{alphabet.first_partial()};
  for (std::uint8_t s = alphabet.first_partial(); s < alphabet.size(); ++s) {
    key.push_back(alphabet[s].placement.bits());
  }
  const std::scoped_lock lock(mutex_);
  Entry& entry = entry_of(key);
  if (++entry.asked >= kAskedBefore) {
    build(entry, active, alphabet, kMostStates);
  }
  if (entry.listed == nullptr) return nullptr;
  return {entry.listed, &entry.listed->graph};
}

std::shared_ptr<const ListedLayouts> LayoutGraphs::listed(
    const ActiveDims& active, int mesh_ndim, const TensorMeta& meta,
    std::span<const Placement> partials) const {
  Key key{static_cast<std::uint64_t>(meta.rank()) + 1};
  for (const Placement partial : partials) key.push_back(partial.bits());
  // As Alphabet::create() orders them.
  std::sort(key.begin() + 1, key.end());
  const std::scoped_lock lock(mutex_);
  Entry& entry = entry_of(key);
  if (entry.listed != nullptr || entry.tried >= kMostListed) {
    return entry.listed;
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
  return entry.listed;
}

}  // namespace shardprop::redistribute
