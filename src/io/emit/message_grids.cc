#include "io/emit/message_grids.h"

#include "base/index.h"
#include "io/emit/regions.h"
#include "io/emit/runs.h"
#include "io/emit/tensor_ops.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace shardprop::emit {
namespace {

// Returns the dim along which `b` continues `a`, if the grids differ in that
// dim only.
std::optional<std::size_t> continued_along(const MessageGrid& a,
                                           const MessageGrid& b) {
  if (a.order != b.order) return std::nullopt;
  std::optional<std::size_t> along;
  for (std::size_t d = 0; d < a.parts.size(); ++d) {
    if (a.parts[d] == b.parts[d]) continue;
    if (along || a.parts[d].size() > 1 || b.parts[d].size() > 1 ||
        size_of(a.parts[d][0]) != size_of(b.parts[d][0])) {
      return std::nullopt;
    }
    along = d;
  }
  return along;
}

// Merges consecutive grids that differ along one dim.
std::vector<MessageGrid> joined(const std::vector<MessageGrid>& grids) {
  std::vector<MessageGrid> out;
  for (std::size_t i = 0; i < grids.size();) {
    const MessageGrid& first = grids[i++];
    out.push_back(first);
    if (i == grids.size()) break;
    const auto along = continued_along(first, grids[i]);
    if (!along) continue;
    MessageGrid& all = out.back();
    all.order.insert(all.order.begin(), *along);
    for (; i < grids.size() && continued_along(first, grids[i]) == along; ++i) {
      all.parts[*along].push_back(grids[i].parts[*along][0]);
    }
  }
  return out;
}

// The axes into which a grid splits its tensor: for each dim the number of
// parts, if there are several, and the size of a part, as in [n_0, L_0, L_1,
// n_2, L_2].
struct Axes {
  Dims split;
  std::vector<std::int64_t> packed;  // as messages: the parts first
};

Axes axes_of(const MessageGrid& grid) {
  Axes out;
  std::vector<std::int64_t> counts(grid.parts.size());
  std::vector<std::int64_t> sizes;
  for (std::size_t d = 0; d < grid.parts.size(); ++d) {
    if (grid.parts[d].size() > 1) {
      counts[d] = static_cast<std::int64_t>(out.split.size());
      out.split.push_back(static_cast<std::int64_t>(grid.parts[d].size()));
    }
    sizes.push_back(static_cast<std::int64_t>(out.split.size()));
    out.split.push_back(size_of(grid.parts[d][0]));
  }
  for (const std::size_t d : grid.order) out.packed.push_back(counts[d]);
  out.packed.insert(out.packed.end(), sizes.begin(), sizes.end());
  return out;
}

std::vector<Interval> in_order(const std::vector<Intervals>& parts) {
  std::vector<Interval> out;
  for (const Intervals& part : parts) {
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

// Returns the interval of each run in the grid and in the tensor, sorted by the
// place in the tensor.
std::vector<std::pair<Interval, Interval>> by_place(
    const std::vector<Intervals>& parts) {
  std::vector<std::pair<Interval, Interval>> out;
  std::int64_t begin = 0;
  for (const Interval& run : in_order(parts)) {
    out.push_back({{begin, begin + run.size()}, run});
    begin += run.size();
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.second.begin < b.second.begin;
  });
  return out;
}

// Returns the elements that a grid received, as a piece of the tensor.
Piece piece_of(TorchGraph& graph, TorchId x, const MessageGrid& grid) {
  const Axes axes = axes_of(grid);
  Dims packed;
  std::vector<std::int64_t> back(axes.packed.size());
  for (std::size_t i = 0; i < axes.packed.size(); ++i) {
    const auto axis = index(axes.packed[i]);
    packed.push_back(axes.split[axis]);
    back[axis] = static_cast<std::int64_t>(i);
  }
  x = permute(graph, reshape(graph, x, std::move(packed)), back);
  Dims whole;
  for (const auto& parts : grid.parts) {
    whole.push_back(static_cast<std::int64_t>(parts.size()) *
                    size_of(parts[0]));
  }
  x = reshape(graph, x, std::move(whole));
  std::vector<Intervals> region;
  for (std::size_t d = 0; d < grid.parts.size(); ++d) {
    std::vector<Interval> runs;
    Intervals held;
    for (const auto& [at, place] : by_place(grid.parts[d])) {
      runs.push_back(at);
      if (!held.empty() && held[held.size() - 1].end == place.begin) {
        held[held.size() - 1].end = place.end;
      } else {
        held.push_back(place);
      }
    }
    x = rearranged(graph, x, static_cast<int>(d), runs);
    region.push_back(std::move(held));
  }
  return {x, LocalRegion(std::move(region))};
}

}  // namespace

Message message(const LocalRegion& held, const LocalRegion& part) {
  Message out;
  for (std::size_t d = 0; d < held.dims().size(); ++d) {
    out.push_back(places(held.dims()[d], part.dims()[d]));
  }
  return out;
}

std::int64_t MessageGrid::numel() const {
  std::int64_t all = 1;
  for (const auto& of_dim : parts) {
    all *= static_cast<std::int64_t>(of_dim.size()) * size_of(of_dim[0]);
  }
  return all;
}

std::vector<MessageGrid> message_grids(const std::vector<Message>& messages) {
  std::vector<MessageGrid> out;
  for (const Message& message : messages) {
    MessageGrid grid;
    for (const Intervals& part : message) grid.parts.push_back({part});
    out.push_back(std::move(grid));
  }
  for (;;) {
    std::vector<MessageGrid> fewer = joined(out);
    if (fewer.size() == out.size()) return out;
    out = std::move(fewer);
  }
}

TorchId pack(TorchGraph& graph, TorchId x, const MessageGrid& grid) {
  for (std::size_t d = 0; d < grid.parts.size(); ++d) {
    x = rearranged(graph, x, static_cast<int>(d), in_order(grid.parts[d]));
  }
  Axes axes = axes_of(grid);
  x = permute(graph, reshape(graph, x, std::move(axes.split)), axes.packed);
  return reshape(graph, x, Dims{grid.numel()});
}

TorchId unpack(TorchGraph& graph, TorchId buffer,
               const std::vector<MessageGrid>& grids, const Dims& shape) {
  std::vector<Piece> pieces;
  std::int64_t begin = 0;
  for (const MessageGrid& grid : grids) {
    const std::int64_t end = begin + grid.numel();
    pieces.push_back(
        piece_of(graph, slice(graph, buffer, 0, begin, end), grid));
    begin = end;
  }
  if (pieces.empty()) return reshape(graph, buffer, shape);
  std::vector<Intervals> whole;
  for (const std::int64_t size : shape) whole.push_back({{0, size}});
  return assemble(graph, pieces, LocalRegion(std::move(whole)));
}

}  // namespace shardprop::emit
