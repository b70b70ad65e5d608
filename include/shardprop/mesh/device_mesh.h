// DeviceMesh: an n-dimensional array of ranks whose dims have names and sizes.
//
// Invariants (checked by the factories, immutable after):
//   * 1 to kMaxMeshDims dims, each of size >= 1; at most kMaxMeshRanks ranks;
//   * names are distinct identifiers ([A-Za-z_][A-Za-z0-9_]*);
//   * every rank is >= 0 and stands once.
//
// Ranks are a strided layout, never a list when it need not be: a mesh of
// 100,000 ranks is a handful of numbers. Each dim holds one or more modes
// (size, stride), so that flattening dims that do not lie side by side in rank
// space stays strided (the layouts of CuTe). Only an irregular list of ranks
// is kept as one.
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

// A place in a mesh: one index per mesh dim, outermost first.
using Coordinate = Dims;

struct MeshDim {
  std::string name;
  std::int64_t size = 1;
  friend bool operator==(const MeshDim&, const MeshDim&) = default;
};

class DeviceMesh {
 public:
  // One rank, one dim named d0.
  DeviceMesh();

  // Consecutive ranks from `first_rank` on, the last dim fastest.
  // Errors: kMeshSize, kMeshDimName, kMeshTooManyDims, kMeshRanks.
  static Result<DeviceMesh> create(std::span<const MeshDim> dims,
                                   std::int64_t first_rank = 0);

  // "dp=2,tp=4", or "2,4" for dims named d0 and d1.
  // Errors: kMeshSyntax and those of create().
  static Result<DeviceMesh> parse(std::string_view text);

  // Any ranks in row-major order; kept strided where they are.
  // Errors: kMeshRanks (wrong count, negative or doubled rank) and create()'s.
  static Result<DeviceMesh> from_ranks(std::span<const MeshDim> dims,
                                       std::span<const std::int64_t> ranks);

  int ndim() const;
  std::int64_t size() const;  // ranks in all
  std::int64_t size(int dim) const;
  const std::string& name(int dim) const;
  const std::vector<MeshDim>& dims() const;
  std::optional<int> find_dim(std::string_view name) const;
  // Error: kMeshDimUnknown, with the names there are and the nearest one.
  Result<int> dim_index(std::string_view name) const;

  // Whether ranks are held as strides (true) or as a list.
  bool is_strided() const;

  // Precondition: one in-range index per dim.
  std::int64_t rank_at(const Coordinate& coordinate) const;
  std::int64_t rank_at_index(std::int64_t row_major_index) const;
  std::optional<Coordinate> coordinate_of(std::int64_t rank) const;
  std::optional<std::int64_t> index_of(std::int64_t rank) const;
  bool contains(std::int64_t rank) const;

  // Row-major index within the mesh, and back.
  Coordinate coordinate_at_index(std::int64_t row_major_index) const;
  std::int64_t index_at(const Coordinate& coordinate) const;

  // The ranks that differ from `at` in `dim` only, in the order of that dim.
  RankGroup group(int dim, const Coordinate& at) const;
  // The ranks that differ from `at` in `dims` only, the last one fastest.
  RankGroup group(std::span<const std::int32_t> dims,
                  const Coordinate& at) const;
  // How many groups `dim` has, and the i-th in row-major order of the others.
  std::int64_t group_count(int dim) const;
  RankGroup group_at(int dim, std::int64_t i) const;

  // The sub-mesh spanned by the named dims (in the order given) through `at`;
  // at the mesh's origin when `at` is left out.
  // Errors: kMeshDimUnknown, kMeshDimName (one named twice), kMeshCoordinate.
  Result<DeviceMesh> slice(std::span<const std::string_view> names,
                           const std::optional<Coordinate>& at = {}) const;
  // The sub-mesh where `dim` is fixed at `index`. Errors: kMeshDimUnknown,
  // kMeshCoordinate, kMeshReshape (the only dim).
  Result<DeviceMesh> submesh(std::string_view dim, std::int64_t index) const;

  // Merges dims into one, at the place of the first; the last is fastest.
  // The dims may stand in any order and need not be neighbours.
  // Errors: kMeshReshape (none, doubled or out of range), kMeshDimName.
  Result<DeviceMesh> flatten(std::span<const std::int32_t> dims,
                             std::string name) const;
  // Splits one dim into several whose sizes multiply to it. Stays strided
  // unless the parts cut across dims that the one was flattened from.
  // Errors: kMeshReshape, kMeshSize, kMeshDimName, kMeshTooManyDims.
  Result<DeviceMesh> unflatten(int dim, std::span<const MeshDim> into) const;

  // Same dims (names and sizes) over the same ranks in the same order.
  friend bool operator==(const DeviceMesh& a, const DeviceMesh& b);
  std::size_t hash() const;

 private:
  struct Body;
  explicit DeviceMesh(std::shared_ptr<const Body> body);
  std::shared_ptr<const Body> body_;
};

// "dp=2,tp=4". Parses back when the ranks are 0..size-1 in order.
std::string to_string(const DeviceMesh& mesh);

}  // namespace shardprop

template <>
struct std::hash<shardprop::DeviceMesh> {
  std::size_t operator()(const shardprop::DeviceMesh& m) const noexcept {
    return m.hash();
  }
};
