#include <shardprop/collective/group.h>

#include <shardprop/base/hash.h>

#include "base/try.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

// More than this many entries are shortened in the middle.
constexpr std::size_t kShown = 8;

}  // namespace

struct Group::Body {
  std::vector<Ranks> lists;
  std::unordered_map<std::int64_t, Place> places;
  std::int64_t largest = 0;
  std::size_t hash = 0;
};

Group::Group(std::shared_ptr<const Body> body) : body_(std::move(body)) {}

Result<Group> Group::lists(std::vector<Ranks> lists) {
  if (lists.empty()) return fail(ErrorCode::kGroup, "a group of no ranks");
  auto body = std::make_shared<Body>();
  for (std::size_t list = 0; list < lists.size(); ++list) {
    const Ranks& ranks = lists[list];
    if (ranks.empty()) return fail(ErrorCode::kGroup, "a group of no ranks");
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
      if (!body->places.emplace(ranks[i], place).second) {
        return fail(ErrorCode::kGroup, "rank " + std::to_string(ranks[i]) +
                                           " appears twice in a group");
      }
      body->largest = std::max(body->largest, ranks[i]);
    }
    body->hash = hash_range(body->hash, ranks);
  }
  body->lists = std::move(lists);
  return Group(std::move(body));
}

Result<Group> Group::ranks(Ranks ranks) { return lists({std::move(ranks)}); }

Result<Group> Group::world(std::int64_t size) {
  if (size < 1) return fail(ErrorCode::kGroup, "a group of no ranks");
  Ranks all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return ranks(std::move(all));
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
  std::int64_t members = 1;
  for (const std::int32_t dim : dims) {
    if (dim < 0 || dim >= mesh.ndim()) {
      return fail(ErrorCode::kGroup, "mesh " + to_string(mesh) +
                                         " has no dim " + std::to_string(dim));
    }
    if (inside[static_cast<std::size_t>(dim)]) {
      return fail(ErrorCode::kGroup,
                  "mesh dim " + mesh.name(dim) + " is named twice");
    }
    inside[static_cast<std::size_t>(dim)] = true;
    members *= mesh.size(dim);
  }
  std::vector<Ranks> lists;
  lists.reserve(static_cast<std::size_t>(mesh.size() / members));
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    const Coordinate at = mesh.coordinate_at_index(i);
    // Each group once: from its first member.
    const bool first =
        std::all_of(dims.begin(), dims.end(), [&](std::int32_t dim) {
          return at[static_cast<std::size_t>(dim)] == 0;
        });
    if (first) lists.push_back(mesh.group(dims, at).ranks());
  }
  return Group::lists(std::move(lists));
}

std::int64_t Group::size() const {
  return static_cast<std::int64_t>(body_->lists[0].size());
}

const std::vector<Group::Ranks>& Group::lists() const { return body_->lists; }

std::optional<Group::Place> Group::place_of(std::int64_t rank) const {
  const auto found = body_->places.find(rank);
  if (found == body_->places.end()) return std::nullopt;
  return found->second;
}

std::int64_t Group::largest_rank() const { return body_->largest; }

std::size_t Group::hash() const { return body_->hash; }

bool operator==(const Group& a, const Group& b) {
  return a.body_ == b.body_ ||
         (a.body_->hash == b.body_->hash && a.body_->lists == b.body_->lists);
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
  const std::vector<Group::Ranks>& lists = group.lists();
  std::string out;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (i > 0) out += ' ';
    if (lists.size() > kShown && i == kShown - 2) {
      out += ".. ";
      i = lists.size() - 1;
    }
    out += to_string(lists[i]);
  }
  return out;
}

}  // namespace shardprop
