// GrowingLayoutGraph numbers the layouts of an alphabet when a move first
// reaches them. It serves one search or one StridedCosts, over the layouts that
// no LayoutGraph lists:
//
//   1. Strided shards. Their canonical form depends on the sizes of the tensor,
//      so no list serves two tensors. One layout may have billions of moves, so
//      moves are visited but not kept.
//   2. Alphabets that recur too rarely, or have too many layouts, to be listed
//      for the search of one pair (LayoutGraphs::get()).
#pragma once

#include "redistribute/moves.h"
#include "redistribute/state_index.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace shardprop::redistribute {

class GrowingLayoutGraph {
 public:
  // Precondition: the arguments outlive this object.
  GrowingLayoutGraph(const ActiveDims& active, const Alphabet& alphabet,
                     const DeviceMesh& mesh,
                     std::span<const std::int64_t> shape)
      : active_(active),
        alphabet_(alphabet),
        mesh_(mesh),
        shape_(shape),
        table_(active, alphabet) {}

  const std::vector<State>& states() const { return index_.states(); }
  // Returns the number of the layout, which is new if it was not reached yet.
  // Precondition: `state` is canonical.
  std::uint32_t insert(const State& state) {
    return index_.insert(state).first;
  }
  std::optional<std::uint32_t> find(const State& state) const {
    return index_.find(state);
  }
  // Returns insert() of the canonical form of a layout, as a move produces it;
  // nullopt if that form is outside the alphabet.
  std::optional<std::uint32_t> insert_canonical(const State& produced);
  // Visits the moves from `at` as MoveTable::for_each() does.
  template <class Admit, class Visit>
  void for_each_move(const State& at, Admit&& admit, Visit&& visit) const {
    table_.for_each(at, std::forward<Admit>(admit), std::forward<Visit>(visit));
  }

 private:
  // The most layouts whose canonical form is cached.
  static constexpr std::size_t kMostForms = std::size_t{1} << 20;

  const ActiveDims& active_;
  const Alphabet& alphabet_;
  const DeviceMesh& mesh_;
  std::span<const std::int64_t> shape_;
  MoveTable table_;
  StateIndex index_;
  StateIndex produced_;  // layouts as moves produce them
  std::vector<std::optional<std::uint32_t>> forms_;  // of produced_
};

}  // namespace shardprop::redistribute
