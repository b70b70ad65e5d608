// RedistributeTable: the cost between all layouts of a tensor, computed once
// and shared: what a plan problem reads its edge costs from.
//
// Over the layouts and moves of planner.h, with P(sum) (where the dtype can be
// summed), the partials and the split factors of the layouts asked for. Every
// cost equals RedistributePlanner::cost() of the same pair under the same
// alphabet of placements.
//
//   auto table = RedistributeTable::create(planner, meta).value();
//   table.cost(*table.index_of(src), *table.index_of(dst));
#pragma once

#include <shardprop/redistribute/planner.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace shardprop {

class RedistributeTable {
 public:
  // The cost of what cannot be: a shard to a partial, or no path within the
  // planner's memory limit.
  static constexpr std::int64_t kImpossible =
      std::numeric_limits<std::int64_t>::max();

  // `wanted` are layouts that must be among the table's.
  // Errors: kRedistributeMeshTooLarge; those of check_layout() for `wanted`.
  static Result<RedistributeTable> create(const RedistributePlanner& planner,
                                          const TensorMeta& meta,
                                          std::span<const Layout> wanted = {});

  const std::vector<Layout>& layouts() const { return layouts_; }
  // Of the canonical form of `layout`; nothing when the table lacks it. Mesh
  // dims of size 1 count as replicated.
  std::optional<std::size_t> index_of(const Layout& layout) const;
  // Nanoseconds. Preconditions: from, to < layouts().size().
  std::int64_t cost(std::size_t from, std::size_t to) const {
    return costs_[from * layouts_.size() + to];
  }

 private:
  RedistributeTable(DeviceMesh mesh, Dims shape)
      : mesh_(std::move(mesh)), shape_(std::move(shape)) {}

  DeviceMesh mesh_;
  Dims shape_;
  std::vector<Layout> layouts_;
  std::unordered_map<Layout, std::size_t> index_;
  std::vector<std::int64_t> costs_;
};

}  // namespace shardprop
