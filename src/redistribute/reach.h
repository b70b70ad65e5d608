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
#include "redistribute/layout_prices.h"
#include "redistribute/path.h"
#include "redistribute/shortest_paths.h"

#include <shardprop/redistribute/planner.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace shardprop::redistribute {

class Reach : private ShortestPaths<Reach> {
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
  friend ShortestPaths;
  // Postponed is a run of moves beyond the limit; none costs less than `least`.
  struct Postponed {
    Label least;
    std::uint32_t at;
    std::uint32_t run;  // or kCollectives: all runs that send
  };
  static constexpr std::uint32_t kCollectives = kNone;

  Reach(const RedistributePlanner& planner,
        std::shared_ptr<const LayoutGraph> graph, const Layout& source,
        const TensorMeta& meta, std::span<const Placement> partials,
        Orders orders);

  // Rules of ShortestPaths.
  Label limit() const { return most_; }
  Label ahead(std::uint32_t layout) const {
    return graph_->is_in_mesh_order(layout) ? 0 : back_;
  }
  Label ahead_out_of_order() const { return back_; }
  static constexpr bool kComparesTies = true;
  // The order is that in which one search without a limit finds the paths.
  bool is_preferred(std::uint32_t at, const Step& step,
                    const Arrival& known) const;
  void postpone(Label least, std::uint32_t at, std::uint32_t run) {
    postponed_.push_back({least, at, run});
  }
  // Returns whether no later layout improves a known path, and forgets what
  // waits then.
  bool is_finished(const WaitingLayout& next);
  void expand(std::uint32_t at) { expand(at, false); }

  void expand(std::uint32_t at, bool only_collectives);
  // Returns whether all targets of `run` out of `at` are reached more cheaply
  // otherwise.
  bool is_needless(const Exits::Run& run, std::uint32_t at) const;

  RedistributePlanner planner_;
  std::shared_ptr<const LayoutGraph> graph_;
  Layout source_layout_;
  TensorMeta meta_;
  InlineVector<Placement, 4> partials_;
  Orders orders_;
  bool whole_ = true;
  LayoutPrices prices_;
  std::uint32_t source_;
  Label any_collective_ = 0;  // least cost of a collective
  Label back_ = 0;            // least cost to return to mesh order
  std::int64_t limit_ = -1;
  Label most_ = 0;
  Label largest_ = kUnreached;  // of all labels, once all are reached
  std::vector<Postponed> postponed_;
};

}  // namespace shardprop::redistribute
