// SharedShapes describes an answer that holds for a family of calls. The calls
// of a family have the same operator, arguments and layouts. The same sizes are
// equal, and the same sizes are 1.
//
//   mm f32[8,16] S(0), f32[16,4] R on [2]  serves  f32[6,32] S(0), f32[32,10] R
//
// The index space determines whether a call has a family. Every factor must be
// parallel and the only factor of its dims. Every dim of an output must be a
// dim of an input. The definition must not have read an argument that could be
// a size or an index. The call then depends on the equality of sizes only.
//
// The choice of the strategy must not depend on sizes either. This holds if
// exactly one strategy leaves the inputs unmoved (ChosenStrategy::is_only_fit)
// and every cut is even.
#pragma once

#include "propagate/bound_op.h"
#include "propagate/call_key.h"

#include <shardprop/propagate/output_sharding.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

// SizeClasses lists the different sizes of a call in order of appearance,
// without 1.
class SizeClasses {
 public:
  static constexpr std::size_t kMost = 14;
  static constexpr std::uint8_t kOne = 0;
  static constexpr std::uint8_t kTooMany = 0xff;

  // Returns the class of a size, from 1 on; kOne for size 1.
  std::uint8_t add(std::int64_t size) {
    if (size == 1) return kOne;
    for (std::size_t i = 0; i < count_; ++i) {
      if (sizes_[i] == size) return static_cast<std::uint8_t>(i + 1);
    }
    if (count_ == kMost) return kTooMany;
    sizes_[count_++] = size;
    return static_cast<std::uint8_t>(count_);
  }
  std::int64_t operator[](std::uint8_t size_class) const {
    return size_class == kOne ? 1 : sizes_[size_class - 1U];
  }
  std::size_t count() const { return count_; }
  std::span<const std::uint64_t> words() const {
    return {reinterpret_cast<const std::uint64_t*>(sizes_.data()), count_};
  }

 private:
  std::array<std::int64_t, kMost> sizes_{};
  std::size_t count_ = 0;
};

struct SharedShapes {
  using Classes = InlineVector<std::uint8_t, 8>;
  std::vector<Classes> outputs;  // size class of each dim
  // The divisor of each size, by class from 1 on.
  std::array<std::int64_t, SizeClasses::kMost> divisors{};
};

// Writes the key of the family of a call. Returns false if the operands rule
// out a family (strides, sizes of 0, strided shards, stated outputs).
bool write_family(KeyBuffer& key, SizeClasses& sizes, const OpSchema& op,
                  const LayoutsView& layouts, std::span<const Look> looks);

// Returns null if the answer holds for no other sizes.
std::shared_ptr<const SharedShapes> shared_shapes(const BoundOp& call,
                                                  const OutputSharding& answer,
                                                  const DeviceMesh& mesh,
                                                  const SizeClasses& sizes);

// Returns whether the answer holds for these sizes.
bool serves(const SharedShapes& shapes, const SizeClasses& sizes);

// Converts `out`, an answer for one call of the family, to the answer for `op`.
// Returns false if an output is larger than a tensor may be.
bool fill_in(const SharedShapes& shapes, const SizeClasses& sizes,
             const OpSchema& op, OutputSharding& out);

}  // namespace shardprop
