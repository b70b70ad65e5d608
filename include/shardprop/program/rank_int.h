// RankInt: a whole number that may differ on the ranks, as a formula of the
// rank's coordinate: constant + scale * x, where x is how many elements of a
// dim the rank holds, or where the first of them lies.
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
  // What x is.
  enum class Kind : std::uint8_t { kConstant, kLocalSize, kOffset };

  RankInt() = default;                                     // 0
  RankInt(std::int64_t constant) : constant_(constant) {}  // NOLINT: a number

  // scale * x + constant of a dim of `size` elements, laid out as tensor dim
  // `dim` of `layout`. A dim that is not cut makes a constant. An offset of a
  // rank that holds nothing is `size`. Precondition of kOffset: the dim is held
  // in one piece, so that no shard of it is strided.
  static RankInt of(Kind kind, std::int64_t size, const Layout& layout, int dim,
                    std::int64_t scale = 1, std::int64_t constant = 0);

  std::int64_t at(const DeviceMesh& mesh, const Coordinate& rank) const;

  // The same on every rank, and which.
  bool is_constant() const { return kind_ == Kind::kConstant; }
  std::int64_t constant() const { return constant_; }

  friend bool operator==(const RankInt&, const RankInt&) = default;
  // "12", "local(24, S(0))", "2*offset(30, S(0),R) - 1".
  friend std::string to_string(const RankInt& value);

 private:
  Kind kind_ = Kind::kConstant;
  std::int64_t constant_ = 0;
  std::int64_t scale_ = 1;
  std::int64_t size_ = 0;
  Layout cuts_;  // of the dim, as dim 0; mesh dims that do not cut it are R
};

std::string to_string(const RankInt& value);

}  // namespace shardprop
