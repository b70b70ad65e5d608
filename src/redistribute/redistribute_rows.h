// RedistributeRows: the costs from one layout of a tensor to all others in one
// search: what a plan problem reads its edge costs from.
//
// Over the layouts and moves of planner.h, with P(sum) (where the dtype can be
// summed), the partials and the split factors of the layouts asked for. Every
// cost equals RedistributePlanner::cost() of the same pair under the same
// alphabet of placements. Without any asked for that is cost() of the pair: a
// partial comes from R or from partials only, so that what has none gains
// nothing by P(sum). The exception: between strided layouts of many mesh dims a
// plan goes around them (detour.h), and may cost more than the row says.
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
  // The cost of what cannot be: a shard to a partial, or no path within the
  // planner's memory limit.
  static constexpr std::int64_t kImpossible =
      std::numeric_limits<std::int64_t>::max();

  // `wanted` are layouts that must be among those of the rows.
  // Errors: kRedistributeMeshTooLarge; those of check_layout() for `wanted`.
  static Result<RedistributeRows> create(const RedistributePlanner& planner,
                                         const TensorMeta& meta,
                                         std::span<const Layout> wanted = {});

  const std::vector<Layout>& layouts() const;
  // Of the canonical form of `layout`; nothing when it is not among them. Mesh
  // dims of size 1 count as replicated.
  std::optional<std::size_t> index_of(const Layout& layout) const;
  // Nanoseconds to each of layouts(), worked out at every call.
  // Precondition: from < layouts().size().
  std::vector<std::int64_t> costs_from(std::size_t from) const;

 private:
  struct Body;
  explicit RedistributeRows(std::shared_ptr<const Body> body);
  std::shared_ptr<const Body> body_;
};

}  // namespace shardprop
