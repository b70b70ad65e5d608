// PricedMoves stores the price of every move between the layouts of an alphabet
// for one tensor. Searches from all sources share it, so that each move is
// priced once.
#pragma once

#include "redistribute/layout_graph.h"
#include "redistribute/layout_prices.h"
#include "redistribute/path.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop::redistribute {

struct PricedMove {
  std::uint32_t to;
  Label label;              // counts no steps
  std::int64_t held_bytes;  // 0 if not required
};

class PricedMoves {
 public:
  // Prices the moves of a graph. The bytes that a move holds take much longer
  // to compute than its time, and only a memory limit requires them.
  PricedMoves(const GroupTimes& times, const ActiveDims& active,
              const LayoutGraph& graph, const TensorMeta& meta,
              bool requires_held_bytes);
  // Prices the moves between all canonical layouts of an alphabet with strided
  // shards.
  PricedMoves(const GroupTimes& times, const ActiveDims& active,
              const Alphabet& alphabet, const DeviceMesh& mesh,
              const TensorMeta& meta);

  // Returns whether there are more moves than are stored; some are then
  // missing.
  bool is_too_large() const { return count_ > kMostMoves; }
  const std::vector<State>& states() const { return states_; }
  const std::vector<PricedMove>& from(std::uint32_t layout) const {
    return moves_[layout];
  }
  // Returns the bytes of the largest shard.
  std::int64_t bytes(std::uint32_t layout) const { return bytes_[layout]; }

 private:
  // A move takes 24 bytes. Four mesh dims and a tensor of five dims stay below
  // this limit. Five mesh dims and three tensor dims have about seven million
  // moves.
  static constexpr std::size_t kMostMoves = std::size_t{1} << 22;

  void append(std::vector<PricedMove>& moves);
  void finish(LayoutPrices& prices, const std::vector<State>& states);

  std::vector<State> states_;
  std::vector<std::int64_t> bytes_;
  std::vector<std::vector<PricedMove>> moves_;  // by source
  std::size_t count_ = 0;
};

}  // namespace shardprop::redistribute
