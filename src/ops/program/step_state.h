// `StepState` is the distribution of a value of a decomposed program over the ranks of
// one mesh dim: the same on every rank, sharded along one dim, or partial.
#pragma once

#include <shardprop/placement/placement.h>

#include <cstdint>

namespace shardprop {

class StepState {
 public:
  constexpr StepState() = default;  // the same on every rank
  static constexpr StepState same() { return {}; }
  static constexpr StepState shard(int dim) { return {Kind::kShard, dim}; }
  static constexpr StepState partial(ReduceOp op) {
    return {Kind::kPartial, static_cast<int>(op)};
  }
  constexpr bool is_shard() const { return kind_ == Kind::kShard; }
  constexpr bool is_partial() const { return kind_ == Kind::kPartial; }
  // Precondition: is_shard().
  constexpr int dim() const { return value_; }
  // Precondition: is_partial().
  constexpr ReduceOp reduce_op() const { return static_cast<ReduceOp>(value_); }
  friend bool operator==(StepState, StepState) = default;

 private:
  enum class Kind : std::uint8_t { kSame, kShard, kPartial };
  constexpr StepState(Kind kind, int value)
      : kind_(kind), value_(static_cast<std::int16_t>(value)) {}
  Kind kind_ = Kind::kSame;
  std::int16_t value_ = 0;
};

}  // namespace shardprop
