// RedistributeTable: the cost between all layouts of a tensor, computed once
// and shared: all rows of RedistributeRows.
//
//   auto table = RedistributeTable::create(planner, meta).value();
//   table.cost(*table.index_of(src), *table.index_of(dst));
#pragma once

#include <shardprop/redistribute/redistribute_rows.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace shardprop {

class RedistributeTable {
 public:
  static constexpr std::int64_t kImpossible = RedistributeRows::kImpossible;

  // `wanted` are layouts that must be among the table's.
  // Errors: kRedistributeMeshTooLarge; those of check_layout() for `wanted`.
  static Result<RedistributeTable> create(const RedistributePlanner& planner,
                                          const TensorMeta& meta,
                                          std::span<const Layout> wanted = {});

  // As RedistributeRows has them.
  const std::vector<Layout>& layouts() const { return rows_.layouts(); }
  std::optional<std::size_t> index_of(const Layout& layout) const {
    return rows_.index_of(layout);
  }
  // Nanoseconds. Preconditions: from, to < layouts().size().
  std::int64_t cost(std::size_t from, std::size_t to) const {
    return costs_[from * layouts().size() + to];
  }

 private:
  RedistributeTable(RedistributeRows rows, std::vector<std::int64_t> costs)
      : rows_(std::move(rows)), costs_(std::move(costs)) {}

  RedistributeRows rows_;
  std::vector<std::int64_t> costs_;
};

}  // namespace shardprop
