#include <shardprop/collective/group.h>

#include <shardprop/base/hash.h>

#include "base/try.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/index.h"

namespace shardprop {
namespace {

// Longer lists are shortened in the middle.
constexpr std::size_t kShown = 8;

}  // namespace

namespace {

using Ranks = Group::Ranks;
using Place = Group::Place;

// A partition stored as lists, with the place of every rank.
struct Lists {
  std::vector<Ranks> lists;
  std::unordered_map<std::int64_t, Place> places;
  std::int64_t largest = 0;

  std::int64_t rank(std::int64_t list, std::int64_t index) const {
    return lists[static_cast<std::size_t>(list)]
                [static_cast<std::size_t>(index)];
  }
  std::optional<Place> place_of(std::int64_t rank) const {
    const auto found = places.find(rank);
    if (found == places.end()) return std::nullopt;
    return found->second;
  }
};

// The groups of some dims of a strided mesh. Lists are in the order of the
// other dims.
struct MeshGroups {
  DeviceMesh mesh;
  std::vector<std::int32_t> dims;    // the last one fastest
  std::vector<std::int32_t> others;  // in mesh order

  std::int64_t count(const std::vector<std::int32_t>& of) const {
    std::int64_t count = 1;
    for (const std::int32_t dim : of) count *= mesh.size(dim);
    return count;
  }
  std::int64_t rank(std::int64_t list, std::int64_t index) const {
    Coordinate at(static_cast<std::size_t>(mesh.ndim()));
    const auto spread = [&](const std::vector<std::int32_t>& over,
                            std::int64_t i) {
      for (std::size_t d = over.size(); d-- > 0;) {
        at[static_cast<std::size_t>(over[d])] = i % mesh.size(over[d]);
        i /= mesh.size(over[d]);
      }
    };
    spread(others, list);
    spread(dims, index);
    return mesh.rank_at(at);
  }
  std::optional<Place> place_of(std::int64_t rank) const {
    const auto at = mesh.coordinate_of(rank);
    if (!at) return std::nullopt;
    const auto joined = [&](const std::vector<std::int32_t>& over) {
      std::int64_t i = 0;
      for (const std::int32_t dim : over) {
        i = i * mesh.size(dim) + (*at)[index(dim)];
      }
      return i;
    };
    return Place{joined(others), joined(dims)};
  }
  friend bool operator==(const MeshGroups&, const MeshGroups&) = default;
};

}  // namespace

struct Group::Body {
  std::variant<Lists, MeshGroups> ranks;
  std::int64_t num_lists = 0;
  std::int64_t size = 0;
  std::int64_t largest = 0;
  std::size_t hash = 0;

  std::int64_t rank(std::int64_t list, std::int64_t index) const {
    return std::visit([&](const auto& held) { return held.rank(list, index); },
                      ranks);
  }

  // Hashes all ranks, or evenly spaced ranks if there are more than `kHashed`.
  // The hash is independent of the representation of the partition.
  void seal() {
    constexpr std::int64_t kHashed = 1024;
    const std::int64_t all = num_lists * size;
    const std::int64_t step = (all + kHashed - 1) / kHashed;
    hash = hash_mix(static_cast<std::uint64_t>(num_lists),
                    static_cast<std::uint64_t>(size));
    for (std::int64_t i = 0; i < all; i += step) {
      hash =
          hash_mix(hash, static_cast<std::uint64_t>(rank(i / size, i % size)));
    }
  }
};

Group::Group(std::shared_ptr<const Body> body) : body_(std::move(body)) {}

Result<Group> Group::lists(std::vector<Ranks> lists) {
  if (lists.empty()) return fail(ErrorCode::kGroup, "a group has no ranks");
  Lists made;
  for (std::size_t list = 0; list < lists.size(); ++list) {
    const Ranks& ranks = lists[list];
    if (ranks.empty()) return fail(ErrorCode::kGroup, "a group has no ranks");
    if (ranks.size() != lists[0].size()) {
      return fail(ErrorCode::kGroup,
                  "groups of one partition have " +
                      std::to_string(lists[0].size()) + " and " +
                      std::to_string(ranks.size()) + " ranks",
                  "lists must be of equal length");
    }
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] < 0) {
        return fail(ErrorCode::kGroup, "a group has the negative rank " +
                                           std::to_string(ranks[i]));
      }
      const Place place{static_cast<std::int64_t>(list),
                        static_cast<std::int64_t>(i)};
      if (!made.places.emplace(ranks[i], place).second) {
        return fail(ErrorCode::kGroup, "rank " + std::to_string(ranks[i]) +
                                           " appears twice in a group");
      }
      made.largest = std::max(made.largest, ranks[i]);
    }
  }
  made.lists = std::move(lists);
  auto body = std::make_shared<Body>();
  body->num_lists = static_cast<std::int64_t>(made.lists.size());
  body->size = static_cast<std::int64_t>(made.lists[0].size());
  body->largest = made.largest;
  body->ranks = std::move(made);
  body->seal();
  return Group(std::move(body));
}

Result<Group> Group::ranks(Ranks ranks) { return lists({std::move(ranks)}); }

