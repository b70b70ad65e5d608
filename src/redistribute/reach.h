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

  // Which layouts are asked for. Others are met on the way only.
  enum class Orders : std::uint8_t {
    kAll,
    kOfMesh,  // outer mesh dims cut first
  };

  // Nothing where the layouts are not listed (strided shards, too many of
  // them), sizes are more than can be planned for, or the planner has a memory
  // limit: then the planner is asked for pairs. `source` is canonical.
  static std::unique_ptr<Reach> from(const RedistributePlanner& planner,
                                     const Layout& source,
                                     const TensorMeta& meta,
                                     std::span<const Placement> partials,
                                     Orders orders);
  // Whether from() of the same makes such a one.
  bool is_from(const Layout& source, const TensorMeta& meta,
               std::span<const Placement> partials, Orders orders) const;
  ~Reach();
  Reach(const Reach&) = delete;
  Reach& operator=(const Reach&) = delete;

  const ActiveDims& active() const;
  const Alphabet& alphabet() const { return graph_->alphabet(); }

  // Layouts that it knows of.
  std::size_t states() const { return graph_->states().size(); }
  // False after an extend() that threw.
  bool is_whole() const { return whole_; }

  // Finds every layout asked for that costs at most so much.
  void extend(std::int64_t nanoseconds);
  // No layout that was not found costs less; kBeyond once all are found.
  std::int64_t beyond() const;
  // Whether a layout is one of those asked for, by State::code().
  bool is_asked(std::uint64_t code) const;
  // Of State::code(); kBeyond where it costs more than the search has gone.
  std::int64_t nanoseconds(std::uint64_t code) const;
  // A plan of least cost and, among those, of fewest steps; always the same,
  // however far the search has gone and in how many steps.
  // Precondition: nanoseconds() of its state is known.
  RedistributePlan plan(const Layout& target) const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  enum class Shards : std::uint8_t { kUnknown, kEven, kUneven };
  struct Node {
    std::int64_t bytes = -1;  // of the largest shard, once asked for
    std::uint32_t before = kNone;
    std::uint32_t size = kNone;  // in sizes_, once asked for
    std::uint16_t run = 0;       // of `before`, that led here
    Move move = Move::kReduce;
    std::uint8_t group = 0;
    Shards shards = Shards::kUnknown;
  };
  struct Waiting {
    Label label;
    std::uint32_t node;
    friend bool operator>(const Waiting& a, const Waiting& b) {
      return a.label != b.label ? a.label > b.label : a.node > b.node;
    }
  };
  // Moves that lead beyond the limit, none of them to less than `least`.
  struct Postponed {
    Label least;
    std::uint32_t at;
    std::uint32_t run;  // or kCollectives: all that send
  };
  static constexpr std::uint32_t kCollectives = kNone;
  // Prices of moves between even shards.
  struct Remembered {
    std::uint64_t key = 0;
    std::int64_t parts = 0;  // 0: free
    std::int64_t nanoseconds = 0;
  };

  struct LeastExchange {
    std::int64_t bytes = -1;
    std::uint32_t group = 0;
    Label least = 0;
  };

  Reach(const RedistributePlanner& planner,
        std::shared_ptr<const LayoutGraph> graph, const Layout& source,
        const TensorMeta& meta, std::span<const Placement> partials,
        Orders orders);

  void settle();
  void expand(std::uint32_t at, bool only_collectives);
  // Whether `run` out of `at` leads nowhere that is not had for less.
  bool is_needless(const Exits::Run& run, std::uint32_t at) const;
  Label least_of(std::uint32_t at, const Exits::Run& run);
  Label least_exchange(std::uint32_t at, Mask group);
  // Whether a path over this run is taken rather than an equal one known.
  bool is_before(std::uint32_t at, std::uint32_t run, const Node& known) const;
  // Follows the moves of one run of `at`, the number-th.
  void relax(std::uint32_t at, const Exits& exits, std::uint32_t number);
  std::int64_t price(std::uint32_t at, const Exits::Run& run, std::uint32_t to);
  bool is_even(std::uint32_t node);
  unsigned form_of(const Exits::Run& run, MoveForm form, std::uint32_t at,
                   std::uint32_t to) const;
  std::int64_t even_price(std::uint32_t at, const Exits::Run& run,
                          unsigned form, std::uint32_t to);
  bool is_staged(MoveForm form, std::uint32_t whole) const;
  // Place in sizes_.
  std::uint32_t size_of(std::uint32_t node);
  std::int64_t shard_bytes(std::uint32_t node);

  RedistributePlanner planner_;
  std::shared_ptr<const LayoutGraph> graph_;
  LayoutGraph::Scratch scratch_;
  Layout source_layout_;
  TensorMeta meta_;
  InlineVector<Placement, 4> partials_;
  Orders orders_;
  bool whole_ = true;
  bool empty_;
  MovePricer pricer_;
  std::uint32_t source_;
  Label any_collective_ = 0;  // the least that one takes
  Label back_ = 0;  // what it takes at least to get to the order of the mesh
  std::int64_t limit_ = -1;
  Label most_ = 0;
  std::vector<Label> labels_;
  std::vector<Node> nodes_;
  std::vector<LocalSize> sizes_;
  std::vector<Waiting> queue_;
  std::vector<Postponed> postponed_;
  std::size_t unreached_ = 0;
  std::array<Remembered, 256> prices_;
  std::array<LeastExchange, 128> least_exchanges_;
};

}  // namespace shardprop::redistribute
