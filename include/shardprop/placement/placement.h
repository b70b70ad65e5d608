// `Placement` is the effect of one mesh dim on a tensor.
//
//   R          every rank of the mesh dim holds the same values
//   S(d)       tensor dim d is sharded over the mesh dim, as torch.chunk does
//   SS(d,k)    tensor dim d is chunked into k pieces and each piece is sharded,
//              and a rank holds its part of every piece, in order
//   P(op)      every rank holds a term; the values are the terms combined by
//              op. P(op,dtype) combines in `dtype` and rounds once at the end
//
// It has eight bytes, is trivially copyable and regular. Source: PyTorch
// DTensor (Replicate, Shard, _StridedShard, Partial).
//
//   Placement::parse("SS(1,4)").value() == Placement::strided_shard(1, 4)
#pragma once

#include <shardprop/base/hash.h>
#include <shardprop/base/result.h>
#include <shardprop/placement/dtype.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace shardprop {

enum class ReduceOp : std::uint8_t {
  kSum,
  kAvg,
  kProduct,
  kMin,
  kMax,
  kBand,
  kBor,
  kBxor,
};

inline constexpr ReduceOp kAllReduceOps[] = {
    ReduceOp::kSum, ReduceOp::kAvg,  ReduceOp::kProduct, ReduceOp::kMin,
    ReduceOp::kMax, ReduceOp::kBand, ReduceOp::kBor,     ReduceOp::kBxor};

// "sum", "avg", "product", "min", "max", "band", "bor", "bxor".
std::string_view to_string(ReduceOp op);
std::optional<ReduceOp> parse_reduce_op(std::string_view text);

// Returns whether `op` is defined on elements of `dtype`: bitwise ops need
// integers or bool, averages need floats or complex numbers, min and max need
// real numbers.
bool is_defined(ReduceOp op, DType dtype);

class Placement {
 public:
  enum class Kind : std::uint8_t {
    kReplicate,
    kShard,
    kStridedShard,
    kPartial
  };

  constexpr Placement() = default;  // Replicate

  static constexpr Placement replicate() { return {}; }
  static constexpr Placement shard(int tensor_dim) {
    Placement p;
    p.kind_ = Kind::kShard;
    p.dim_ = static_cast<std::int16_t>(tensor_dim);
    return p;
  }
  // Precondition: split_factor >= 1. A factor of 1 is shard(tensor_dim).
  static constexpr Placement strided_shard(int tensor_dim, int split_factor) {
    Placement p = shard(tensor_dim);
    if (split_factor > 1) {
      p.kind_ = Kind::kStridedShard;
      p.split_factor_ = split_factor;
    }
    return p;
  }
  static constexpr Placement partial(ReduceOp op,
                                     std::optional<DType> dtype = {}) {
    Placement p;
    p.kind_ = Kind::kPartial;
    p.op_ = op;
    p.dim_ = dtype ? static_cast<std::int16_t>(*dtype) : kOwnDType;
    return p;
  }

  // Parses one entry of the notation above. Errors: kPlacementSyntax,
  // kSplitFactor, kDTypeSyntax.
  static Result<Placement> parse(std::string_view text);

  constexpr Kind kind() const { return kind_; }
  constexpr bool is_replicate() const { return kind_ == Kind::kReplicate; }
  constexpr bool is_partial() const { return kind_ == Kind::kPartial; }
  // Returns true for a shard and for a strided shard.
  constexpr bool is_shard() const {
    return kind_ == Kind::kShard || kind_ == Kind::kStridedShard;
  }
  constexpr bool is_strided() const { return kind_ == Kind::kStridedShard; }
  constexpr bool shards(int tensor_dim) const {
    return is_shard() && dim_ == tensor_dim;
  }

  // Precondition: is_shard().
  constexpr int dim() const { return dim_; }
  // Number of pieces into which the dim is chunked before it is sharded; 1
  // unless strided.
  constexpr int split_factor() const { return split_factor_; }
  // Returns the same shard of another tensor dim. Precondition: is_shard().
  constexpr Placement with_dim(int tensor_dim) const {
    return strided_shard(tensor_dim, split_factor_);
  }

  // Precondition: is_partial().
  constexpr ReduceOp reduce_op() const { return op_; }
  // Returns the dtype in which terms are combined; empty means the tensor's
  // own.
  constexpr std::optional<DType> reduce_dtype() const {
    if (dim_ == kOwnDType) return std::nullopt;
    return static_cast<DType>(dim_);
  }

  friend constexpr auto operator<=>(const Placement&,
                                    const Placement&) = default;

  // Returns all fields in one word; words are equal if and only if the
  // placements are.
  constexpr std::uint64_t bits() const {
    return static_cast<std::uint64_t>(kind_) |
           static_cast<std::uint64_t>(op_) << 8 |
           static_cast<std::uint64_t>(static_cast<std::uint16_t>(dim_)) << 16 |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(split_factor_))
               << 32;
  }

 private:
  static constexpr std::int16_t kOwnDType = -1;

  Kind kind_ = Kind::kReplicate;
  ReduceOp op_ = ReduceOp::kSum;
  std::int16_t dim_ = 0;  // tensor dim, or reduction dtype of a partial
  std::int32_t split_factor_ = 1;
};

static_assert(sizeof(Placement) == 8);
static_assert(std::is_trivially_copyable_v<Placement>);

std::string to_string(Placement placement);

}  // namespace shardprop

template <>
struct std::hash<shardprop::Placement> {
  std::size_t operator()(shardprop::Placement p) const noexcept {
    return shardprop::hash_mix(0, p.bits());
  }
};
