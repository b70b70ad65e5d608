#include <shardprop/collective/adjoint.h>

#include <shardprop/collective/memory_ops.h>

#include "base/try.h"

#include <array>
#include <cstddef>
#include <utility>

#include "base/index.h"

namespace shardprop {
namespace {

Result<void> check_linear(ReduceOp op) {
  if (op == ReduceOp::kSum || op == ReduceOp::kAvg) return {};
  return fail(ErrorCode::kNoAdjoint, "a reduction by " +
                                         std::string(to_string(op)) +
                                         " is not linear and has no adjoint");
}

// Returns the gradient of the inputs: the gradient itself for a sum, divided by
// the number of ranks for an average.
Result<LocalTensor> share_of(Communicator& communicator,
                             const LocalTensor& grad, ReduceOp op,
                             std::int64_t ranks) {
  if (op == ReduceOp::kSum) return grad;
  if (!is_scalable(grad.dtype())) {
    return fail(ErrorCode::kReduction,
                std::string(to_string(grad.dtype())) + " has no average");
  }
  SP_ASSIGN(LocalTensor out, communicator.allocate(grad.sizes(), grad.dtype()));
  MemoryOps& memory = communicator.memory_ops();
  SP_CHECK(memory.copy(grad, out, 1.0 / static_cast<double>(ranks)));
  // The copy must be finished, because the caller may release the gradient.
  SP_CHECK(memory.finish());
  return out;
}

}  // namespace

Result<AsyncTensor> all_reduce_adjoint(Communicator& communicator,
                                       const LocalTensor& grad, ReduceOp op,
                                       const Group& group) {
  SP_CHECK(check_linear(op));
  return all_reduce(communicator, grad, op, group);
}

Result<AsyncTensor> all_gather_tensor_adjoint(Communicator& communicator,
                                              const LocalTensor& grad,
                                              int gather_dim,
                                              const Group& group) {
  return reduce_scatter_tensor(communicator, grad, ReduceOp::kSum, gather_dim,
                               group);
}

Result<AsyncTensor> reduce_scatter_tensor_adjoint(Communicator& communicator,
                                                  const LocalTensor& grad,
                                                  ReduceOp op, int scatter_dim,
                                                  const Group& group) {
  SP_CHECK(check_linear(op));
  SP_ASSIGN(const LocalTensor share,
            share_of(communicator, grad, op, group.size()));
  return all_gather_tensor(communicator, share, scatter_dim, group);
}

Result<AsyncTensor> all_to_all_single_adjoint(Communicator& communicator,
                                              const LocalTensor& grad,
                                              const Splits& splits,
                                              const Group& group) {
  return all_to_all_single(communicator, grad,
                           {.output = splits.input, .input = splits.output},
                           group);
}

Result<AsyncTensor> broadcast_adjoint(Communicator& communicator,
                                      const LocalTensor& grad,
                                      std::int64_t root, const Group& group) {
  if (root < 0 || root >= group.size()) {
    return fail(ErrorCode::kCollectiveCall,
                "broadcast: no member has the index " + std::to_string(root) +
                    " of the root");
  }
  SP_ASSIGN(const LocalTensor out,
            communicator.allocate(grad.sizes(), grad.dtype()));
  // A reduce-scatter in which the root receives everything.
  const LocalTensor none = LocalTensor::wrap(nullptr, {0}, grad.dtype());
  CollectiveCall call{.kind = CollectiveKind::kReduceScatter,
                      .op = ReduceOp::kSum,
                      .outputs = {none}};
  call.inputs.assign(static_cast<std::size_t>(group.size()), none);
  call.inputs[index(root)] = grad;
  const auto place = group.place_of(communicator.rank());
  if (place && place->index == root) {
    call.outputs = {out};
  } else {
    // The fill is queued before the collective, so that the collective's wait()
    // covers it.
    const std::array<std::byte, 16> zero{};
    SP_CHECK(communicator.memory_ops().fill(out, zero.data()));
  }
  SP_ASSIGN(std::shared_ptr<Work> work,
            communicator.start(group, std::move(call)));
  return AsyncTensor(out, std::move(work));
}

Result<AsyncTensor> permute_tensor_adjoint(
    Communicator& communicator, const LocalTensor& grad,
    std::span<const std::int64_t> destinations, const Group& group) {
  std::vector<std::int64_t> back(destinations.size(), -1);
  for (std::size_t i = 0; i < destinations.size(); ++i) {
    // The collective refuses a list that is not a permutation.
    const auto to = index(destinations[i]);
    if (to < back.size()) back[to] = static_cast<std::int64_t>(i);
  }
  return permute_tensor(communicator, grad, back, group);
}

Result<std::vector<AsyncTensor>> all_reduce_coalesced_adjoint(
    Communicator& communicator, std::span<const LocalTensor> grads, ReduceOp op,
    const Group& group) {
  SP_CHECK(check_linear(op));
  return all_reduce_coalesced(communicator, grads, op, group);
}

Result<std::vector<AsyncTensor>> all_gather_into_tensor_coalesced_adjoint(
    Communicator& communicator, std::span<const LocalTensor> grads,
    const Group& group) {
  return reduce_scatter_tensor_coalesced(communicator, grads, ReduceOp::kSum,
                                         group);
}

Result<std::vector<AsyncTensor>> reduce_scatter_tensor_coalesced_adjoint(
    Communicator& communicator, std::span<const LocalTensor> grads, ReduceOp op,
    const Group& group) {
  SP_CHECK(check_linear(op));
  std::vector<LocalTensor> shares;
  for (const LocalTensor& grad : grads) {
    SP_ASSIGN(LocalTensor share,
              share_of(communicator, grad, op, group.size()));
    shares.push_back(std::move(share));
  }
  return all_gather_into_tensor_coalesced(communicator, shares, group);
}

}  // namespace shardprop
