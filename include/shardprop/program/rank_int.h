// `RankInt` is an integer that may differ between ranks. It is a formula of the
// rank's coordinate: constant + scale * x. x is the number of elements of a dim
// that the rank holds, or the index of the first of them.
//
//   view f32[4,6,8] -> f32[24,8], both S(0), on tp=2:
//     size = [local(24, S(0)), 8]         // [12,8] on either rank
//   embedding f32[30,8], weight S(0), on tp=4:
//     first row = offset(30, S(0))        // 0, 8, 16, 24
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>

#include <cstdint>
#include <string>

namespace shardprop {

class RankInt {
 public:
  // `Kind` says what x is in the formula.
  enum class Kind : std::uint8_t { kConstant, kLocalSize, kOffset };

  RankInt() = default;                                     // 0
  RankInt(std::int64_t constant) : constant_(constant) {}  // NOLINT: a number

  // Makes scale * x + constant for a dim of `size` elements that has the
  // sharding of tensor dim `dim` of `layout`. A dim that is not sharded gives a
  // constant. The offset of a rank without elements is `size`. Precondition of
  // kOffset: no shard of the dim is strided, so each rank has one interval.
  static RankInt of(Kind kind, std::int64_t size, const Layout& layout, int dim,
                    std::int64_t scale = 1, std::int64_t constant = 0);

  std::int64_t at(const DeviceMesh& mesh, const Coordinate& rank) const;

  // Returns whether the value is the same on every rank; constant() returns it.
  bool is_constant() const { return kind_ == Kind::kConstant; }
  std::int64_t constant() const { return constant_; }

  friend bool operator==(const RankInt&, const RankInt&) = default;
  // Prints "12", "local(24, S(0))" or "2*offset(30, S(0),R) - 1".
  friend std::string to_string(const RankInt& value);

 private:
  Kind kind_ = Kind::kConstant;
  std::int64_t constant_ = 0;
  std::int64_t scale_ = 1;
  std::int64_t size_ = 0;
  Layout cuts_;  // shards of the dim, as dim 0; R on all other mesh dims
};

std::string to_string(const RankInt& value);

}  // namespace shardprop
