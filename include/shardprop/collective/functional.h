// Functional collectives return new tensors and do not change their inputs.
//
// They follow torch.distributed._functional_collectives. Every member of a
// group makes the call with tensors of one shape and dtype. The call starts the
// collective and returns; the first use of the result waits.
//
//   // rank r of 4 holds bf16[8,16]
//   AsyncTensor whole = all_gather_tensor(comm, x, 1, group).value();
//   whole.sizes();                        // 8,64; does not wait
//   LocalTensor data = whole.wait().value();
//
// Each collective has three forms of output:
//
//   * a new tensor;
//   * `.out`, a given tensor of the result's shape and dtype, with any strides;
//   * in place: `.out` is the input itself (all_reduce, broadcast), the input
//     is this rank's slice of the output (all_gather_tensor), or the output is
//     this rank's slice of the input (reduce_scatter_tensor).
//
// `.out` is filled once the result has been waited for.
//
// Sums of f8 are computed in f32. Sums of f16 and bf16 are too, unless NCCL
// adds them, which rounds at every hop. Integers wrap; avg is sum * (1/n).
//
// Errors, in addition to those of Communicator::start() and of output_shape.h:
// kCollectiveCall (an `.out` that does not fit), kOutOfMemory.
#pragma once

#include <shardprop/collective/async_tensor.h>
#include <shardprop/collective/communicator.h>
#include <shardprop/collective/output_shape.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shardprop {

// `CollectiveOptions` are the given output, if any, and a text for errors.
struct CollectiveOptions {
  std::optional<LocalTensor> out;
  std::string where;  // appears in errors
};

// Returns op over the inputs of all members.
Result<AsyncTensor> all_reduce(Communicator& communicator,
                               const LocalTensor& input, ReduceOp op,
                               const Group& group,
                               const CollectiveOptions& options = {});

// Returns the members' inputs, concatenated along `gather_dim`.
Result<AsyncTensor> all_gather_tensor(Communicator& communicator,
                                      const LocalTensor& input, int gather_dim,
                                      const Group& group,
                                      const CollectiveOptions& options = {});

// Returns this member's chunk, along `scatter_dim`, of op over the inputs.
Result<AsyncTensor> reduce_scatter_tensor(
    Communicator& communicator, const LocalTensor& input, ReduceOp op,
    int scatter_dim, const Group& group, const CollectiveOptions& options = {});

// Sends rows of the input to each member, and returns the received rows in
// group order.
Result<AsyncTensor> all_to_all_single(Communicator& communicator,
                                      const LocalTensor& input,
                                      const Splits& splits, const Group& group,
                                      const CollectiveOptions& options = {});

// Returns the input of the member with index `root`. The inputs of other
// members give the expected shape and dtype.
Result<AsyncTensor> broadcast(Communicator& communicator,
                              const LocalTensor& input, std::int64_t root,
                              const Group& group,
                              const CollectiveOptions& options = {});

// Returns the input of the member i with destinations[i] == this member's
// index. Error: kCollectiveCall (not a permutation of the members).
Result<AsyncTensor> permute_tensor(Communicator& communicator,
                                   const LocalTensor& input,
                                   std::span<const std::int64_t> destinations,
                                   const Group& group,
                                   const CollectiveOptions& options = {});

// `CoalescedOptions` are for several tensors of any shapes and dtypes in one
// collective. Results are in the order of the tensors. `outs` is empty or has
// one output per tensor.
struct CoalescedOptions {
  std::vector<LocalTensor> outs;
  std::string where;
};

Result<std::vector<AsyncTensor>> all_reduce_coalesced(
    Communicator& communicator, std::span<const LocalTensor> inputs,
    ReduceOp op, const Group& group, const CoalescedOptions& options = {});

// Gathers each tensor along dim 0.
Result<std::vector<AsyncTensor>> all_gather_into_tensor_coalesced(
    Communicator& communicator, std::span<const LocalTensor> inputs,
    const Group& group, const CoalescedOptions& options = {});

// Scatters each tensor along dim 0.
Result<std::vector<AsyncTensor>> reduce_scatter_tensor_coalesced(
    Communicator& communicator, std::span<const LocalTensor> inputs,
    ReduceOp op, const Group& group, const CoalescedOptions& options = {});

}  // namespace shardprop
