// Compares DeviceMesh with a plain row-major array of ranks, under random
// chains of flatten, unflatten, slice and submesh.
#include <shardprop/mesh/device_mesh.h>

#include "support/property.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::property;

// `Model` is the simplest mesh: its dims and every rank.
struct Model {
  std::vector<MeshDim> dims;
  std::vector<std::int64_t> ranks;

  std::int64_t rank(const std::vector<std::int64_t>& at) const {
    std::int64_t index = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      index = index * dims[i].size + at[i];
    }
    return ranks[static_cast<std::size_t>(index)];
  }
};

std::int64_t count(const std::vector<MeshDim>& dims) {
  std::int64_t product = 1;
  for (const MeshDim& dim : dims) product *= dim.size;
  return product;
}

// Calls `visit` with every coordinate of `dims`, the last one fastest.
void for_each(
    const std::vector<MeshDim>& dims,
    const std::function<void(const std::vector<std::int64_t>&)>& visit) {
  std::vector<std::int64_t> at(dims.size(), 0);
  for (std::int64_t n = count(dims); n > 0; --n) {
    visit(at);
    for (std::size_t i = dims.size(); i-- > 0;) {
      if (++at[i] < dims[i].size) break;
      at[i] = 0;
    }
  }
}

std::vector<std::int32_t> some_dims(std::size_t ndim) {
  std::vector<std::int32_t> all(ndim);
  std::iota(all.begin(), all.end(), 0);
  for (std::size_t i = ndim; i > 1; --i) {
    std::swap(all[i - 1], all[*rc::gen::inRange<std::size_t>(0, i)]);
  }
  all.resize(*rc::gen::inRange<std::size_t>(1, ndim + 1));
  return all;
}

std::vector<std::int64_t> some_place(const Model& model) {
  std::vector<std::int64_t> at;
  for (const MeshDim& dim : model.dims) {
    at.push_back(*rc::gen::inRange<std::int64_t>(0, dim.size));
  }
  return at;
}

Coordinate coordinate(const std::vector<std::int64_t>& at) {
  return {at.begin(), at.end()};
}

std::string fresh_name(int& next) { return "m" + std::to_string(next++); }

// The dims of `into` from `model`, each new place mapped to an old one.
Model gathered(const Model& model, std::vector<MeshDim> dims,
               const std::function<std::vector<std::int64_t>(
                   const std::vector<std::int64_t>&)>& old_place) {
  Model out{std::move(dims), {}};
  for_each(out.dims, [&](const std::vector<std::int64_t>& at) {
    out.ranks.push_back(model.rank(old_place(at)));
  });
  return out;
}

using Pair = std::pair<DeviceMesh, Model>;

Pair flattened(const DeviceMesh& mesh, const Model& model, int& next) {
  const std::vector<std::int32_t> merged = some_dims(model.dims.size());
  const std::string name = fresh_name(next);
  const std::int32_t first = *std::min_element(merged.begin(), merged.end());
  std::vector<MeshDim> dims;
  std::vector<std::int32_t> source;  // old dim; -1: the merged ones
  for (std::int32_t i = 0; i < mesh.ndim(); ++i) {
    const bool in = std::find(merged.begin(), merged.end(), i) != merged.end();
    if (in && i != first) continue;
    MeshDim dim = model.dims[static_cast<std::size_t>(i)];
    if (in) {
      dim = {name, 1};
      for (const std::int32_t m : merged) dim.size *= mesh.size(m);
    }
    dims.push_back(dim);
    source.push_back(in ? -1 : i);
  }
  Model after = gathered(model, dims, [&](const auto& at) {
    std::vector<std::int64_t> old(model.dims.size());
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (source[i] >= 0) {
        old[static_cast<std::size_t>(source[i])] = at[i];
        continue;
      }
      std::int64_t rest = at[i];
      for (std::size_t m = merged.size(); m-- > 0;) {
        const auto dim = static_cast<std::size_t>(merged[m]);
        old[dim] = rest % model.dims[dim].size;
        rest /= model.dims[dim].size;
      }
    }
    return old;
  });
  const auto made = mesh.flatten(merged, name);
  RC_ASSERT(made.has_value());
  return {*made, std::move(after)};
}

