#include <shardprop/placement/layout.h>

#include "base/index.h"
#include "base/nothing_wrong.h"
#include "base/parse_int.h"
#include "base/try.h"

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/partials.h>

#include <algorithm>
#include <map>
#include <utility>

namespace shardprop {
namespace {

// Returns the place of mesh dim `i` in default order: the number of outer mesh
// dims that shard the same tensor dim.
std::int8_t default_place(const Placements& placements, std::size_t i) {
  if (!placements[i].is_shard()) return 0;
  std::int8_t place = 0;
  for (std::size_t j = 0; j < i; ++j) {
    if (placements[j].shards(placements[i].dim())) ++place;
  }
  return place;
}

ShardOrder default_order(const Placements& placements) {
  ShardOrder order(placements.size());
  for (std::size_t i = 0; i < placements.size(); ++i) {
    order[i] = default_place(placements, i);
  }
  return order;
}

Result<void> check_count(std::size_t placements) {
  if (placements <= kMaxMeshDims) return nothing_wrong();
  return fail(
      ErrorCode::kPlacementCount,
      std::to_string(placements) + " placements are more than a mesh has dims",
      "a mesh has at most " + std::to_string(kMaxMeshDims) + " dims");
}

Result<void> check_partials(const Placements& placements) {
  const Placement* first = nullptr;
  for (const Placement& placement : placements) {
    if (!placement.is_partial()) continue;
    if (first == nullptr) {
      first = &placement;
    } else if (!partials_mix(*first, placement)) {
      return fail(ErrorCode::kMixedPartials,
                  to_string(*first) + " and " + to_string(placement) +
                      " cannot be mixed in one spec",
                  "reduce one of them first; only sum and avg mix");
    }
  }
  return nothing_wrong();
}

// Splits at commas outside parentheses.
std::vector<std::string_view> split_entries(std::string_view text) {
  std::vector<std::string_view> entries;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] == ',' && depth == 0) {
      entries.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  entries.push_back(text.substr(start));
  return entries;
}

Result<Layout> parse_entries(std::span<const std::string_view> entries) {
  SP_CHECK(check_count(entries.size()));
  Placements placements;
  std::vector<std::optional<std::int8_t>> marks;
  for (const std::string_view entry : entries) {
    const std::size_t at = entry.find('@');
    SP_ASSIGN(const Placement placement, Placement::parse(entry.substr(0, at)));
    placements.push_back(placement);
    std::optional<std::int8_t> mark;
    if (at != std::string_view::npos) {
      const auto place = parse_int(entry.substr(at + 1));
      if (!place || *place < 0 || *place > INT8_MAX || !placement.is_shard()) {
        return fail(ErrorCode::kShardOrder,
                    "`" + std::string(entry) +
                        "` has no valid place in a "
                        "shard order",
                    "write S(0)@1,S(0)@0: @k is the k-th cut of a tensor dim");
      }
      mark = static_cast<std::int8_t>(*place);
    }
    marks.push_back(mark);
  }
  ShardOrder order = default_order(placements);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i]) order[i] = *marks[i];
  }
  return Layout::create(std::move(placements), std::move(order));
}

}  // namespace

Result<Layout> Layout::create(Placements placements) {
  SP_CHECK(check_count(placements.size()));
  SP_CHECK(check_partials(placements));
  ShardOrder order = default_order(placements);
  return Layout(std::move(placements), std::move(order));
}

Result<Layout> Layout::create(Placements placements, ShardOrder order) {
  if (placements.size() != order.size()) {
    return fail(ErrorCode::kPlacementCount,
                std::to_string(placements.size()) + " placements come with " +
                    std::to_string(order.size()) + " places in a shard order");
  }
  SP_CHECK(check_count(placements.size()));
  SP_CHECK(check_partials(placements));
  for (std::size_t i = 0; i < placements.size(); ++i) {
    std::int8_t others = 0;
    bool taken = false;
    for (std::size_t j = 0; j < placements.size(); ++j) {
      if (j == i || !placements[i].is_shard() ||
          !placements[j].shards(placements[i].dim())) {
        continue;
      }
      ++others;
      taken = taken || order[j] == order[i];
    }
    if (taken || order[i] < 0 || order[i] > others) {
      return fail(ErrorCode::kShardOrder,
                  "place " + std::to_string(order[i]) + " of " +
                      to_string(placements[i]) +
                      " does not number the cuts of its dim",
                  "number the cuts of a tensor dim 0, 1, 2, each once");
    }
  }
  return Layout(std::move(placements), std::move(order));
}

