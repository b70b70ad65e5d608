// Adjoints of the functional collectives, for backward passes.
//
// A collective maps the inputs of all members to their outputs. Where it is
// linear its adjoint maps gradients of the outputs to gradients of the inputs
// such that, summed over the members,
//
//   <collective(x), g> = <x, adjoint(g)>
//
// Arguments are those of the forward call, `grad` in place of the input:
//
//   y = reduce_scatter_tensor(comm, x, ReduceOp::kSum, 1, group)
//   dx = reduce_scatter_tensor_adjoint(comm, dy, ReduceOp::kSum, 1, group)
//
// Errors: kNoAdjoint for reductions other than sum and avg, and those of the
// collective that the adjoint is.
#pragma once

#include <shardprop/collective/functional.h>

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

Result<AsyncTensor> all_reduce_adjoint(Communicator& communicator,
                                       const LocalTensor& grad, ReduceOp op,
                                       const Group& group);

Result<AsyncTensor> all_gather_tensor_adjoint(Communicator& communicator,
                                              const LocalTensor& grad,
                                              int gather_dim,
                                              const Group& group);

Result<AsyncTensor> reduce_scatter_tensor_adjoint(Communicator& communicator,
                                                  const LocalTensor& grad,
                                                  ReduceOp op, int scatter_dim,
                                                  const Group& group);

Result<AsyncTensor> all_to_all_single_adjoint(Communicator& communicator,
                                              const LocalTensor& grad,
                                              const Splits& splits,
                                              const Group& group);

// The sum of all gradients on the root, zeros elsewhere.
Result<AsyncTensor> broadcast_adjoint(Communicator& communicator,
                                      const LocalTensor& grad,
                                      std::int64_t root, const Group& group);

Result<AsyncTensor> permute_tensor_adjoint(
    Communicator& communicator, const LocalTensor& grad,
    std::span<const std::int64_t> destinations, const Group& group);

Result<std::vector<AsyncTensor>> all_reduce_coalesced_adjoint(
    Communicator& communicator, std::span<const LocalTensor> grads, ReduceOp op,
    const Group& group);

Result<std::vector<AsyncTensor>> all_gather_into_tensor_coalesced_adjoint(
    Communicator& communicator, std::span<const LocalTensor> grads,
    const Group& group);

Result<std::vector<AsyncTensor>> reduce_scatter_tensor_coalesced_adjoint(
    Communicator& communicator, std::span<const LocalTensor> grads, ReduceOp op,
    const Group& group);

}  // namespace shardprop
