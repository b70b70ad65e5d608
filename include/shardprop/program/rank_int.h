// `RankInt` is an integer that may differ between ranks. It is a formula of the
// rank's coordinate: constant + scale * (x / divisor). x is the number of
// elements of a dim that the rank holds, or the index of the first of them. The
// quotient is rounded down, or up.
//
//   view f32[4,6,8] -> f32[24,8], both S(0), on tp=2:
//     size = [local(24, S(0)), 8]         // [12,8] on either rank
//   embedding f32[30,8], weight S(0), on tp=4:
//     first row = offset(30, S(0))        // 0, 8, 16, 24
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/rank_scalar.h>
#include <shardprop/placement/layout.h>

#include <cstdint>
#include <string>

namespace shardprop {

class RankInt {
 public:
  // `Kind` says what x is in the formula.
  enum class Kind : std::uint8_t { kConstant, kLocalSize, kOffset };

  using Formula = RankFormula;

  RankInt() = default;              // 0
  RankInt(std::int64_t constant) {  // NOLINT: a number
    formula_.constant = constant;
  }

  // Makes the value of `formula` for a dim of `size` elements that has the
  // sharding of tensor dim `dim` of `layout`. A dim that is not sharded gives a
  // constant. The offset of a rank without elements is `size`. Precondition of
  // kOffset: no shard of the dim is strided, so each rank has one interval.
  static RankInt of(Kind kind, std::int64_t size, const Layout& layout, int dim,
                    const Formula& formula);
  static RankInt of(Kind kind, std::int64_t size, const Layout& layout,
                    int dim) {
    return of(kind, size, layout, dim, Formula());
  }

  std::int64_t at(const DeviceMesh& mesh, const Coordinate& rank) const;

  // Returns whether the value is the same on every rank; constant() returns it.
  bool is_constant() const { return kind_ == Kind::kConstant; }
  std::int64_t constant() const { return formula_.constant; }

  friend bool operator==(const RankInt&, const RankInt&) = default;
  // Prints "12", "local(24, S(0))", "2*offset(30, S(0),R) - 1" or
  // "offset(32, S(0))/16"; a quotient that is rounded up has "/^".
  friend std::string to_string(const RankInt& value);

 private:
  Kind kind_ = Kind::kConstant;
  Formula formula_;
  std::int64_t size_ = 0;
  Layout cuts_;  // shards of the dim, as dim 0; R on all other mesh dims
};

std::string to_string(const RankInt& value);

}  // namespace shardprop
