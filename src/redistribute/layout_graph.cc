#include "redistribute/layout_graph.h"

#include <shardprop/base/hash.h>

namespace shardprop::redistribute {

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

std::optional<LayoutGraph> LayoutGraph::build(const ActiveDims& active,
                                              const Alphabet& alphabet) {
  constexpr std::size_t kMostStates = 1 << 12;
  constexpr std::size_t kMostMoves = 1 << 22;
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
                {move, static_cast<std::uint8_t>(group), end, end});
          }
          graph.targets_.push_back(
              static_cast<std::uint16_t>(graph.index_.insert(to).first));
          ++graph.runs_.back().end;
        });
    if (graph.states().size() > kMostStates ||
        graph.targets_.size() > kMostMoves) {
      return std::nullopt;
    }
  }
  graph.first_run_.push_back(static_cast<std::uint32_t>(graph.runs_.size()));
  return graph;
}

std::shared_ptr<const LayoutGraph> LayoutGraphs::get(
    const ActiveDims& active, const Alphabet& alphabet) const {
  if (alphabet.has_strided()) return nullptr;
  Key key{alphabet.first_partial()};
  for (std::uint8_t s = alphabet.first_partial(); s < alphabet.size(); ++s) {
    key.push_back(alphabet[s].placement.bits());
  }
  const std::scoped_lock lock(mutex_);
  if (entries_.size() >= kMostEntries && !entries_.contains(key)) {
    entries_.clear();
  }
  Entry& entry = entries_[key];
  if (++entry.asked == kAskedBefore) {
    if (auto graph = LayoutGraph::build(active, alphabet)) {
      entry.graph = std::make_shared<const LayoutGraph>(*std::move(graph));
    }
  }
  return entry.graph;
}

}  // namespace shardprop::redistribute
