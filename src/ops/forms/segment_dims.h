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
#include <optional>
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

// Returns which of the equal pieces of a dim a slice is; nullopt if it is none.
// Pieces have several elements, and the dim has several pieces.
inline std::optional<std::int64_t> piece_of_slice(
    std::int64_t size, std::int64_t length, std::optional<std::int64_t> start,
    std::int64_t step) {
  std::int64_t from = start.value_or(0);
  if (from < 0) from = std::max<std::int64_t>(from + size, 0);
  if (step != 1 || length <= 1 || length == size || size % length != 0 ||
      from % length != 0 || from > size - length) {
    return std::nullopt;
  }
  return from / length;
}

// `WrittenPiece` has the factors of a dim of which one of several equal pieces
// is written, and those of the piece.
struct WrittenPiece {
  DimFactors whole;
  DimFactors own;
};

// Adds these factors. Ranks shard each piece and write to their part of it, or
// the program shards the dim as one. `local_length` is a rank's size of the
// piece. The operator has the arguments `start` and `end`.
inline WrittenPiece written_piece(SpaceBuilder& b, std::int64_t size,
                                  std::int64_t length, std::int64_t piece,
                                  RankScalar local_length) {
  WrittenPiece made;
  made.whole = b.blocked(size / length, "a part of it is written",
                         FactorKind::kSegmented);
  made.own = b.dim(length);
  for (const FactorId factor : made.own) made.whole.push_back(factor);
  Factor& joined = b.space.factor(b.factor(size, 'h'));
  joined.joins = made.whole;
  joined.program = ProgramUse::kWhenSharded;
  joined.least = 1;
  for (const auto& [name, pieces] :
       {std::pair{"start", piece}, std::pair{"end", piece + 1}}) {
    local_length.scale = pieces;
    b.space.local_arguments.push_back({name, false, {local_length}});
  }
  return made;
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
