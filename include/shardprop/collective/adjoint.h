// These are the adjoints of the functional collectives, for backward passes.
//
// A collective maps the inputs of all members to their outputs. If it is
// linear, its adjoint maps gradients of the outputs to gradients of the inputs.
// Summed over the members,
//
//   <collective(x), g> = <x, adjoint(g)>
//
// Arguments are those of the forward call, with `grad` as the input:
//
//   y = reduce_scatter_tensor(comm, x, ReduceOp::kSum, 1, group)
//   dx = reduce_scatter_tensor_adjoint(comm, dy, ReduceOp::kSum, 1, group)
//
// Errors: kNoAdjoint for reductions other than sum and avg, and those of the
// collective that implements the adjoint.
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

// Returns the sum of all gradients on the root, and zeros on other members.
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
