// `SegmentDims` creates the dims along which tensors are concatenated or split.
// Dims of different sizes are not sharded, so all dims of one size share a
// factor. Without this, a thousand tensors would need a thousand factors.
//
//   SegmentDims segments(b, "it is joined");
//   operand.dims[0] = segments.of(16);
#pragma once

#include "ops/forms/space_builder.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {

// Returns whether a dim of these pieces may be sharded by sharding each piece:
// there are two or more, all of one size larger than 1.
inline bool are_shardable_pieces(const std::vector<std::int64_t>& sizes) {
  return sizes.size() > 1 && sizes.front() > 1 &&
         std::all_of(sizes.begin(), sizes.end(),
                     [&](std::int64_t size) { return size == sizes.front(); });
}

class SegmentDims {
 public:
  // `builder` must outlive the object.
  SegmentDims(SpaceBuilder& builder, std::string reason)
      : builder_(builder), reason_(std::move(reason)) {}

  DimFactors of(std::int64_t size) {
    const auto [known, is_new] = by_size_.try_emplace(size);
    if (is_new) {
      known->second = builder_.blocked(size, reason_, FactorKind::kSegmented);
    }
    return known->second;
  }

 private:
  SpaceBuilder& builder_;
  std::string reason_;
  std::map<std::int64_t, DimFactors> by_size_;
};

}  // namespace shardprop
