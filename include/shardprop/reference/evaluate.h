// `reference::evaluate` evaluates operators on the CPU from their definitions,
// without a framework.
//
// Definitions with an index form run generically:
//
//   * matmuls and sums run over the factors of the index space;
//   * pointwise operators use a table of scalar functions;
//   * views use strides, and decompositions use the program of the definition.
//
// Convolution, pooling, sorting, scatters and linear algebra are functions.
// Floats are computed in f64 and rounded once to the dtype of the result;
// integers wrap at their own width.
//
//   mm(f32[2,2] {{1,2},{3,4}}, f32[2,2] {{0,1},{1,0}}) -> {{2,1},{4,3}}
//
// Random operators are replaced by other operators before they run (see the
// module `program`). Here they are evaluated only if they draw no numbers.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/reference/tensor.h>

#include <span>
#include <vector>

namespace shardprop::reference {

// Returns whether the reference supports the operator, including derived
// overloads.
bool evaluates(const OpLibrary& library, const FunctionSchema& function);

// Returns the outputs of a call in the order of op.outputs; `inputs` are in the
// order of op.inputs. A mutating overload writes its operand. Uninitialised
// results (`empty`) are zero. Preconditions: op.outputs is set; inputs have the
// shapes and dtypes of op.inputs.
// Errors: kNoReference (the reference lacks the operator or this form of it),
// kReferenceCall (a value is outside the operator's domain, such as an index
// out of range).
Result<std::vector<Tensor>> evaluate(const OpLibrary& library,
                                     const OpSchema& op,
                                     std::span<const Tensor> inputs);

}  // namespace shardprop::reference