Pair unflattened(const DeviceMesh& mesh, const Model& model, int& next) {
  const int dim = *rc::gen::inRange(0, mesh.ndim());
  std::vector<MeshDim> parts;
  std::int64_t left = mesh.size(dim);
  const int room = kMaxMeshDims - mesh.ndim();
  for (int i = 0; i < room; ++i) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= left; ++d) {
      if (left % d == 0) divisors.push_back(d);
    }
    const std::int64_t size = *rc::gen::elementOf(divisors);
    parts.push_back({fresh_name(next), size});
    left /= size;
    if (left == 1) break;
  }
  if (left > 1 || parts.empty()) parts.push_back({fresh_name(next), left});
  Model after = model;  // the row-major order of ranks stays
  after.dims.erase(after.dims.begin() + dim);
  after.dims.insert(after.dims.begin() + dim, parts.begin(), parts.end());
  const auto made = mesh.unflatten(dim, parts);
  RC_ASSERT(made.has_value());
  return {*made, std::move(after)};
}

Pair sliced(const DeviceMesh& mesh, const Model& model) {
  const std::vector<std::int32_t> kept = some_dims(model.dims.size());
  const std::vector<std::int64_t> through = some_place(model);
  std::vector<MeshDim> dims;
  std::vector<std::string_view> names;
  for (const std::int32_t dim : kept) {
    dims.push_back(model.dims[static_cast<std::size_t>(dim)]);
    names.emplace_back(mesh.name(dim));
  }
  Model after = gathered(model, dims, [&](const auto& at) {
    std::vector<std::int64_t> old = through;
    for (std::size_t i = 0; i < at.size(); ++i) {
      old[static_cast<std::size_t>(kept[i])] = at[i];
    }
    return old;
  });
  const auto made = mesh.slice(names, coordinate(through));
  RC_ASSERT(made.has_value());
  return {*made, std::move(after)};
}

Pair fixed(const DeviceMesh& mesh, const Model& model) {
  const int dim = *rc::gen::inRange(0, mesh.ndim());
  const auto index = *rc::gen::inRange<std::int64_t>(0, mesh.size(dim));
  std::vector<MeshDim> dims = model.dims;
  dims.erase(dims.begin() + dim);
  Model after = gathered(model, dims, [&](const auto& at) {
    std::vector<std::int64_t> old = at;
    old.insert(old.begin() + dim, index);
    return old;
  });
  const auto made = mesh.submesh(mesh.name(dim), index);
  RC_ASSERT(made.has_value());
  return {*made, std::move(after)};
}

Pair some_mesh(int& next) {
  Model model;
  const int ndim = *rc::gen::inRange(1, 5);
  for (int i = 0; i < ndim; ++i) {
    model.dims.push_back(
        {fresh_name(next), *rc::gen::inRange<std::int64_t>(1, 5)});
  }
  const auto size = static_cast<std::size_t>(count(model.dims));
  const auto first = *rc::gen::inRange<std::int64_t>(0, 50);
  model.ranks.resize(size);
  std::iota(model.ranks.begin(), model.ranks.end(), first);
  const int kind = *rc::gen::inRange(0, 3);
  if (kind == 0) {
    const auto mesh = DeviceMesh::create(model.dims, first);
    RC_ASSERT(mesh.has_value());
    return {*mesh, std::move(model)};
  }
  if (kind == 1) {  // no order at all
    for (std::size_t i = size; i > 1; --i) {
      std::swap(model.ranks[i - 1],
                model.ranks[*rc::gen::inRange<std::size_t>(0, i)]);
    }
  } else {  // every second or third rank
    const auto step = *rc::gen::inRange<std::int64_t>(1, 4);
    for (std::int64_t& rank : model.ranks) rank = first + step * (rank - first);
  }
  const auto mesh = DeviceMesh::from_ranks(model.dims, model.ranks);
  RC_ASSERT(mesh.has_value());
  return {*mesh, std::move(model)};
}

Pair changed(const Pair& pair, int& next) {
  const auto& [mesh, model] = pair;
  switch (*rc::gen::inRange(0, 6)) {
    case 0:
    case 1:
      return flattened(mesh, model, next);
    case 2:
    case 3:
      if (mesh.ndim() == kMaxMeshDims) return pair;
      return unflattened(mesh, model, next);
    case 4:
      return sliced(mesh, model);
    default:
      return mesh.ndim() > 1 ? fixed(mesh, model) : pair;
  }
}

Pair some_changed_mesh() {
  int next = 0;
  Pair pair = some_mesh(next);
  const int steps = *rc::gen::inRange(0, 5);
  for (int i = 0; i < steps; ++i) pair = changed(pair, next);
  return pair;
}

