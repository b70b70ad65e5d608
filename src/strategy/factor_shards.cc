#include "strategy/factor_shards.h"

#include <algorithm>
#include <cstdint>

namespace shardprop {
namespace {

// Returns the different sizes of shards if each of `sizes` is cut into chunks.
// The list is always short.
std::vector<std::int64_t> cut_sizes(const std::vector<std::int64_t>& sizes,
                                    std::int64_t parts) {
  std::vector<std::int64_t> out;
  const auto add = [&](std::int64_t size) {
    if (std::find(out.begin(), out.end(), size) == out.end()) {
      out.push_back(size);
    }
  };
  for (const std::int64_t size : sizes) {
    const std::int64_t full = chunk(size, parts, 0).size();
    add(full);
    // After the full chunks comes one shorter chunk, then only empty ones.
    if (full * parts == size) continue;
    const std::int64_t whole = full == 0 ? 0 : size / full;
    add(size - whole * full);
    if (whole + 1 < parts) add(0);
  }
  return out;
}

// Returns the longest run with chunk(size * run) = chunk(size) * run. For such
// a run, the last chunks lack fewer elements than there are parts, so no chunk
// becomes shorter.
std::int64_t longest_run_of(std::int64_t size, std::int64_t parts) {
  const std::int64_t lacking = chunk(size, parts, 0).size() * parts - size;
  return lacking == 0 ? std::numeric_limits<std::int64_t>::max()
                      : (parts - 1) / lacking;
}

}  // namespace

FactorShards factor_shards(const IndexSpace& space, const DeviceMesh& mesh,
                           const Assignment& assignment, int factor) {
  FactorShards out;
  out.largest = space.factor(factor).size;
  std::vector<std::int64_t> sizes = {out.largest};
  for (std::size_t m = 0; m < assignment.size(); ++m) {
    if (assignment[m] != factor) continue;
    const std::int64_t parts = mesh.size(static_cast<int>(m));
    out.mesh_dims.push_back(static_cast<std::int32_t>(m));
    out.even = out.even && out.largest % parts == 0;
    out.largest = chunk(out.largest, parts, 0).size();
    for (const std::int64_t size : sizes) {
      out.longest_run = std::min(out.longest_run, longest_run_of(size, parts));
    }
    sizes = cut_sizes(sizes, parts);
  }
  out.smallest = *std::min_element(sizes.begin(), sizes.end());
  out.alike = std::all_of(sizes.begin(), sizes.end(), [&](std::int64_t size) {
    return size == 0 || size == out.largest;
  });
  return out;
}

bool averages_as_sums(const IndexSpace& space,
                      const std::vector<FactorShards>& shards) {
  for (std::size_t f = 0; f < shards.size(); ++f) {
    if (space.factors[f].program == ProgramUse::kWhenUneven &&
        !shards[f].even) {
      return true;
    }
  }
  return false;
}

}  // namespace shardprop
