// LayoutGraph is the graph of all layouts of an alphabet (nodes) and the moves
// between them (edges). The moves from a layout are listed when a search first
// reaches it, and kept. All searches over one mesh share the graph: it does not
// depend on tensor sizes. LayoutPrices prices its moves for one tensor.
#pragma once

#include "redistribute/moves.h"
#include "redistribute/sharding_state.h"
#include "redistribute/state_index.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace shardprop::redistribute {

// MoveForm is the part of a move that affects its price between even shards.
// The price also depends on the group, the partials, and the size of the shard
// at the start. For a gather or reduce-scatter, the form is the tensor dim that
// the full group cuts, or kManyDims. For an exchange, it is one of the values
// below.
using MoveForm = std::uint8_t;
inline constexpr MoveForm kManyDims = 0xff;
inline constexpr MoveForm kSamePoints = 0;  // every dim keeps its cuts
inline constexpr MoveForm kOtherDims = 1;   // no dim loses and gains cuts
inline constexpr MoveForm kOverlapping = 2;
// Added to the two forms above if neither end cuts the outermost dim alone. The
// sent elements are then packed and the received ones unpacked.
inline constexpr MoveForm kUnpacked = 2;
inline constexpr MoveForm kExchangeForms = 5;

// Targets are the layouts that moves of one kind over one group reach from a
// layout.
struct Targets {
  std::vector<std::uint32_t> states;  // those in mesh order first
  std::size_t in_order = 0;           // number of states in mesh order
  std::vector<MoveForm> forms;        // one for each state
};

// Exits are the moves from one layout.
struct Exits {
  struct Run {
    Move move;
    std::uint8_t group;
  };
  std::vector<Run> runs;
  // One entry per run, once listed; empty for exits that are not kept.
  mutable std::vector<std::atomic<const Targets*>> targets;
};

class LayoutGraph {
 public:
  // Returns null if there are more than `most_states` layouts. Precondition:
  // the alphabet has no strided shards, because their canonical forms depend on
  // the tensor.
  static std::shared_ptr<const LayoutGraph> build(const ActiveDims& active,
                                                  const Alphabet& alphabet,
                                                  std::size_t most_states);

  const Alphabet& alphabet() const { return alphabet_; }
  const std::vector<State>& states() const { return index_.states(); }
  std::uint32_t number(const State& state) const { return *index_.find(state); }
  std::optional<std::uint32_t> find(std::uint64_t code) const {
    return index_.find(code);
  }
  // Exits and targets are listed at the first request and kept. If too many are
  // kept, they are written to the caller's Scratch instead. Any thread may call
  // this.
  struct Scratch {
    Exits exits;
    Targets targets;
  };
  const Exits& exits(std::uint32_t state, Scratch& scratch) const {
    const Exits* kept = kept_[state].load(std::memory_order_acquire);
    return kept != nullptr ? *kept : list_exits(state, scratch.exits);
  }
  // Precondition: `exits` belongs to `state`, and `run` is one of its runs.
  const Targets& targets(std::uint32_t state, const Exits& exits,
                         std::size_t run, Scratch& scratch) const {
    if (exits.targets.empty()) {
      list(state, exits.runs[run], scratch.targets);
      return scratch.targets;
    }
    const Targets* kept = exits.targets[run].load(std::memory_order_acquire);
    return kept != nullptr ? *kept
                           : list_targets(state, exits, run, scratch.targets);
  }
  // The number of parts into which a layout cuts each tensor dim.
  std::span<const std::int64_t> parts(std::uint32_t state) const {
    return {parts_.data() + state * rank_, rank_};
  }
  // The product of parts().
  std::int64_t all_parts(std::uint32_t state) const {
    return all_parts_[state];
  }
  // Returns whether outer mesh dims cut first.
  bool is_in_mesh_order(std::uint32_t state) const {
    return in_mesh_order_[state] != 0;
  }

 private:
  // The most runs and targets together.
  static constexpr std::size_t kMostKept = std::size_t{1} << 22;

  LayoutGraph(const ActiveDims& active, Alphabet alphabet);
  bool find_states(std::size_t most_states);
  void count_parts();
  const Exits& list_exits(std::uint32_t state, Exits& scratch) const;
  const Targets& list_targets(std::uint32_t state, const Exits& exits,
                              std::size_t run, Targets& scratch) const;
  void list(std::uint32_t state, Exits::Run run, Targets& targets) const;

  ActiveDims active_;
  Alphabet alphabet_;
  StateIndex index_;
  std::size_t rank_;
  std::vector<std::int64_t> parts_;
  std::vector<std::int64_t> all_parts_;
  std::vector<std::uint8_t> in_mesh_order_;

  mutable std::mutex mutex_;  // guards all writes to the members below
  mutable std::size_t count_kept_ = 0;
  mutable std::deque<Exits> kept_exits_;
  mutable std::deque<Targets> kept_targets_;
  mutable std::vector<std::atomic<const Exits*>> kept_;  // by state
};

// LayoutGraphs caches the graphs of one mesh.
class LayoutGraphs {
 public:
  // Returns null if the alphabet was requested only a few times, or is too
  // large. The caller then searches without a graph: a search for one pair
  // visits fewer layouts.
  std::shared_ptr<const LayoutGraph> get(const ActiveDims& active,
                                         const Alphabet& alphabet) const;
  // Returns the graph of the alphabet at once; null if there are more layouts
  // than may be listed. Precondition: the alphabet has no strided shards.
  std::shared_ptr<const LayoutGraph> listed(const ActiveDims& active,
                                            const Alphabet& alphabet) const;
  // Returns the same for all shards of `meta` and these partials.
  std::shared_ptr<const LayoutGraph> listed(
      const ActiveDims& active, int mesh_ndim, const TensorMeta& meta,
      std::span<const Placement> partials) const;

 private:
  struct Entry {
    int asked = 0;
    std::size_t tried = 0;  // largest limit on layouts tried so far
    std::shared_ptr<const LayoutGraph> graph;
  };
  // The number of shard placements, then the bits of every partial.
  using Key = InlineVector<std::uint64_t, 4>;
  static constexpr std::size_t kMostEntries = 64;
  static constexpr int kAskedBefore = 4;
  // The most layouts to list for the search of one pair, and for a search of
  // all layouts.
  static constexpr std::size_t kMostStates = 1 << 12;
  static constexpr std::size_t kMostListed = 1 << 18;

  static Key key_of(const Alphabet& alphabet);
  Entry& entry_of(const Key& key) const;
  static void build(Entry& entry, const ActiveDims& active,
                    const Alphabet& alphabet, std::size_t most_states);

  mutable std::mutex mutex_;
  mutable std::map<Key, Entry> entries_;
};

}  // namespace shardprop::redistribute
