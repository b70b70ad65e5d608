// Reach: what a tensor in one layout costs to turn into every other one, near
// layouts first: one search for all the layouts that an operator may ask of an
// operand.
//
//   bf16[4096,4096] S(0),R on dp=2,tp=4, 10 us: S(0),R 0, S(0),S(0) 0,
//     S(0),S(1) 0, R,R 8.1 us, ...
//
// Costs are RedistributePlanner::cost() of the pair, under the placements that
// the search knows: all shards, the partials of the source and those named.
#pragma once

#include "redistribute/layout_graph.h"
#include "redistribute/move_price.h"
#include "redistribute/path_bound.h"

#include <shardprop/redistribute/planner.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace shardprop::redistribute {

class Reach {
 public:
  static constexpr std::int64_t kBeyond =
      std::numeric_limits<std::int64_t>::max();

  // Nothing where the layouts are not listed (strided shards, too many of
  // them), sizes are more than can be planned for, or the planner has a memory
  // limit: then the planner is asked for pairs. `source` is canonical.
  static std::unique_ptr<Reach> from(const RedistributePlanner& planner,
                                     const Layout& source,
                                     const TensorMeta& meta,
                                     std::span<const Placement> partials);
  ~Reach();
  Reach(const Reach&) = delete;
  Reach& operator=(const Reach&) = delete;

  const ActiveDims& active() const;
  const Alphabet& alphabet() const { return listed_->alphabet; }

  // Finds every layout that costs at most so much.
  void extend(std::int64_t nanoseconds);
  // Of State::code(); kBeyond where it costs more than the search has gone.
  std::int64_t nanoseconds(std::uint64_t code) const;
  // A plan of least cost and, among those, of fewest steps; always the same.
  // Precondition: nanoseconds() of its state is known.
  RedistributePlan plan(const Layout& target) const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  struct Node {
    std::uint32_t before = kNone;
    std::uint32_t size = kNone;  // in sizes_, once asked for
    Move move = Move::kReduce;
    std::uint8_t group = 0;
  };
  struct Waiting {
    Label label;
    std::uint32_t node;
    friend bool operator>(const Waiting& a, const Waiting& b) {
      return a.label != b.label ? a.label > b.label : a.node > b.node;
    }
  };
  // Prices of moves between even shards.
  struct Remembered {
    std::uint64_t key = 0;
    std::int64_t parts = 0;  // 0: free
    std::int64_t nanoseconds = 0;
  };

  Reach(const RedistributePlanner& planner,
        std::shared_ptr<const ListedLayouts> listed, const Layout& source,
        const TensorMeta& meta);

  void expand(std::uint32_t at, Label most);
  // Whether `run` out of `at` leads nowhere that is not had for less.
  bool is_needless(const LayoutGraph::Run& run, std::uint32_t at) const;
  std::int64_t price(std::uint32_t at, const LayoutGraph::Run& run,
                     MoveForm form, std::uint32_t to);
  // What an even price depends on; nothing where shards are uneven.
  std::optional<std::uint64_t> price_key(std::uint32_t at,
                                         const LayoutGraph::Run& run,
                                         MoveForm form, std::uint32_t to) const;
  bool is_staged(MoveForm form, std::uint32_t whole) const;
  // Place in sizes_.
  std::uint32_t size_of(std::uint32_t node);

  RedistributePlanner planner_;
  std::shared_ptr<const ListedLayouts> listed_;
  const LayoutGraph& graph_;
  Layout source_layout_;
  TensorMeta meta_;
  MovePricer pricer_;
  std::uint32_t source_;
  std::int64_t limit_ = -1;
  bool is_complete_ = false;  // nothing lies beyond
  std::vector<Label> labels_;
  std::vector<Node> nodes_;
  std::vector<LocalSize> sizes_;
  std::vector<Waiting> queue_;
  std::size_t unreached_ = 0;
  std::array<Remembered, 256> prices_;
};

}  // namespace shardprop::redistribute
