#include <shardprop/redistribute/redistribute_table.h>

#include "base/guard.h"
#include "base/try.h"

#include <algorithm>

namespace shardprop {

Result<RedistributeTable> RedistributeTable::create(
    const RedistributePlanner& planner, const TensorMeta& meta,
    std::span<const Layout> wanted) {
  return guarded([&]() -> Result<RedistributeTable> {
    SP_ASSIGN(RedistributeRows rows,
              RedistributeRows::create(planner, meta, wanted));
    const std::size_t count = rows.layouts().size();
    std::vector<std::int64_t> costs;
    costs.reserve(count * count);
    for (std::size_t from = 0; from < count; ++from) {
      const std::vector<std::int64_t> row = rows.costs_from(from);
      costs.insert(costs.end(), row.begin(), row.end());
    }
    return RedistributeTable(std::move(rows), std::move(costs));
  });
}

}  // namespace shardprop
