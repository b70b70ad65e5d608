#include "solver/model/network.h"

#include <shardprop/base/hash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/index.h"

namespace shardprop::solver {

int TablePool::intern(int rows, int columns, std::vector<double> costs) {
  std::uint64_t hash = hash_mix(static_cast<std::uint64_t>(rows),
                                static_cast<std::uint64_t>(columns));
  for (double& cost : costs) {
    cost += 0.0;  // -0 and 0 are one table
    hash = (hash ^ std::bit_cast<std::uint64_t>(cost)) * 0x9fb21c651e98df25ULL;
    hash ^= hash >> 32;
  }
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Entry& known = tables_[index(it->second)];
    if (known.shape.rows == rows && known.costs == costs) return it->second;
  }
  const int id = static_cast<int>(tables_.size());
  tables_.push_back({{rows, columns}, std::move(costs)});
  by_hash_.emplace(hash, id);
  return id;
}

int TablePool::transposed(int id) {
  if (const int known = tables_[index(id)].transposed; known >= 0) {
    return known;
  }
  const auto [rows, columns] = shape(id);
  std::vector<double> out(costs(id).size());
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      out[index(c) * index(rows) + index(r)] = at(id, r, c);
    }
  }
  const int other = intern(columns, rows, std::move(out));
  tables_[index(id)].transposed = other;
  tables_[index(other)].transposed = id;
  return other;
}

int TablePool::sum(int a, int b) {
  const auto key = std::minmax(a, b);
  if (const auto it = sums_.find(key); it != sums_.end()) return it->second;
  std::vector<double> out = costs(a);
  const std::vector<double>& more = costs(b);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += more[i];
  const int id = intern(shape(a).rows, shape(a).columns, std::move(out));
  sums_.emplace(key, id);
  return id;
}

int TablePool::intern_map(const std::vector<int>& map) {
  return maps_.emplace(map, static_cast<int>(maps_.size())).first->second;
}

int TablePool::gather_rows(int id, const std::vector<int>& rows) {
  const std::pair key(id, intern_map(rows));
  if (const auto it = gathered_.find(key); it != gathered_.end())
    return it->second;
  const int columns = shape(id).columns;
  std::vector<double> out;
  out.reserve(rows.size() * static_cast<std::size_t>(columns));
  for (const int r : rows) {
    const auto from =
        costs(id).begin() + static_cast<std::ptrdiff_t>(r) * columns;
    out.insert(out.end(), from, from + columns);
  }
  const int result =
      intern(static_cast<int>(rows.size()), columns, std::move(out));
  gathered_.emplace(key, result);
  return result;
}

double TablePool::least(int id) const {
  const std::vector<double>& all = costs(id);
  return *std::min_element(all.begin(), all.end());
}

int TablePool::lowered(int id) {
  if (const int known = tables_[index(id)].lowered; known >= 0) {
    return known;
  }
  std::vector<double> out = costs(id);
  const double by = least(id);
  for (double& cost : out) cost -= by;
  const int result = intern(shape(id).rows, shape(id).columns, std::move(out));
  tables_[index(id)].lowered = result;
  return result;
}

bool TablePool::is_separable(int id) {
  Entry& t = tables_[index(id)];
  if (t.separable < 0) {
    bool ok = true;
    const auto columns = static_cast<std::size_t>(t.shape.columns);
    for (std::size_t i = 0; ok && i < t.costs.size(); ++i) {
      const double row = t.costs[i / columns * columns];
      const double column = t.costs[i % columns];
      ok = std::isfinite(t.costs[i]) && t.costs[i] - row == column - t.costs[0];
    }
    t.separable = ok ? 1 : 0;
  }
  return t.separable == 1;
}

bool TablePool::is_functional(int id) {
  Entry& t = tables_[index(id)];
  if (t.functional < 0) {
    bool ok = true;
    const auto columns = static_cast<std::size_t>(t.shape.columns);
    for (std::size_t r = 0; ok && r < static_cast<std::size_t>(t.shape.rows);
         ++r) {
      int finite = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        finite += std::isfinite(t.costs[r * columns + c]) ? 1 : 0;
      }
      ok = finite == 1;
    }
    t.functional = ok ? 1 : 0;
  }
  return t.functional == 1;
}

}  // namespace shardprop::solver
