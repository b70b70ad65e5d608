// All layouts of an alphabet, and the moves out of those that some search came
// by: what searches over one mesh share. Sizes of tensors do not enter.
#pragma once

#include "redistribute/moves.h"
#include "redistribute/sharding_state.h"

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

// Layout states found so far, numbered in the order they were found.
class StateIndex {
 public:
  StateIndex() : slots_(kFirstSlots, kEmpty) {}

  // The number of `state`, and whether it is new.
  std::pair<std::uint32_t, bool> insert(const State& state);
  std::optional<std::uint32_t> find(const State& state) const {
    return find(state.code());
  }
  std::optional<std::uint32_t> find(std::uint64_t code) const;
  const std::vector<State>& states() const { return states_; }

 private:
  static constexpr std::size_t kFirstSlots = 256;
  static constexpr std::uint32_t kEmpty = 0xffffffffU;
  void grow();
  std::vector<State> states_;
  std::vector<std::uint64_t> codes_;
  std::vector<std::uint32_t> slots_;
};

// What the price of a move between even shards depends on beside its group, its
// partials and the size of the shard that it starts from: of a gather or a
// reduce-scatter the tensor dim that the whole group cuts, or kManyDims; of an
// exchange one of the others.
using MoveForm = std::uint8_t;
inline constexpr MoveForm kManyDims = 0xff;
inline constexpr MoveForm kSamePoints = 0;  // every dim is cut as before
inline constexpr MoveForm kOtherDims = 1;   // no dim is both left and cut
inline constexpr MoveForm kOverlapping = 2;
// Beside the last two: neither end cuts the outermost dim alone, so that what is
// sent is packed and what comes unpacked.
inline constexpr MoveForm kUnpacked = 2;
inline constexpr MoveForm kExchangeForms = 5;

// Where moves of one kind over one group lead from a layout.
struct Targets {
  std::vector<std::uint32_t> states;  // those in mesh order first
  std::size_t in_order = 0;           // so many
  std::vector<MoveForm> forms;        // one for each state
};

// The moves out of one layout.
struct Exits {
  struct Run {
    Move move;
    std::uint8_t group;
  };
  std::vector<Run> runs;
  // Of each run, once listed; none of exits that are not kept.
  mutable std::vector<std::atomic<const Targets*>> targets;
};

class LayoutGraph {
 public:
  // Nothing where there are more layouts.
  // Precondition: the alphabet has no strided shards, whose written forms
  // depend on the tensor.
  static std::shared_ptr<const LayoutGraph> build(const ActiveDims& active,
                                                  const Alphabet& alphabet,
                                                  std::size_t most_states);

  const Alphabet& alphabet() const { return alphabet_; }
  const std::vector<State>& states() const { return index_.states(); }
  std::uint32_t number(const State& state) const { return *index_.find(state); }
  std::optional<std::uint32_t> find(std::uint64_t code) const {
    return index_.find(code);
  }
  // What is listed when it is first asked for and kept, or put into a scratch
  // of the caller where too much is kept already. On any thread.
  struct Scratch {
    Exits exits;
    Targets targets;
  };
  const Exits& exits(std::uint32_t state, Scratch& scratch) const {
    const Exits* kept = kept_[state].load(std::memory_order_acquire);
    return kept != nullptr ? *kept : list_exits(state, scratch.exits);
  }
  // `exits` of `state`; the run is one of theirs.
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
  // Into how many parts a layout cuts each tensor dim.
  std::span<const std::int64_t> parts(std::uint32_t state) const {
    return {parts_.data() + state * rank_, rank_};
  }
  // The product of them.
  std::int64_t all_parts(std::uint32_t state) const {
    return all_parts_[state];
  }
  // Whether outer mesh dims cut first.
  bool is_in_mesh_order(std::uint32_t state) const {
    return in_mesh_order_[state] != 0;
  }

 private:
  // Of runs and targets together.
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

  mutable std::mutex mutex_;  // of all writes to what follows
  mutable std::size_t count_kept_ = 0;
  mutable std::deque<Exits> kept_exits_;
  mutable std::deque<Targets> kept_targets_;
  mutable std::vector<std::atomic<const Exits*>> kept_;  // by state
};

// The graphs of one mesh.
class LayoutGraphs {
 public:
  // Nothing where the alphabet has been asked for but a few times, or never
  // anything: search without. To find one pair fewer layouts are met.
  std::shared_ptr<const LayoutGraph> get(const ActiveDims& active,
                                         const Alphabet& alphabet) const;
  // Of all shards of `meta` and these partials, at once; nothing where there
  // are more layouts than are listed.
  std::shared_ptr<const LayoutGraph> listed(
      const ActiveDims& active, int mesh_ndim, const TensorMeta& meta,
      std::span<const Placement> partials) const;

 private:
  struct Entry {
    int asked = 0;
    std::size_t tried = 0;  // for so many layouts at most
    std::shared_ptr<const LayoutGraph> graph;
  };
  // The number of shard placements, then every partial's bits.
  using Key = InlineVector<std::uint64_t, 4>;
  static constexpr std::size_t kMostEntries = 64;
  static constexpr int kAskedBefore = 4;
  // Of what is listed to search for one pair, and to search for all.
  static constexpr std::size_t kMostStates = 1 << 12;
  static constexpr std::size_t kMostListed = 1 << 18;

  Entry& entry_of(const Key& key) const;
  static void build(Entry& entry, const ActiveDims& active,
                    const Alphabet& alphabet, std::size_t most_states);

  mutable std::mutex mutex_;
  mutable std::map<Key, Entry> entries_;
};

}  // namespace shardprop::redistribute
