// IndexSpace: the iteration space of one operator call, as factors.
//
// A factor is a dim of the iteration space. Each tensor dim of each operand is
// made of factors, major first: usually of one; of several where a view
// flattens or an operator splits a dim; of none where the dim has size 1.
//
//   mm f32[16,8], f32[8,4]        ab,bc->ac {a=16,b=8,c=4} b:.,.->sum
//   view f32[4,6,8] -> f32[24,8]  abc->(ab)c {a=4,b=6,c=8}
//
// An index space knows nothing of meshes or placements: it says which dims
// belong together, what combines the partial results of an output that lacks
// a factor, and with which reductions the operator commutes (Linearity).
//
// The printed form parses back (parse_index_space):
//   operands   a letter per factor; (ab) a dim of two; 1 a dim of none; ()
//              an operand without dims
//   {a=16,...} the size of each factor; `a=16 blocked` when it is not parallel
//   b:.,.->sum what sharding b makes of the operands: `.` holds it, `_` is
//              replicated, `sum` is a partial, `!` forbids it. Left out where
//              every input without it is `_` and every output holds it.
//   | max->min a linearity: the operator turns these partials into those.
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

enum class FactorKind : std::uint8_t {
  kParallel,   // each rank may take a part of it
  kBlocked,    // every rank needs all of it
  kWindowed,   // needs neighbours: convolution, pooling, padding
  kIndexed,    // values of another operand say where: embedding, gather
  kSegmented,  // several operands or results lie one behind another: cat
  kScanned,    // needs what came before: cumsum
};
std::string_view to_string(FactorKind kind);

// When sharding a factor takes the program of the index space instead of the
// operator itself.
enum class ProgramUse : std::uint8_t { kNever, kWhenSharded, kWhenUneven };

// What is multiplied, where anything is.
enum class ProductKind : std::uint8_t {
  kNone,
  kPlain,        // factors with factors, as in einsum
  kConvolution,  // a kernel with the places that it is laid on
  kAttention,    // two products, the second with what the first one makes
};

struct Factor {
  std::int64_t size = 1;
  char letter = '?';
  FactorKind kind = FactorKind::kParallel;
  ProgramUse program = ProgramUse::kNever;
  bool even = false;       // shards may not differ in size
  std::int64_t least = 0;  // no shard may be smaller; 1: none may be empty
  std::string reason;      // why it is not parallel, for messages

  // Whether a mesh dim may be given to it at all.
  bool shardable() const {
    return size > 1 && (kind == FactorKind::kParallel ||
                        program == ProgramUse::kWhenSharded);
  }
  friend bool operator==(const Factor&, const Factor&) = default;
};

struct Operand {
  std::vector<DimFactors> dims;
  // Whether any of its dims holds the factor.
  bool holds(int factor) const;
  friend bool operator==(const Operand&, const Operand&) = default;
};

// What a mesh dim that shards a factor makes of an operand without it.
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

// The operator commutes with reductions of these operands: partials of the
// inputs pass through it and come out as those of the outputs. nullopt: the
// operand is whole.
struct Linearity {
  std::vector<std::optional<ReduceOp>> inputs;
  std::vector<std::optional<ReduceOp>> outputs;
  friend bool operator==(const Linearity&, const Linearity&) = default;
};

struct IndexSpace {
  std::vector<Factor> factors;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;

  // [operand][factor], for the operands that lack the factor.
  std::vector<std::vector<Without>> inputs_without;   // same() by default
  std::vector<std::vector<Without>> outputs_without;  // forbidden() by default

  std::vector<Linearity> linearities;

  // Arguments of the operator that differ on the ranks.
  std::vector<LocalArgument> local_arguments;
  // What the ranks run where the operator alone does not do (ProgramUse).
  std::shared_ptr<const Decomposition> program;

  // Floating point operations per point of the iteration space; the points are
  // the product of all factor sizes. Zero: bound by memory traffic alone.
  double flops_per_point = 0;
  // Attention's products are made in one kernel, without leaving the chip
  // between them; such kernels have a rate of their own.
  ProductKind product = ProductKind::kNone;
  // Combines elements along dims that stay: softmax, norms.
  bool normalises = false;
  // Every element of the first result is one of the first input, maybe in
  // another dtype: views, copies, casts.
  bool carries = false;
  // The input that the first result is, but for the elements that the other
  // inputs name; kNothing: none. Where nobody needs that input afterwards, its
  // storage becomes the result's, and only those elements are touched: a token
  // in a cache.
  static constexpr int kNothing = -1;
  int writes_into = kNothing;
  // The inputs whose elements this call does not read, by its mode or where
  // there is nothing to compute. They stay as they lie, in whatever layout.
  std::vector<std::size_t> unread;
  // Moves no data and launches nothing (a view).
  bool is_free = false;
  // Draws from a stream indexed by global element: partial inputs are illegal,
  // and what runs is told which elements the rank holds.
  bool is_random = false;

  int add_factor(std::int64_t size, char letter = '?');
  Factor& factor(int id) { return factors[static_cast<std::size_t>(id)]; }
  const Factor& factor(int id) const {
    return factors[static_cast<std::size_t>(id)];
  }
  // Gives the without-tables their final shape, filling in defaults.
  void seal();
  // The size of a dim: the product of its factors.
  std::int64_t size(const DimFactors& dim) const;
};

// One line; programs and reasons are not part of it.
std::string to_string(const IndexSpace& space);
// Reads what to_string() writes. Error: kIndexSpaceSyntax.
Result<IndexSpace> parse_index_space(std::string_view text);

}  // namespace shardprop
