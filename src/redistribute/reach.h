// Reach computes the cost from one layout of a tensor to all others, near
// layouts first. One search covers all layouts that an operator may require of
// an operand.
//
//   bf16[4096,4096] S(0),R on dp=2,tp=4, 10 us: S(0),R 0, S(0),S(0) 0,
//     S(0),S(1) 0, R,R 8.1 us, ...
//
// The costs equal RedistributePlanner::cost() of the pair, under the placements
// that the search knows. These are all shards, the partials of the source and
// the named partials.
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

  // The layouts that may be requested. The search passes through the others
  // only.
  enum class Orders : std::uint8_t {
    kAll,
    kOfMesh,  // outer mesh dims cut first
  };

  // Returns null if the layouts cannot be listed (strided shards, or too many
  // layouts), if sizes are too large to plan, or if the planner has a memory
  // limit. The caller then plans each pair. Precondition: `source` is
  // canonical.
  static std::unique_ptr<Reach> from(const RedistributePlanner& planner,
                                     const Layout& source,
                                     const TensorMeta& meta,
                                     std::span<const Placement> partials,
                                     Orders orders);
  // Returns whether from() with these arguments would build this object.
  bool is_from(const Layout& source, const TensorMeta& meta,
               std::span<const Placement> partials, Orders orders) const;
  ~Reach();
  Reach(const Reach&) = delete;
  Reach& operator=(const Reach&) = delete;

  const ActiveDims& active() const;
  const Alphabet& alphabet() const { return graph_->alphabet(); }

  // The number of known layouts.
  std::size_t states() const { return graph_->states().size(); }
  // Returns false after an extend() that threw.
  bool is_whole() const { return whole_; }

  // Finds every requested layout that costs at most `nanoseconds`.
  void extend(std::int64_t nanoseconds);
  // Returns a lower bound on the cost of layouts not yet found; kBeyond once
  // all are found.
  std::int64_t beyond() const;
  // Returns whether a layout is among those requested. `code` is its
  // State::code().
  bool is_asked(std::uint64_t code) const;
  // `code` is a State::code(). Returns kBeyond if the cost exceeds the limit of
  // the search.
  std::int64_t nanoseconds(std::uint64_t code) const;
  // Returns the plan of least cost; on a tie the one with the fewest steps. The
  // plan does not depend on how far the search has gone, or in how many steps.
  // Precondition: nanoseconds() of its state is known.
  RedistributePlan plan(const Layout& target) const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  enum class Shards : std::uint8_t { kUnknown, kEven, kUneven };
  struct Node {
    std::int64_t bytes = -1;  // bytes of the largest shard, once needed
    std::uint32_t before = kNone;
    std::uint32_t size = kNone;  // index in sizes_, once needed
    std::uint16_t run = 0;       // run of `before` that led here
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
  // Postponed is a run of moves beyond the limit; none costs less than `least`.
  struct Postponed {
    Label least;
    std::uint32_t at;
    std::uint32_t run;  // or kCollectives: all runs that send
  };
  static constexpr std::uint32_t kCollectives = kNone;
  // Remembered is a cached price of a move between even shards.
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
  // Returns whether all targets of `run` out of `at` are reached more cheaply
  // otherwise.
  bool is_needless(const Exits::Run& run, std::uint32_t at) const;
  Label least_of(std::uint32_t at, const Exits::Run& run);
  Label least_exchange(std::uint32_t at, Mask group);
  // Returns whether a path over this run wins against the known path of equal
  // cost.
  bool is_before(std::uint32_t at, std::uint32_t run, const Node& known) const;
  // Follows the moves of run `number` of `at`.
  void relax(std::uint32_t at, const Exits& exits, std::uint32_t number);
  std::int64_t price(std::uint32_t at, const Exits::Run& run, std::uint32_t to);
  bool is_even(std::uint32_t node);
  unsigned form_of(const Exits::Run& run, MoveForm form, std::uint32_t at,
                   std::uint32_t to) const;
  std::int64_t even_price(std::uint32_t at, const Exits::Run& run,
                          unsigned form, std::uint32_t to);
  bool is_staged(MoveForm form, std::uint32_t whole) const;
  // Returns the index in sizes_.
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
  Label any_collective_ = 0;  // least cost of a collective
  Label back_ = 0;            // least cost to return to mesh order
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