Result<Group> Group::world(std::int64_t size) {
  if (size < 1) return fail(ErrorCode::kGroup, "a group has no ranks");
  const MeshDim all[] = {{"world", size}};
  auto mesh = DeviceMesh::create(all);
  if (!mesh) return fail(ErrorCode::kGroup, mesh.error().message);
  return Group::mesh(*mesh);
}

Result<Group> Group::mesh(const DeviceMesh& mesh) {
  if (mesh.ndim() != 1) {
    return fail(ErrorCode::kGroup,
                "mesh " + to_string(mesh) + " has " +
                    std::to_string(mesh.ndim()) + " dims and is not a group",
                "name the dims whose groups are meant");
  }
  return mesh_dim(mesh, 0);
}

Result<Group> Group::mesh_dim(const DeviceMesh& mesh, int dim) {
  const std::int32_t dims[] = {dim};
  return mesh_dims(mesh, dims);
}

Result<Group> Group::mesh_dim(const DeviceMesh& mesh, std::string_view name) {
  SP_ASSIGN(const int dim, mesh.dim_index(name));
  return mesh_dim(mesh, dim);
}

Result<Group> Group::mesh_dims(const DeviceMesh& mesh,
                               std::span<const std::int32_t> dims) {
  std::vector<bool> inside(static_cast<std::size_t>(mesh.ndim()));
  for (const std::int32_t dim : dims) {
    if (dim < 0 || dim >= mesh.ndim()) {
      return fail(ErrorCode::kGroup, "mesh " + to_string(mesh) +
                                         " has no dim " + std::to_string(dim));
    }
    if (inside[index(dim)]) {
      return fail(ErrorCode::kGroup,
                  "mesh dim " + mesh.name(dim) + " is named twice");
    }
    inside[index(dim)] = true;
  }
  MeshGroups groups{mesh, {dims.begin(), dims.end()}, {}};
  for (std::int32_t dim = 0; dim < mesh.ndim(); ++dim) {
    if (!inside[index(dim)]) groups.others.push_back(dim);
  }
  auto body = std::make_shared<Body>();
  body->num_lists = groups.count(groups.others);
  body->size = groups.count(groups.dims);
  if (!mesh.is_strided()) {
    std::vector<Ranks> lists(static_cast<std::size_t>(body->num_lists));
    for (std::size_t list = 0; list < lists.size(); ++list) {
      for (std::int64_t i = 0; i < body->size; ++i) {
        lists[list].push_back(groups.rank(static_cast<std::int64_t>(list), i));
      }
    }
    return Group::lists(std::move(lists));
  }
  // Strides are positive.
  body->largest = groups.rank(body->num_lists - 1, body->size - 1);
  body->ranks = std::move(groups);
  body->seal();
  return Group(std::move(body));
}

std::int64_t Group::size() const { return body_->size; }

std::int64_t Group::num_lists() const { return body_->num_lists; }

Group::Ranks Group::list(std::int64_t list) const {
  Ranks out(static_cast<std::size_t>(body_->size));
  for (std::int64_t i = 0; i < body_->size; ++i) {
    out[index(i)] = body_->rank(list, i);
  }
  return out;
}

std::int64_t Group::rank(std::int64_t list, std::int64_t index) const {
  return body_->rank(list, index);
}

std::optional<Group::Place> Group::place_of(std::int64_t rank) const {
  return std::visit([&](const auto& held) { return held.place_of(rank); },
                    body_->ranks);
}

std::int64_t Group::largest_rank() const { return body_->largest; }

std::size_t Group::hash() const { return body_->hash; }

bool operator==(const Group& a, const Group& b) {
  const Group::Body& x = *a.body_;
  const Group::Body& y = *b.body_;
  if (&x == &y) return true;
  if (x.hash != y.hash || x.num_lists != y.num_lists || x.size != y.size) {
    return false;
  }
  const auto* in_x = std::get_if<MeshGroups>(&x.ranks);
  const auto* in_y = std::get_if<MeshGroups>(&y.ranks);
  if (in_x != nullptr && in_y != nullptr && *in_x == *in_y) return true;
  for (std::int64_t list = 0; list < x.num_lists; ++list) {
    for (std::int64_t i = 0; i < x.size; ++i) {
      if (x.rank(list, i) != y.rank(list, i)) return false;
    }
  }
  return true;
}

std::string to_string(const Group::Ranks& ranks) {
  std::string out = "{";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) out += ',';
    if (ranks.size() > kShown && i == kShown - 2) {
      out += "..,";
      i = ranks.size() - 1;
    }
    out += std::to_string(ranks[i]);
  }
  return out + "}";
}

std::string to_string(const Group& group) {
  const auto shown = static_cast<std::int64_t>(kShown);
  std::string out;
  for (std::int64_t i = 0; i < group.num_lists(); ++i) {
    if (i > 0) out += ' ';
    if (group.num_lists() > shown && i == shown - 2) {
      out += ".. ";
      i = group.num_lists() - 1;
    }
    out += to_string(group.list(i));
  }
  return out;
}

}  // namespace shardprop
