// `IndexSpace` is the iteration space of one operator call, as factors.
//
// A factor is a dim of the iteration space. Each tensor dim of each operand
// consists of factors, major first. Most dims have one factor. A dim has
// several factors if a view flattens or an operator splits it, and none if its
// size is 1.
//
//   mm f32[16,8], f32[8,4]        ab,bc->ac {a=16,b=8,c=4} b:.,.->sum
//   view f32[4,6,8] -> f32[24,8]  abc->(ab)c {a=4,b=6,c=8}
//
// An index space knows neither meshes nor placements. It defines which dims of
// the operands belong together. It also defines the reduction that combines the
// partial results of an output that lacks a factor, and the reductions with
// which the operator commutes (Linearity).
//
// The printed form parses back (parse_index_space):
//   operands   a letter per factor; (ab) a dim of two; 1 a dim of none; ()
//              an operand without dims
//   {a=16,...} the size of each factor; `a=16 blocked` when it is not parallel
//   b:.,.->sum the effect of sharding b on the operands: `.` has factor b, `_`
//              is replicated, `sum` is a partial, `!` is forbidden. Omitted if
//              every input without b is `_` and every output has b.
//   | max->min a linearity: the operator turns these partials into those.
//   {..., h=32 joins=gr} a joined factor: see Factor::joins.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/decomposition.h>
#include <shardprop/ops/dim_factors.h>
#include <shardprop/ops/rank_scalar.h>
#include <shardprop/placement/placement.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `FactorKind` says whether ranks may divide a factor, and if not, why.
enum class FactorKind : std::uint8_t {
  kParallel,   // each rank may compute a part of it
  kBlocked,    // every rank needs all of it
  kWindowed,   // needs neighbouring elements: convolution, pooling, padding
  kIndexed,    // values of another operand are the indices: embedding, gather
  kSegmented,  // several operands or results follow one another: cat
  kScanned,    // needs the preceding elements: cumsum
};
std::string_view to_string(FactorKind kind);

// `ProgramUse` says when sharding a factor needs the program of the index space
// instead of the operator itself.
enum class ProgramUse : std::uint8_t { kNever, kWhenSharded, kWhenUneven };

// `ProductKind` is the kind of matmul of an operator.
enum class ProductKind : std::uint8_t {
  kNone,
  kPlain,        // products over factors, as in einsum
  kConvolution,  // a kernel with windows of the input
  kAttention,    // two matmuls, the second on the result of the first
};

// `Factor` is one dim of the iteration space.
struct Factor {
  std::int64_t size = 1;
  char letter = '?';
  FactorKind kind = FactorKind::kParallel;
  ProgramUse program = ProgramUse::kNever;
  bool even = false;       // shards must have equal sizes
  std::int64_t least = 0;  // minimum size of a shard; 1: no shard is empty
  // True if the program of the index space cannot run while the factor is sharded.
  // Then no factor that needs the program is sharded with it.
  bool outside_program = false;
  // Empty, or the factors whose dims this factor shards as one: it is a joined
  // factor. Its size is the product of theirs. A dim of exactly these factors
  // has the joined factor too; an operand with some of them lacks it. Mesh dims
  // given to the first of these factors shard the dim before those given to the
  // joined factor; the others are unsharded then. Worked example: 8 ranks have
  // 4 of 32 query heads each, and there are 2 key heads (attention_space.h).
  DimFactors joins;
  std::string reason;  // reason why it is not parallel, for messages

  // Returns whether a mesh dim may shard the factor at all.
  bool shardable() const {
    return size > 1 && (kind == FactorKind::kParallel ||
                        program == ProgramUse::kWhenSharded);
  }
  friend bool operator==(const Factor&, const Factor&) = default;
};

// `JoinedDim` is a tensor dim with a joined factor.
struct JoinedDim {
  FactorId factor = 0;
  int dim = 0;
  friend bool operator==(const JoinedDim&, const JoinedDim&) = default;
};

// `Operand` lists the factors of each tensor dim of an input or output.
struct Operand {
  std::vector<DimFactors> dims;
  // The joined factors and their dims. IndexSpace::seal() fills it in.
  std::vector<JoinedDim> joined;
  // Returns whether any dim of the operand has the factor.
  bool holds(int factor) const;
  // Returns the joined factor of a dim; nullopt if it has none.
  std::optional<FactorId> joined_factor(int dim) const;
  friend bool operator==(const Operand&, const Operand&) = default;
};

