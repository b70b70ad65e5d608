// The reference: operators evaluated on the CPU from their definitions, without
// any framework.
//
// Index forms run generically: products and sums over the factors of the index
// space, pointwise operators by a table of scalar functions, views by their
// strides; decompositions run through the program of their row; convolution,
// pooling, sorting, scatters and linear algebra are functions. Floats are
// computed in f64 and rounded once to the dtype of the result; integers wrap in
// their own width.
//
//   mm(f32[2,2] {{1,2},{3,4}}, f32[2,2] {{0,1},{1,0}}) -> {{2,1},{4,3}}
//
// Random operators are written out in others before they run (see the module
// `program`); here they are evaluated only where they draw nothing.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/reference/tensor.h>

#include <span>
#include <vector>

namespace shardprop::reference {

// Whether the reference knows the operator, overloads derived included.
bool evaluates(const OpLibrary& library, const FunctionSchema& function);

// The outputs of a call, in the order of op.outputs; inputs by op.inputs. A
// mutating overload writes its operand. Uninitialised results (`empty`) are
// zero. Preconditions: op.outputs are set; inputs have the shapes and dtypes of
// op.inputs.
// Errors: kNoReference (an operator, or a form of it, that the reference
// lacks), kReferenceCall (values outside the operator's domain, such as an
// index beyond its table).
Result<std::vector<Tensor>> evaluate(const OpLibrary& library,
                                     const OpSchema& op,
                                     std::span<const Tensor> inputs);

}  // namespace shardprop::reference
