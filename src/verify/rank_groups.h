// Finds the ranks of a collective's group.
#pragma once

#include "program/torch_collectives.h"

#include <shardprop/base/result.h>
#include <shardprop/program/rank_programs.h>

#include <cstdint>
#include <vector>

namespace shardprop::verification {

class RankGroups {
 public:
  // `programs` must outlive it.
  explicit RankGroups(const RankPrograms& programs) : programs_(programs) {}

  // Returns the members of the group in which `rank` calls the collective. It
  // is, in this order:
  //
  // 1. the ranks that the call lists;
  // 2. the group of this name in shardings.json;
  // 3. the mesh dim of this name;
  // 4. the whole mesh, if the name is empty, "0" or "world", if the call states
  //    its size, or if the mesh has one dim;
  // 5. the only mesh dim of the size that the call states.
  //
  // Errors: kGroup, kNotInGroup.
  Result<std::vector<std::int64_t>> members(const TorchCollective& call,
                                            std::int64_t rank) const;

 private:
  Result<std::vector<std::int64_t>> found(const TorchCollective& call,
                                          std::int64_t rank) const;
  Result<std::vector<std::int64_t>> listed(const TorchCollective& call,
                                           std::int64_t rank) const;
  std::vector<std::int64_t> along(int dim, std::int64_t rank) const;
  std::vector<std::int64_t> whole_mesh() const;

  const RankPrograms& programs_;
};

}  // namespace shardprop::verification
