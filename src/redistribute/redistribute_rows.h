// RedistributeRows computes the costs from one layout of a tensor to all others
// in one search. A plan problem reads its edge costs from it.
//
// It covers the layouts and moves of planner.h, with P(sum) if the dtype can be
// summed. It also covers the partials and split factors of the requested
// layouts. Every cost equals RedistributePlanner::cost() of the same pair under
// the same alphabet of placements.
//
// Without requested layouts, this is cost() of the pair. A partial comes only
// from R or from partials, so P(sum) never helps a layout without partials. The
// exception is a plan between strided layouts of many mesh dims. It avoids
// strided shards (detour.h) and may cost more than the row.
//
//   auto rows = RedistributeRows::create(planner, meta).value();
//   rows.costs_from(*rows.index_of(src))[*rows.index_of(dst)];
#pragma once

#include <shardprop/redistribute/planner.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace shardprop {

// Safe to use from several threads at once.
class RedistributeRows {
 public:
  // The cost of an impossible redistribution: a shard to a partial, or no path
  // within the planner's memory limit.
  static constexpr std::int64_t kImpossible =
      std::numeric_limits<std::int64_t>::max();

  // The rows include the layouts of `wanted`. Errors:
  // kRedistributeMeshTooLarge; those of check_layout() for `wanted`.
  static Result<RedistributeRows> create(const RedistributePlanner& planner,
                                         const TensorMeta& meta,
                                         std::span<const Layout> wanted = {});
  // The rows have exactly the partials and split factors of `ends`, and no other
  // P(sum). Every cost equals cost() of a pair that has all of these placements.
  // Errors: those of create().
  static Result<RedistributeRows> create_between(
      const RedistributePlanner& planner, const TensorMeta& meta,
      std::span<const Layout> ends);

  const std::vector<Layout>& layouts() const;
  // Returns the index of the canonical form of `layout`; nullopt if the rows do
  // not include it. Mesh dims of size 1 count as replicated.
  std::optional<std::size_t> index_of(const Layout& layout) const;
  // Returns the nanoseconds to each of layouts(); every call computes them
  // again. Precondition: from < layouts().size().
  std::vector<std::int64_t> costs_from(std::size_t from) const;

 private:
  struct Body;
  static Result<RedistributeRows> of_alphabet(
      const RedistributePlanner& planner, const TensorMeta& meta,
      std::vector<Layout> named, std::span<const Layout> checked);
  explicit RedistributeRows(std::shared_ptr<const Body> body);
  std::shared_ptr<const Body> body_;
};

}  // namespace shardprop