// `Without` is the placement of an operand that lacks a factor, on a mesh dim
// that shards this factor.
class Without {
 public:
  constexpr Without() = default;  // forbidden
  static constexpr Without forbidden() { return {}; }
  static constexpr Without same() { return Without(kSame); }
  static constexpr Without partial(ReduceOp op) {
    return Without(static_cast<std::int8_t>(op));
  }
  constexpr bool is_forbidden() const { return value_ == kForbidden; }
  constexpr bool is_partial() const { return value_ >= 0; }
  // Precondition: is_partial().
  constexpr ReduceOp reduce_op() const { return static_cast<ReduceOp>(value_); }
  friend bool operator==(Without, Without) = default;

 private:
  static constexpr std::int8_t kForbidden = -2;
  static constexpr std::int8_t kSame = -1;
  constexpr explicit Without(std::int8_t value) : value_(value) {}
  std::int8_t value_ = kForbidden;
};

// `Linearity` is a set of reductions with which the operator commutes: partials
// of the inputs pass through it and become those of the outputs. An operand
// with nullopt is replicated.
struct Linearity {
  std::vector<std::optional<ReduceOp>> inputs;
  std::vector<std::optional<ReduceOp>> outputs;
  friend bool operator==(const Linearity&, const Linearity&) = default;
};

struct IndexSpace {
  std::vector<Factor> factors;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;

  // Indexed by [operand][factor], for the operands that lack the factor.
  std::vector<std::vector<Without>> inputs_without;   // same() by default
  std::vector<std::vector<Without>> outputs_without;  // forbidden() by default

  std::vector<Linearity> linearities;

  // Arguments of the operator that differ between ranks.
  std::vector<LocalArgument> local_arguments;
  // The program that ranks run if the operator alone is not sufficient
  // (ProgramUse).
  std::shared_ptr<const Decomposition> program;

  // Floating point operations per point of the iteration space. The number of
  // points is the product of all factor sizes. Zero means that only memory
  // traffic costs time.
  double flops_per_point = 0;
  // An attention kernel computes both matmuls without leaving the chip between
  // them; these kernels have their own rate.
  ProductKind product = ProductKind::kNone;
  // True if it combines elements along dims that remain: softmax, norms.
  bool normalises = false;
  // True if every element of the first result is an element of the first input,
  // possibly cast to another dtype: views, copies, casts.
  bool carries = false;
  // The input that the first result equals, except for the elements that the
  // other inputs define; kNothing if there is none. If no later node reads that
  // input, its buffer becomes the result's, and the operator touches only those
  // elements. An example is a token in a cache.
  static constexpr int kNothing = -1;
  int writes_into = kNothing;
  // The inputs whose elements this call does not read, because of its mode or
  // because another operand is empty. They keep their layout.
  std::vector<std::size_t> unread;
  // True if it neither moves data nor launches a kernel (a view).
  bool is_free = false;
  // True if it draws from a stream indexed by global element. Partial inputs
  // are invalid then, and the ranks are passed the indices of their elements.
  bool is_random = false;

  int add_factor(std::int64_t size, char letter = '?');
  Factor& factor(int id) { return factors[static_cast<std::size_t>(id)]; }
  const Factor& factor(int id) const {
    return factors[static_cast<std::size_t>(id)];
  }
  // Resizes the without-tables to their final shape and fills in defaults, and
  // finds the dims of joined factors.
  void seal();
  // Returns the size of a dim: the product of its factors.
  std::int64_t size(const DimFactors& dim) const;
};

// Prints one line, without programs and reasons.
std::string to_string(const IndexSpace& space);
// Returns the names of the factors in that line. A name is a letter, followed
// by a number if another factor has the letter.
std::vector<std::string> factor_names(const IndexSpace& space);
// Prints the operands: "ab,bc->ac".
std::string operands_text(const IndexSpace& space);
// Parses the text of to_string(). Error: kIndexSpaceSyntax.
Result<IndexSpace> parse_index_space(std::string_view text);

}  // namespace shardprop
