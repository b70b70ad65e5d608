// SharedShapes: an answer that holds for a family of calls: the same operator,
// arguments and layouts, with sizes of which the same are equal and the same
// are 1.
//
//   mm f32[8,16] S(0), f32[16,4] R on [2]  serves  f32[6,32] S(0), f32[32,10] R
//
// Which calls have one is read off their index space: every factor is parallel
// and stands alone in the dims of the operands, every dim of an output is one
// of an input, and the row looked at no argument that could be a size or an
// index. Then nothing but the equality of sizes is asked of the call. That the
// choice does not depend on sizes either follows where only one strategy
// leaves the inputs where they are (ChosenStrategy::is_only_fit) and every cut
// is even.
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

// The different sizes of a call in the order they appear, 1 left out.
class SizeClasses {
 public:
  static constexpr std::size_t kMost = 14;
  static constexpr std::uint8_t kOne = 0;
  static constexpr std::uint8_t kTooMany = 0xff;

  // From 1 on; kOne of size 1.
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
  std::vector<Classes> outputs;  // of the dims
  // What each size must be a multiple of, by class from 1 on.
  std::array<std::int64_t, SizeClasses::kMost> divisors{};
};

// Writes the key of the family of a call; false where it has none by its
// operands alone (strides, sizes of 0, strided shards, stated outputs).
bool write_family(KeyBuffer& key, SizeClasses& sizes, const OpSchema& op,
                  const LayoutsView& layouts, std::span<const Look> looks);

// Null where the answer serves no other sizes.
std::shared_ptr<const SharedShapes> shared_shapes(const BoundOp& call,
                                                  const OutputSharding& answer,
                                                  const DeviceMesh& mesh,
                                                  const SizeClasses& sizes);

// Whether these sizes are served.
bool serves(const SharedShapes& shapes, const SizeClasses& sizes);

// Makes `out`, an answer for one call of the family, that of another; false
// where an output is larger than a tensor may be.
bool fill_in(const SharedShapes& shapes, const SizeClasses& sizes,
             const OpSchema& op, OutputSharding& out);

}  // namespace shardprop
