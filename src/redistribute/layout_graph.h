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
  std::optional<std::uint32_t> find(const State& state) const;
  const std::vector<State>& states() const { return states_; }

 private:
  static constexpr std::size_t kFirstSlots = 256;
  static constexpr std::uint32_t kEmpty = 0xffffffffU;
  void grow();
  std::vector<State> states_;
  std::vector<std::uint32_t> slots_;
};

class LayoutGraph {
 public:
  // Moves of one kind over one group.
  struct Run {
    Move move;
    std::uint8_t group;
    std::uint32_t begin;  // of targets()
    std::uint32_t end;
  };

  // Nothing where the graph would be too large to keep.
  // Precondition: the alphabet has no strided shards, whose written forms
  // depend on the tensor.
  static std::optional<LayoutGraph> build(const ActiveDims& active,
                                          const Alphabet& alphabet);

  const std::vector<State>& states() const { return index_.states(); }
  std::uint32_t number(const State& state) const { return *index_.find(state); }
  std::span<const Run> runs(std::uint32_t state) const {
    return {runs_.data() + first_run_[state],
            runs_.data() + first_run_[state + 1]};
  }
  std::span<const std::uint16_t> targets(const Run& run) const {
    return {targets_.data() + run.begin, targets_.data() + run.end};
  }

 private:
  StateIndex index_;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> first_run_;
  std::vector<std::uint16_t> targets_;
};

// The graphs of one mesh. A graph is built when its alphabet has been asked
// for a few times: listing every move costs what a few searches do.
class LayoutGraphs {
 public:
  // Nothing yet, or nothing ever: search without.
  std::shared_ptr<const LayoutGraph> get(const ActiveDims& active,
                                         const Alphabet& alphabet) const;

 private:
  struct Entry {
    int asked = 0;
    std::shared_ptr<const LayoutGraph> graph;
  };
  // The number of shard placements, then every partial's bits.
  using Key = InlineVector<std::uint64_t, 4>;
  static constexpr std::size_t kMostEntries = 64;
  static constexpr int kAskedBefore = 4;

  mutable std::mutex mutex_;
  mutable std::map<Key, Entry> entries_;
};

}  // namespace shardprop::redistribute
