// FactorMap: a sharding rule worked out for one application of an operator.
//
// A factor is a dim of the operator's iteration space. Each tensor dim of each
// operand is made of factors, major first: usually of one; of several where a
// view flattens or an operator splits a dim; of none where the dim has size 1
// or cannot be sharded at all.
//
//   mm f32[16,8], f32[8,4]          factors m=16 k=8 n=4
//     inputs  [m][k], [k][n]   outputs [m][n]    k missing: P(sum)
//   view f32[4,6,8] -> f32[24,8]    factors a=4 b=6 c=8
//     inputs  [a][b][c]        outputs [ab][c]
//
// A mesh dim is given to one factor, or to a carry, or to nothing. Given to a
// factor, it shards every operand dim that holds the factor; an operand
// without it is what `inputs_without` and `outputs_without` say.
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/placement/placement.h>
#include <shardprop/strategy/local_program.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

struct Factor {
  std::int64_t size = 1;
  char letter = '?';
  // Why no mesh dim may be given to it; empty where one may.
  std::string blocked;
  // Shards may not differ in size; no shard may be empty.
  bool even = false;
  bool nonempty = false;
  // Sharding it takes the map's `program` instead of the operator itself.
  bool by_program = false;
  // Likewise where its shards differ in size; averages over it are then sums.
  bool by_program_when_uneven = false;
};

// The factors of one tensor dim, major first.
using DimFactors = InlineVector<std::int8_t, 4>;

struct Operand {
  std::vector<DimFactors> dims;
  // Whether any of its dims holds the factor.
  bool holds(int factor) const;
};

// Partials that one mesh dim carries through: a placement per input, then one
// per output. Exact for what the operator computes: additive operators carry
// sums of all their arguments, multilinear ones of one at a time.
struct Carry {
  std::vector<Placement> inputs;
  std::vector<Placement> outputs;
};

// What the local program needs to know of the chosen strategy.
struct LocalContext;

struct FactorMap {
  std::vector<Factor> factors;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;

  // [operand][factor]: what a mesh dim given to the factor makes of an operand
  // that lacks it. Inputs are replicated, or partial where they are a term of
  // a sum. An output without an entry blocks the factor.
  std::vector<std::vector<Placement>> inputs_without;
  std::vector<std::vector<std::optional<Placement>>> outputs_without;

  std::vector<Carry> carries;

  // Arguments of the operator that differ on the ranks.
  std::vector<LocalArgument> local_arguments;

  // Builds the local program where the operator alone does not do.
  std::function<LocalProgram(const LocalContext&)> program;

  // Floating point operations per point of the iteration space; the points are
  // the product of all factor sizes. Zero: bound by memory traffic alone.
  double flops_per_point = 0;
  // Moves no data and launches nothing (a view).
  bool is_free = false;
  // Draws from a stream indexed by global element: partial inputs are illegal,
  // and its local program is told which elements it holds.
  bool is_random = false;

  // Adds a factor and returns its index.
  int add_factor(std::int64_t size, char letter = '?');
  // Gives the without-tables their final shape, filling in defaults.
  void seal();
};

}  // namespace shardprop
