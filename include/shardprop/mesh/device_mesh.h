// `DeviceMesh` is an n-dimensional array of ranks whose dims have names and
// sizes.
//
// Invariants (checked by the factories, immutable after):
//   * 1 to kMaxMeshDims dims, each of size >= 1; at most kMaxMeshRanks ranks;
//   * names are distinct identifiers ([A-Za-z_][A-Za-z0-9_]*);
//   * ranks are non-negative and unique.
//
// Ranks are stored as strides if possible, so a mesh of 100,000 ranks needs a
// few numbers. Each dim has one or more modes (size, stride), as in the layouts
// of CuTe. So a dim stays strided when it is flattened from dims that are not
// adjacent in rank space. An irregular list of ranks is stored as a list.
//
//   auto mesh = DeviceMesh::parse("dp=2,tp=4").value();  // ranks 0..7
//   mesh.rank_at({1, 2});                                // 6
//   mesh.group(1, {1, 0}).rank(3);                       // 7: ranks 4 to 7
//
// Copies share one immutable body, so passing by value is cheap.
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/base/result.h>
#include <shardprop/mesh/rank_group.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

inline constexpr int kMaxMeshDims = 8;
inline constexpr std::int64_t kMaxMeshRanks = std::int64_t{1} << 24;

// `Coordinate` is a position in a mesh: one index per mesh dim, outermost
// first.
using Coordinate = Dims;

// `MeshDim` is the name of a mesh dim and its size in ranks.
struct MeshDim {
  std::string name;
  std::int64_t size = 1;
  friend bool operator==(const MeshDim&, const MeshDim&) = default;
};

class DeviceMesh {
 public:
  // Makes a mesh of rank 0 with one dim named d0.
  DeviceMesh();

  // Makes a mesh of consecutive ranks from `first_rank` on; the last dim varies
  // fastest. Errors: kMeshSize, kMeshDimName, kMeshTooManyDims, kMeshRanks.
  static Result<DeviceMesh> create(std::span<const MeshDim> dims,
                                   std::int64_t first_rank = 0);

  // Parses "dp=2,tp=4", or "2,4" for dims named d0 and d1. Errors: kMeshSyntax
  // and those of create().
  static Result<DeviceMesh> parse(std::string_view text);

  // Makes a mesh of any ranks in row-major order, stored as strides if they are
  // strided. Errors: kMeshRanks (wrong count, negative or duplicate rank) and
  // those of create().
  static Result<DeviceMesh> from_ranks(std::span<const MeshDim> dims,
                                       std::span<const std::int64_t> ranks);

  int ndim() const;
  std::int64_t size() const;  // number of ranks
  std::int64_t size(int dim) const;
  const std::string& name(int dim) const;
  const std::vector<MeshDim>& dims() const;
  // Returns the number of dims larger than 1. Only these can shard a tensor.
  int num_active_dims() const;
  std::optional<int> find_dim(std::string_view name) const;
  // Error: kMeshDimUnknown, which lists the mesh's dims and the nearest name.
  Result<int> dim_index(std::string_view name) const;

  // Returns whether ranks are stored as strides (true) or as a list.
  bool is_strided() const;

  // Precondition: one in-range index per dim.
  std::int64_t rank_at(const Coordinate& coordinate) const;
  std::int64_t rank_at_index(std::int64_t row_major_index) const;
  std::optional<Coordinate> coordinate_of(std::int64_t rank) const;
  std::optional<std::int64_t> index_of(std::int64_t rank) const;
  bool contains(std::int64_t rank) const;

  // These two functions convert between a row-major index within the mesh and a
  // coordinate.
  Coordinate coordinate_at_index(std::int64_t row_major_index) const;
  std::int64_t index_at(const Coordinate& coordinate) const;

  // Returns the ranks that differ from `at` in `dim` only, in the order of that
  // dim.
  RankGroup group(int dim, const Coordinate& at) const;
  // Returns the ranks that differ from `at` in `dims` only; the last dim varies
  // fastest.
  RankGroup group(std::span<const std::int32_t> dims,
                  const Coordinate& at) const;
  // Returns the number of groups of `dim`. `group_at` returns the i-th in
  // row-major order of the other dims.
  std::int64_t group_count(int dim) const;
  RankGroup group_at(int dim, std::int64_t i) const;

  // Returns the sub-mesh over the named dims, in the given order, that contains
  // `at` (default: the mesh's origin). Errors: kMeshDimUnknown, kMeshDimName
  // (duplicate name), kMeshCoordinate.
  Result<DeviceMesh> slice(std::span<const std::string_view> names,
                           const std::optional<Coordinate>& at = {}) const;
  // Returns the sub-mesh at index `index` of `dim`. Errors: kMeshDimUnknown,
  // kMeshCoordinate, kMeshReshape (the mesh has only this dim).
  Result<DeviceMesh> submesh(std::string_view dim, std::int64_t index) const;

  // Merges dims into one dim at the position of the first; the last of `dims`
  // varies fastest. The dims may be in any order and need not be adjacent.
  // Errors: kMeshReshape (empty, duplicate or out of range), kMeshDimName.
  Result<DeviceMesh> flatten(std::span<const std::int32_t> dims,
                             std::string name) const;
  // Splits one dim into several whose sizes multiply to its size. The result is
  // strided unless a part crosses a boundary between dims from which the dim
  // was flattened. Errors: kMeshReshape, kMeshSize, kMeshDimName,
  // kMeshTooManyDims.
  Result<DeviceMesh> unflatten(int dim, std::span<const MeshDim> into) const;

  // Meshes are equal if they have the same dims (names and sizes) over the same
  // ranks in the same order.
  friend bool operator==(const DeviceMesh& a, const DeviceMesh& b);
  std::size_t hash() const;

 private:
  struct Body;
  explicit DeviceMesh(std::shared_ptr<const Body> body);
  std::shared_ptr<const Body> body_;
};

// Prints "dp=2,tp=4". It parses back if the ranks are 0..size-1 in order.
std::string to_string(const DeviceMesh& mesh);

}  // namespace shardprop

template <>
struct std::hash<shardprop::DeviceMesh> {
  std::size_t operator()(const shardprop::DeviceMesh& m) const noexcept {
    return m.hash();
  }
};