Result<Layout> Layout::parse(std::string_view text) {
  return parse_entries(split_entries(text));
}

Layout Layout::replicated(int mesh_ndim) {
  const auto n = static_cast<std::size_t>(mesh_ndim);
  return Layout(Placements(n), ShardOrder(n));
}

bool Layout::has_default_order() const {
  for (std::size_t i = 0; i < placements_.size(); ++i) {
    if (order_[i] != default_place(placements_, i)) return false;
  }
  return true;
}

bool Layout::is_replicated() const {
  return std::all_of(placements_.begin(), placements_.end(),
                     [](Placement p) { return p.is_replicate(); });
}

bool Layout::has_partial() const {
  return std::any_of(placements_.begin(), placements_.end(),
                     [](Placement p) { return p.is_partial(); });
}

bool Layout::has_strided() const {
  return std::any_of(placements_.begin(), placements_.end(),
                     [](Placement p) { return p.is_strided(); });
}

DimIndices Layout::cuts(int tensor_dim) const {
  DimIndices out;
  for (std::int32_t i = 0; i < mesh_ndim(); ++i) {
    if ((*this)[i].shards(tensor_dim)) out.push_back(i);
  }
  std::sort(out.begin(), out.end(), [&](std::int32_t a, std::int32_t b) {
    return order_[index(a)] < order_[index(b)];
  });
  return out;
}

int Layout::min_tensor_rank() const {
  int rank = 0;
  for (const Placement& placement : placements_) {
    if (placement.is_shard()) rank = std::max(rank, placement.dim() + 1);
  }
  return rank;
}

Result<Layout> Layout::with(int mesh_dim, Placement placement) const {
  const auto at = index(mesh_dim);
  if (placements_[at] == placement) return *this;
  Placements placements = placements_;
  ShardOrder order = order_;
  if (placements[at].is_shard()) {
    for (std::size_t i = 0; i < placements.size(); ++i) {
      if (placements[i].shards(placements[at].dim()) && order[i] > order[at]) {
        --order[i];
      }
    }
  }
  order[at] = 0;
  placements[at] = placement;
  if (placement.is_shard()) {
    for (std::size_t i = 0; i < placements.size(); ++i) {
      if (i != at && placements[i].shards(placement.dim())) ++order[at];
    }
  }
  SP_CHECK(check_partials(placements));
  return Layout(std::move(placements), std::move(order));
}

std::vector<std::string> to_strings(const Layout& layout) {
  // If the cuts of a tensor dim are out of order, each of its placements shows
  // its place.
  std::vector<std::string> out;
  for (int i = 0; i < layout.mesh_ndim(); ++i) {
    std::string entry = to_string(layout[i]);
    if (layout[i].is_shard()) {
      const DimIndices cuts = layout.cuts(layout[i].dim());
      if (!std::is_sorted(cuts.begin(), cuts.end())) {
        entry += '@';
        entry += std::to_string(layout.shard_order()[index(i)]);
      }
    }
    out.push_back(std::move(entry));
  }
  return out;
}

std::string to_string(const Layout& layout) {
  std::string out;
  for (const std::string& entry : to_strings(layout)) {
    if (!out.empty()) out += ',';
    out += entry;
  }
  return out;
}

Result<Layout> parse_layout(std::span<const std::string> entries) {
  std::vector<std::string_view> views(entries.begin(), entries.end());
  return parse_entries(views);
}

}  // namespace shardprop