TEST_CASE("a mesh places ranks as a plain array does") {
  property(30000, [] {
    const auto [mesh, model] = some_changed_mesh();
    RC_ASSERT(mesh.dims() == model.dims);
    RC_ASSERT(mesh.size() == count(model.dims));
    for_each(model.dims, [&, &mesh = mesh, &model = model](const auto& at) {
      const std::int64_t rank = model.rank(at);
      const Coordinate place = coordinate(at);
      const std::int64_t index = mesh.index_at(place);
      RC_ASSERT(mesh.rank_at(place) == rank);
      RC_ASSERT(mesh.rank_at_index(index) == rank);
      RC_ASSERT(mesh.coordinate_at_index(index) == place);
      RC_ASSERT(mesh.coordinate_of(rank) == place);
      RC_ASSERT(mesh.index_of(rank) == index);
    });
    const std::int64_t largest =
        *std::max_element(model.ranks.begin(), model.ranks.end());
    for (std::int64_t rank = -1; rank <= largest + 2; ++rank) {
      const bool held = std::find(model.ranks.begin(), model.ranks.end(),
                                  rank) != model.ranks.end();
      RC_ASSERT(mesh.contains(rank) == held);
    }
  });
}

TEST_CASE("a mesh equals the one made from its list of ranks") {
  property(20000, [] {
    const auto [mesh, model] = some_changed_mesh();
    const auto listed = DeviceMesh::from_ranks(model.dims, model.ranks);
    RC_ASSERT(listed.has_value());
    RC_ASSERT(*listed == mesh);
    RC_ASSERT(listed->hash() == mesh.hash());
    std::vector<std::int64_t> other = model.ranks;
    if (other.size() < 2) return;
    const auto at = *rc::gen::inRange<std::size_t>(1, other.size());
    std::swap(other[at - 1], other[at]);
    RC_ASSERT(!(*DeviceMesh::from_ranks(model.dims, other) == mesh));
  });
}

TEST_CASE("groups hold the ranks that differ in their dims only") {
  property(20000, [] {
    const auto [mesh, model] = some_changed_mesh();
    const std::vector<std::int64_t> at = some_place(model);
    const std::vector<std::int32_t> dims = some_dims(model.dims.size());
    std::vector<MeshDim> spanned;
    for (const std::int32_t dim : dims) {
      spanned.push_back(model.dims[static_cast<std::size_t>(dim)]);
    }
    std::vector<std::int64_t> expected;
    for_each(spanned, [&, &model = model](const auto& within) {
      std::vector<std::int64_t> place = at;
      for (std::size_t i = 0; i < dims.size(); ++i) {
        place[static_cast<std::size_t>(dims[i])] = within[i];
      }
      expected.push_back(model.rank(place));
    });
    const RankGroup group = mesh.group(dims, coordinate(at));
    RC_ASSERT(group.ranks() == expected);
    RC_ASSERT(group.size() == static_cast<std::int64_t>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      RC_ASSERT(group.index_of(expected[i]) == static_cast<std::int64_t>(i));
    }
    RC_ASSERT(!group.index_of(-1).has_value());
    // The same ranks, held as a list, are the same group.
    const MeshDim line[] = {{"line", group.size()}};
    const auto listed = DeviceMesh::from_ranks(line, expected);
    RC_ASSERT(listed->group(0, {0}) == group);
  });
}

TEST_CASE("the groups of a dim part the mesh") {
  property(10000, [] {
    const auto [mesh, model] = some_changed_mesh();
    const int dim = *rc::gen::inRange(0, mesh.ndim());
    std::vector<std::int64_t> seen;
    for (std::int64_t i = 0; i < mesh.group_count(dim); ++i) {
      const RankGroup group = mesh.group_at(dim, i);
      RC_ASSERT(group.size() == mesh.size(dim));
      const auto at = mesh.coordinate_of(group.rank(0));
      RC_ASSERT(mesh.group(dim, *at) == group);
      for (const std::int64_t rank : group.ranks()) seen.push_back(rank);
    }
    std::vector<std::int64_t> all = model.ranks;
    std::sort(all.begin(), all.end());
    std::sort(seen.begin(), seen.end());
    RC_ASSERT(seen == all);
  });
}

TEST_CASE("a mesh of consecutive ranks reads back what it prints") {
  property(10000, [] {
    int next = 0;
    const auto [mesh, model] = some_mesh(next);
    const auto read = DeviceMesh::parse(to_string(mesh));
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->dims() == mesh.dims());
    std::vector<std::int64_t> consecutive(model.ranks.size());
    std::iota(consecutive.begin(), consecutive.end(), 0);
    RC_ASSERT((*read == mesh) == (model.ranks == consecutive));
  });
}

}  // namespace
}  // namespace shardprop
