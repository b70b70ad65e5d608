#include "mesh/rank_modes.h"

#include <numeric>

namespace shardprop {
namespace {

// search() visits the modes depth-first, from the largest stride down. `reach`
// holds the largest offset that the remaining modes can add.
std::optional<std::int64_t> search(const RankModes& modes,
                                   const std::vector<std::size_t>& order,
                                   const std::vector<std::int64_t>& reach,
                                   std::size_t at, std::int64_t offset,
                                   std::vector<std::int64_t>& index) {
  if (at == order.size()) {
    if (offset != 0) return std::nullopt;
    std::int64_t flat = 0;
    for (std::size_t i = 0; i < modes.size(); ++i) {
      flat = flat * modes[i].size + index[i];
    }
    return flat;
  }
  const RankMode& mode = modes[order[at]];
  if (mode.size == 1) {
    index[order[at]] = 0;
    return search(modes, order, reach, at + 1, offset, index);
  }
  const std::int64_t most = std::min(mode.size - 1, offset / mode.stride);
  for (std::int64_t i = most; i >= 0; --i) {
    const std::int64_t rest = offset - i * mode.stride;
    if (rest > reach[at + 1]) break;
    index[order[at]] = i;
    if (auto found = search(modes, order, reach, at + 1, rest, index)) {
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> mode_index(const RankModes& modes,
                                       std::int64_t offset) {
  if (offset < 0) return std::nullopt;
  std::vector<std::size_t> order(modes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return modes[a].stride > modes[b].stride;
  });
  std::vector<std::int64_t> reach(order.size() + 1, 0);
  for (std::size_t i = order.size(); i-- > 0;) {
    const RankMode& mode = modes[order[i]];
    reach[i] = reach[i + 1] + (mode.size - 1) * mode.stride;
  }
  if (offset > reach[0]) return std::nullopt;
  std::vector<std::int64_t> index(modes.size(), 0);
  return search(modes, order, reach, 0, offset, index);
}

RankModes coalesced(const RankModes& modes) {
  RankModes out;
  for (const RankMode& mode : modes) {
    if (mode.size == 1) continue;
    if (!out.empty() && out.back().stride == mode.size * mode.stride) {
      out.back() = {out.back().size * mode.size, mode.stride};
    } else {
      out.push_back(mode);
    }
  }
  return out;
}

}  // namespace shardprop
