// `LocalRun` is what each rank runs for one node of a plan if it is not the
// unchanged operator on the local tensors. It is plain data for one mesh and
// needs neither graph nor rules.
//
//   view f32[4,6,8] S(0) -> f32[24,8] S(0) on [2]:
//     arguments  size: [12,8] on every rank
//   softmax over a sharded dim:
//     program    amax, all_reduce max, sub, exp, sum, all_reduce sum, div
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/mesh/collective_kind.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/placement.h>
#include <shardprop/strategy/local_context.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {

// `RankValues` are integers that differ between ranks: a table over the
// smallest set of mesh dims on which they depend.
class RankValues {
 public:
  RankValues() = default;
  // Makes a table from `rows` over the coordinates on `mesh_dims` (ascending);
  // the last dim varies fastest. Each row has one number unless `is_list`. Mesh
  // dims on which no value depends are removed.
  RankValues(const DeviceMesh& mesh, DimIndices mesh_dims, bool is_list,
             std::vector<std::vector<std::int64_t>> rows);

  bool is_list() const { return is_list_; }
  const DimIndices& mesh_dims() const { return mesh_dims_; }
  const std::vector<std::int64_t>& at(const Coordinate& rank) const;

  friend bool operator==(const RankValues&, const RankValues&) = default;

 private:
  bool is_list_ = false;
  DimIndices mesh_dims_;
  InlineVector<std::int64_t, 5> sizes_;  // sizes of these mesh dims
  std::vector<std::vector<std::int64_t>> rows_;
};

// `LocalRunArgument` is an argument of the operator with a value per rank.
struct LocalRunArgument {
  std::string name;
  RankValues values;
  friend bool operator==(const LocalRunArgument&,
                         const LocalRunArgument&) = default;
};

// `LocalScalar` is a scalar as written: dtypes and names as text, a complex
// number as two doubles, non-finite numbers as "NaN", "Infinity", "-Infinity".
using LocalScalar = std::variant<std::monostate, bool, std::int64_t, double,
                                 std::pair<double, double>, std::string>;
using LocalRunValue = std::variant<LocalScalar, std::vector<LocalScalar>,
                                   LocalRef, std::vector<LocalRef>, RankValues>;

// `LocalRunOp` is one operator of a rank's program.
struct LocalRunOp {
  std::string name;  // aten.mm.default
  std::vector<std::pair<std::string, LocalRunValue>> args;
  friend bool operator==(const LocalRunOp&, const LocalRunOp&) = default;
};

// The i-th collective of a program is the i-th of the node's `inside`
// collectives.
struct LocalRunCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::optional<ReduceOp> reduce_op;
  DimIndices mesh_dims;
  LocalRef value;
  friend bool operator==(const LocalRunCollective&,
                         const LocalRunCollective&) = default;
};

// `LocalRunProgram` is the program that each rank runs instead of the operator.
struct LocalRunProgram {
  std::vector<std::variant<LocalRunOp, LocalRunCollective>> steps;
  std::vector<LocalRef> outputs;
  friend bool operator==(const LocalRunProgram&,
                         const LocalRunProgram&) = default;
};

struct LocalRun {
  std::vector<LocalRunArgument> arguments;  // empty if there is a program
  std::optional<LocalRunProgram> program;

  // Returns whether the operator runs unchanged.
  bool empty() const { return arguments.empty() && !program; }
  friend bool operator==(const LocalRun&, const LocalRun&) = default;
};

// Returns the run of a strategy; it is empty if the operator runs unchanged.
LocalRun local_run(const LocalContext& context);
// Returns the run of a strategy that needs this local_program().
LocalRun local_run(const LocalContext& context, const LocalProgram& program);

}  // namespace shardprop
