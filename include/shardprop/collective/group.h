// `Group` is a partition of ranks: the ranks that take part in a collective,
// and all other groups that run it at the same time.
//
// It has one or more disjoint lists of ranks of equal length. The members of
// each list run the collective together, in the order of the list. Every rank
// uses the same partition.
//
//   Group::ranks({0, 2, 3})            one group of three
//   Group::lists({{0, 1}, {2, 3}})     two groups
//   Group::mesh(tp_mesh)               a 1-D mesh
//   Group::mesh_dim(mesh, "tp")        all groups of a mesh dim
//   Group::mesh_dims(mesh, {0, 1})     over several dims, the last one fastest
//
// Groups of a strided mesh are stored as the mesh and its dims, never as lists,
// so those of 100,000 ranks need a few numbers.
//
// A Group is immutable and regular, and copies share one body. Engines cache
// their set-up per Group, which is the entire partition.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/mesh/device_mesh.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

class Group {
 public:
  using Ranks = std::vector<std::int64_t>;

  // All factories return kGroup, in addition to the named errors.
  static Result<Group> ranks(Ranks ranks);
  static Result<Group> lists(std::vector<Ranks> lists);
  static Result<Group> mesh(const DeviceMesh& mesh);
  static Result<Group> mesh_dim(const DeviceMesh& mesh, int dim);
  // Error: kMeshDimUnknown.
  static Result<Group> mesh_dim(const DeviceMesh& mesh, std::string_view name);
  static Result<Group> mesh_dims(const DeviceMesh& mesh,
                                 std::span<const std::int32_t> dims);
  // Makes a group of ranks 0 to size-1.
  static Result<Group> world(std::int64_t size);

  // Returns the number of members of each list.
  std::int64_t size() const;
  std::int64_t num_lists() const;
  // Preconditions: 0 <= list < num_lists(), 0 <= index < size().
  Ranks list(std::int64_t list) const;
  std::int64_t rank(std::int64_t list, std::int64_t index) const;

  // `Place` is the position of a rank: its list, and its index in the list.
  struct Place {
    std::int64_t list = 0;
    std::int64_t index = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  std::optional<Place> place_of(std::int64_t rank) const;
  std::int64_t largest_rank() const;

  friend bool operator==(const Group& a, const Group& b);
  std::size_t hash() const;

 private:
  struct Body;
  explicit Group(std::shared_ptr<const Body> body);
  std::shared_ptr<const Body> body_;
};

// Prints "{0,2,3}" or "{0,1} {2,3}"; long lists are shortened in the middle.
std::string to_string(const Group& group);
std::string to_string(const Group::Ranks& ranks);

}  // namespace shardprop

template <>
struct std::hash<shardprop::Group> {
  std::size_t operator()(const shardprop::Group& g) const noexcept {
    return g.hash();
  }
};
