// Finds parts that are right but in another order.
#include "base/index.h"
#include "verify/layout_fit.h"

#include <algorithm>

namespace shardprop::verification {

std::string RankValues::wrong_order() const {
  for (const Layout& layout : candidates(false)) {
    if (layout.has_partial()) continue;
    std::string found = swapped_ranks(layout);
    if (found.empty()) found = swapped_shards(layout);
    if (!found.empty()) return found;
  }
  return {};
}

std::string RankValues::swapped_ranks(const Layout& layout) const {
  std::string first;
  for (std::int64_t i = 0; i < mesh_.size(); ++i) {
    const Elements& own = held_[index(i)];
    std::int64_t other = 0;
    for (; other < mesh_.size(); ++other) {
      const Elements wanted = part(layout, other);
      const bool is_same = own.size() == wanted.size() &&
                           std::equal(own.begin(), own.end(), wanted.begin(),
                                      [&](const auto& a, const auto& b) {
                                        return apart(a, b) <= bound(1);
                                      });
      if (is_same) break;
    }
    if (other == mesh_.size()) return {};
    if (other == i || !first.empty()) continue;
    first = "rank " + std::to_string(mesh_.rank_at_index(i)) +
            " holds the part of rank " +
            std::to_string(mesh_.rank_at_index(other));
  }
  if (first.empty()) return {};
  return "The ranks hold the parts of the layout " + to_string(layout) +
         " in another order: " + first + ".";
}

// Compares block `from` of one tensor along a dim with block `to` of another.
bool RankValues::is_block(const Elements& own, const Elements& wanted,
                          const Dims& sizes, std::size_t dim,
                          std::int64_t blocks, std::int64_t from,
                          std::int64_t to) const {
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < sizes.size(); ++d) inner *= sizes[d];
  const std::int64_t block = sizes[dim] / blocks * inner;
  const std::int64_t row = sizes[dim] * inner;
  for (std::size_t start = 0; start < own.size(); start += index(row)) {
    for (std::int64_t e = 0; e < block; ++e) {
      const auto& a = own[start + index(from * block + e)];
      const auto& b = wanted[start + index(to * block + e)];
      if (!(apart(a, b) <= bound(1))) return false;
    }
  }
  return true;
}

// A gather over a mesh dim that replicates may have put the shards of a dim in
// another order.
std::string RankValues::swapped_shards(const Layout& layout) const {
  for (int mesh_dim = 0; mesh_dim < mesh_.ndim(); ++mesh_dim) {
    const std::int64_t blocks = mesh_.size(mesh_dim);
    if (blocks == 1 || !layout[mesh_dim].is_replicate()) continue;
    for (std::size_t dim = 0; dim < whole_sizes_.size(); ++dim) {
      std::string order;
      bool is_found = true;
      for (std::int64_t i = 0; i < mesh_.size() && is_found; ++i) {
        const Dims& sizes = sizes_[index(i)];
        if (held_[index(i)].empty() || sizes[dim] % blocks != 0) {
          is_found = false;
          break;
        }
        const Elements wanted = part(layout, i);
        std::string own_order;
        for (std::int64_t from = 0; from < blocks; ++from) {
          std::int64_t to = 0;
          while (to < blocks && !is_block(held_[index(i)], wanted, sizes, dim,
                                          blocks, from, to)) {
            ++to;
          }
          is_found = is_found && to < blocks;
          own_order += (from == 0 ? "" : ",") + std::to_string(to);
        }
        is_found = is_found && (order.empty() || order == own_order);
        order = own_order;
      }
      if (!is_found) continue;
      return "The shards of dim " + std::to_string(dim) + " over " +
             mesh_.name(mesh_dim) + "=" + std::to_string(blocks) +
             " are in the order " + order + ".";
    }
  }
  return {};
}

}  // namespace shardprop::verification
