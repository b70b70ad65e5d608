#include "verify/rank_groups.h"

#include "base/try.h"

#include <shardprop/collective/group.h>

#include <algorithm>
#include <string>
#include <utility>

namespace shardprop::verification {
namespace {

tl::unexpected<Error> not_a_member(std::int64_t rank,
                                   const std::string& group) {
  return fail(ErrorCode::kNotInGroup,
              "rank " + std::to_string(rank) +
                  " calls a collective of the group `" + group +
                  "`, which does not have it",
              "list the ranks of the group under `groups` in shardings.json");
}

}  // namespace

std::vector<std::int64_t> RankGroups::along(int dim, std::int64_t rank) const {
  const DeviceMesh& mesh = programs_.mesh;
  const RankGroup group = mesh.group(dim, *mesh.coordinate_of(rank));
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < group.size(); ++i) out.push_back(group.rank(i));
  return out;
}

std::vector<std::int64_t> RankGroups::whole_mesh() const {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < programs_.mesh.size(); ++i) {
    out.push_back(programs_.mesh.rank_at_index(i));
  }
  return out;
}

Result<std::vector<std::int64_t>> RankGroups::listed(
    const TorchCollective& call, std::int64_t rank) const {
  const auto count = static_cast<std::int64_t>(call.ranks.size());
  const std::int64_t size = call.group_size.value_or(count);
  for (const std::int64_t member : call.ranks) {
    if (programs_.mesh.contains(member)) continue;
    return fail(Error{ErrorCode::kGroup,
                      "a collective lists rank " + std::to_string(member) +
                          ", which is not on the mesh",
                      {},
                      {"ranks: " + to_string(call.ranks),
                       "mesh: " + to_string(programs_.mesh)},
                      "give the mesh for which the program was made"});
  }
  const auto found = std::find(call.ranks.begin(), call.ranks.end(), rank);
  if (found == call.ranks.end() || size < 1 || count % size != 0) {
    return not_a_member(rank, to_string(call.ranks));
  }
  const auto begin =
      call.ranks.begin() + (found - call.ranks.begin()) / size * size;
  return std::vector<std::int64_t>(begin, begin + size);
}

Result<std::vector<std::int64_t>> RankGroups::found(const TorchCollective& call,
                                                    std::int64_t rank) const {
  const DeviceMesh& mesh = programs_.mesh;
  if (!call.ranks.empty()) return listed(call, rank);
  for (const NamedGroups& groups : programs_.groups) {
    if (groups.name != call.group) continue;
    for (const auto& ranks : groups.ranks) {
      if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) {
        return ranks;
      }
    }
    return not_a_member(rank, call.group);
  }
  if (const auto dim = mesh.find_dim(call.group)) return along(*dim, rank);
  const std::int64_t size = call.group_size.value_or(-1);
  const bool is_world = call.group.empty() || call.group == "0" ||
                        call.group == "world" || mesh.ndim() == 1;
  if (size == mesh.size() || (is_world && !call.group_size)) {
    return whole_mesh();
  }
  std::vector<int> fitting;
  for (int dim = 0; dim < mesh.ndim(); ++dim) {
    if (mesh.size(dim) == size) fitting.push_back(dim);
  }
  if (fitting.size() == 1) return along(fitting.front(), rank);
  return fail(
      Error{ErrorCode::kGroup,
            "the group `" + call.group + "` of a collective is not on the mesh",
            {},
            {"ranks of the group: " +
                 (call.group_size ? std::to_string(size) : "not stated"),
             "mesh: " + to_string(mesh)},
            "list the ranks of the group under `groups` in shardings.json"});
}

Result<std::vector<std::int64_t>> RankGroups::members(
    const TorchCollective& call, std::int64_t rank) const {
  SP_ASSIGN(std::vector<std::int64_t> out, found(call, rank));
  const auto size = static_cast<std::int64_t>(out.size());
  if (!call.group_size || *call.group_size == size) return out;
  return fail(Error{ErrorCode::kGroup,
                    "a collective states another size than its group has",
                    {},
                    {"stated: " + std::to_string(*call.group_size),
                     "group `" + call.group + "`: " + to_string(out)},
                    "give the mesh for which the program was made"});
}

}  // namespace shardprop::verification
