// All layouts of an alphabet and all moves between them, listed once: what
// searches over one mesh share. Sizes of tensors do not enter.
#pragma once

#include "redistribute/moves.h"
#include "redistribute/sharding_state.h"

#include <cstdint>
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

class LayoutGraph {
 public:
  // Moves of one kind over one group.
  struct Run {
    Move move;
    std::uint8_t group;
    std::uint32_t begin;     // of targets(), those in mesh order first
    std::uint32_t in_order;  // end of those
    std::uint32_t end;
  };

  // Nothing where the graph would be too large to keep.
  // Precondition: the alphabet has no strided shards, whose written forms
  // depend on the tensor.
  static std::optional<LayoutGraph> build(const ActiveDims& active,
                                          const Alphabet& alphabet,
                                          std::size_t most_states);

  const std::vector<State>& states() const { return index_.states(); }
  std::uint32_t number(const State& state) const { return *index_.find(state); }
  std::optional<std::uint32_t> find(std::uint64_t code) const {
    return index_.find(code);
  }
  std::span<const Run> runs(std::uint32_t state) const {
    return {runs_.data() + first_run_[state],
            runs_.data() + first_run_[state + 1]};
  }
  std::span<const std::uint16_t> targets(const Run& run) const {
    return {targets_.data() + run.begin, targets_.data() + run.end};
  }
  // One for each of targets().
  std::span<const MoveForm> forms(const Run& run) const {
    return {forms_.data() + run.begin, forms_.data() + run.end};
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
  void count_parts(const ActiveDims& active, const Alphabet& alphabet);
  void sort_targets();

  StateIndex index_;
  std::size_t rank_ = 0;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> first_run_;
  std::vector<std::uint16_t> targets_;
  std::vector<MoveForm> forms_;
  std::vector<std::int64_t> parts_;
  std::vector<std::int64_t> all_parts_;
  std::vector<std::uint8_t> in_mesh_order_;
};

// A graph with the placements that its layouts are made of.
struct ListedLayouts {
  Alphabet alphabet;
  LayoutGraph graph;
};

// The graphs of one mesh. A graph is built when its alphabet has been asked
// for a few times: listing every move costs what a few searches do.
class LayoutGraphs {
 public:
  // Nothing yet, or nothing ever: search without.
  std::shared_ptr<const LayoutGraph> get(const ActiveDims& active,
                                         const Alphabet& alphabet) const;
  // Of all shards of `meta` and these partials, at once; nothing where there
  // are more layouts or moves than are listed.
  std::shared_ptr<const ListedLayouts> listed(
      const ActiveDims& active, int mesh_ndim, const TensorMeta& meta,
      std::span<const Placement> partials) const;

 private:
  struct Entry {
    int asked = 0;
    std::size_t tried = 0;  // for so many layouts at most
    std::shared_ptr<const ListedLayouts> listed;
  };
  // The number of shard placements, then every partial's bits.
  using Key = InlineVector<std::uint64_t, 4>;
  static constexpr std::size_t kMostEntries = 64;
  static constexpr int kAskedBefore = 4;
  // Of what is listed to search for one pair, and to search for all.
  static constexpr std::size_t kMostStates = 1 << 12;
  static constexpr std::size_t kMostListed = 1 << 13;

  Entry& entry_of(const Key& key) const;
  static void build(Entry& entry, const ActiveDims& active,
                    const Alphabet& alphabet, std::size_t most_states);

  mutable std::mutex mutex_;
  mutable std::map<Key, Entry> entries_;
};

}  // namespace shardprop::redistribute
