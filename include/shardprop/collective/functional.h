// Functional collectives: tensors in, new tensors out, inputs untouched.
//
// The vocabulary of torch.distributed._functional_collectives. Every member of
// a group makes the call with tensors of one shape and dtype. The call starts
// the collective and returns; the result waits at its first use.
//
//   // rank r of 4 holds bf16[8,16]
//   AsyncTensor whole = all_gather_tensor(comm, x, 1, group).value();
//   whole.sizes();                        // 8,64; nothing has been waited for
//   LocalTensor data = whole.wait().value();
//
// Into a given output: `.out`, of the result's shape and dtype, any strides.
// In place: `.out` is the input itself (all_reduce, broadcast), or the input is
// this rank's slice of the output (all_gather_tensor) or the output this
// rank's slice of the input (reduce_scatter_tensor). It is filled when the
// result has been waited for.
//
// Sums of f8 are in f32, and so are sums of f16 and bf16 unless NCCL adds them,
// which rounds at every hop. Integers wrap; avg is sum * (1/n).
//
// Errors, beside those of Communicator::start() and of output_shape.h:
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

struct CollectiveOptions {
  std::optional<LocalTensor> out;
  std::string where;  // stands in errors
};

// op over the group of every member's input.
Result<AsyncTensor> all_reduce(Communicator& communicator,
                               const LocalTensor& input, ReduceOp op,
                               const Group& group,
                               const CollectiveOptions& options = {});

// The members' inputs side by side along `gather_dim`.
Result<AsyncTensor> all_gather_tensor(Communicator& communicator,
                                      const LocalTensor& input, int gather_dim,
                                      const Group& group,
                                      const CollectiveOptions& options = {});

// This member's share, along `scatter_dim`, of op over the inputs.
Result<AsyncTensor> reduce_scatter_tensor(
    Communicator& communicator, const LocalTensor& input, ReduceOp op,
    int scatter_dim, const Group& group, const CollectiveOptions& options = {});

// Deals out the rows of the input; the rows that come, in group order.
Result<AsyncTensor> all_to_all_single(Communicator& communicator,
                                      const LocalTensor& input,
                                      const Splits& splits, const Group& group,
                                      const CollectiveOptions& options = {});

// The input of the member of index `root`; the others' inputs say what shape
// and dtype they expect.
Result<AsyncTensor> broadcast(Communicator& communicator,
                              const LocalTensor& input, std::int64_t root,
                              const Group& group,
                              const CollectiveOptions& options = {});

// The input of the member i with destinations[i] == my index. Error:
// kCollectiveCall (not a permutation of the members).
Result<AsyncTensor> permute_tensor(Communicator& communicator,
                                   const LocalTensor& input,
                                   std::span<const std::int64_t> destinations,
                                   const Group& group,
                                   const CollectiveOptions& options = {});

// Several tensors of any shapes and dtypes in one collective; results in their
// order. `outs` is empty or has one output each.
struct CoalescedOptions {
  std::vector<LocalTensor> outs;
  std::string where;
};

Result<std::vector<AsyncTensor>> all_reduce_coalesced(
    Communicator& communicator, std::span<const LocalTensor> inputs,
    ReduceOp op, const Group& group, const CoalescedOptions& options = {});

// Each along dim 0.
Result<std::vector<AsyncTensor>> all_gather_into_tensor_coalesced(
    Communicator& communicator, std::span<const LocalTensor> inputs,
    const Group& group, const CoalescedOptions& options = {});

// Each along dim 0.
Result<std::vector<AsyncTensor>> reduce_scatter_tensor_coalesced(
    Communicator& communicator, std::span<const LocalTensor> inputs,
    ReduceOp op, const Group& group, const CoalescedOptions& options = {});

}  // namespace shardprop
