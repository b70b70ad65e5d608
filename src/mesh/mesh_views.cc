// Meshes derived from other meshes: slices, flattened dims and split dims.
#include "base/index.h"
#include "base/try.h"
#include "mesh/device_mesh_body.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace shardprop {
namespace {

// split_modes() returns the modes of each part of a split dim. It assigns the
// fastest modes first, and splits a mode if a part ends inside it. It returns
// nullopt if a part has no constant stride.
std::optional<std::vector<RankModes>> split_modes(
    const RankModes& modes, std::span<const MeshDim> into) {
  RankModes left = coalesced(modes);
  std::vector<RankModes> parts(into.size());
  for (std::size_t p = into.size(); p-- > 0;) {
    std::int64_t wanted = into[p].size;
    while (wanted > 1) {
      RankMode& last = left.back();
      if (wanted % last.size == 0) {
        wanted /= last.size;
        parts[p].insert(parts[p].begin(), last);
        left.pop_back();
      } else if (last.size % wanted == 0) {
        parts[p].insert(parts[p].begin(), {wanted, last.stride});
        last = {last.size / wanted, last.stride * wanted};
        wanted = 1;
      } else {
        return std::nullopt;
      }
    }
    if (parts[p].empty()) parts[p].push_back({1, 1});
  }
  return parts;
}

}  // namespace

Result<DeviceMesh> DeviceMesh::slice(
    std::span<const std::string_view> names,
    const std::optional<Coordinate>& at) const {
  if (names.empty()) {
    return fail(ErrorCode::kMeshReshape, "a slice names no mesh dim");
  }
  Coordinate origin = at.value_or(Coordinate(body_->dims.size()));
  if (origin.size() != body_->dims.size()) {
    return fail(ErrorCode::kMeshCoordinate,
                "a coordinate of " + std::to_string(origin.size()) +
                    " entries does not fit " + to_string(*this));
  }
  for (std::size_t i = 0; i < origin.size(); ++i) {
    if (origin[i] < 0 || origin[i] >= body_->dims[i].size) {
      return fail(ErrorCode::kMeshCoordinate,
                  "index " + std::to_string(origin[i]) + " lies outside dim `" +
                      body_->dims[i].name + "` of " + to_string(*this));
    }
  }
  auto body = std::make_shared<Body>();
  body->table = body_->table;
  body->first = body_->first;
  for (const std::string_view name : names) {
    SP_ASSIGN(const int dim, dim_index(name));
    body->dims.push_back(body_->dims[index(dim)]);
    body->modes.push_back(body_->modes[index(dim)]);
    origin[index(dim)] = 0;
  }
  SP_CHECK(check_dims(body->dims));
  for (std::size_t i = 0; i < origin.size(); ++i) {
    body->first += mode_offset(body_->modes[i], origin[i]);
  }
  body->seal();
  return DeviceMesh(std::move(body));
}

Result<DeviceMesh> DeviceMesh::submesh(std::string_view dim,
                                       std::int64_t index) const {
  SP_ASSIGN(const int fixed, dim_index(dim));
  if (ndim() == 1) {
    return fail(ErrorCode::kMeshReshape,
                "fixing `" + std::string(dim) + "` would leave no mesh dim");
  }
  std::vector<std::string_view> kept;
  Coordinate at(body_->dims.size());
  for (int i = 0; i < ndim(); ++i) {
    if (i != fixed) kept.push_back(name(i));
  }
  at[static_cast<std::size_t>(fixed)] = index;
  return slice(kept, at);
}

Result<DeviceMesh> DeviceMesh::flatten(std::span<const std::int32_t> dims,
                                       std::string name) const {
  std::vector<bool> merged(body_->dims.size(), false);
  for (const std::int32_t dim : dims) {
    if (dim < 0 || dim >= ndim() || merged[index(dim)]) {
      return fail(
          ErrorCode::kMeshReshape,
          "mesh dim " + std::to_string(dim) + " is out of range or named twice",
          "name distinct dims of " + to_string(*this));
    }
    merged[index(dim)] = true;
  }
  if (dims.empty()) {
    return fail(ErrorCode::kMeshReshape, "flatten names no mesh dim");
  }
  MeshDim whole{std::move(name), 1};
  RankModes whole_modes;
  for (const std::int32_t dim : dims) {
    const auto d = index(dim);
    whole.size *= body_->dims[d].size;
    for (const RankMode& mode : body_->modes[d]) whole_modes.push_back(mode);
  }
  auto body = std::make_shared<Body>();
  body->first = body_->first;
  body->table = body_->table;
  const auto place = index(*std::min_element(dims.begin(), dims.end()));
  for (std::size_t i = 0; i < merged.size(); ++i) {
    if (i == place) {
      body->dims.push_back(whole);
      body->modes.push_back(whole_modes);
    } else if (!merged[i]) {
      body->dims.push_back(body_->dims[i]);
      body->modes.push_back(body_->modes[i]);
    }
  }
  SP_CHECK(check_dims(body->dims));
  body->seal();
  return DeviceMesh(std::move(body));
}

Result<DeviceMesh> DeviceMesh::unflatten(int dim,
                                         std::span<const MeshDim> into) const {
  if (dim < 0 || dim >= ndim()) {
    return fail(ErrorCode::kMeshReshape,
                "mesh dim " + std::to_string(dim) + " is out of range");
  }
  SP_CHECK(check_dims(into));
  std::int64_t product = 1;
  for (const MeshDim& part : into) product *= part.size;
  if (product != size(dim)) {
    return fail(ErrorCode::kMeshReshape,
                "sizes that multiply to " + std::to_string(product) +
                    " do not split mesh dim `" + name(dim) + "` of " +
                    std::to_string(size(dim)));
  }
  std::vector<MeshDim> dims = body_->dims;
  dims.erase(dims.begin() + dim);
  dims.insert(dims.begin() + dim, into.begin(), into.end());
  SP_CHECK(check_dims(dims));
  auto parts = split_modes(body_->modes[index(dim)], into);
  // The split does not follow the modes from which the dim was flattened. The
  // ranks keep their order but have no strides any more.
  if (!parts) return from_ranks(dims, body_->ranks().ranks());
  auto body = std::make_shared<Body>();
  body->first = body_->first;
  body->table = body_->table;
  body->dims = std::move(dims);
  body->modes = body_->modes;
  body->modes.erase(body->modes.begin() + dim);
  body->modes.insert(body->modes.begin() + dim, parts->begin(), parts->end());
  body->seal();
  return DeviceMesh(std::move(body));
}

}  // namespace shardprop
