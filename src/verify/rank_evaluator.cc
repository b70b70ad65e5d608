#include "verify/rank_evaluator.h"

#include "base/try.h"
#include "program/torch_collectives.h"
#include "verify/host_values.h"

#include <shardprop/collective/functional.h>

#include <utility>

namespace shardprop::verification {
namespace {

Result<std::vector<AsyncTensor>> as_list(Result<AsyncTensor> started) {
  if (!started) return fail(std::move(started).error());
  return std::vector<AsyncTensor>{*std::move(started)};
}

Result<std::vector<AsyncTensor>> start_call(Communicator& communicator,
                                            const TorchCollective& call,
                                            std::span<const LocalTensor> inputs,
                                            const Group& group,
                                            const CoalescedOptions& options) {
  const CollectiveOptions single{options.outs.front(), options.where};
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
      return all_reduce_coalesced(communicator, inputs, call.op, group,
                                  options);
    case CollectiveKind::kAllGather:
      return all_gather_into_tensor_coalesced(communicator, inputs, group,
                                              options);
    case CollectiveKind::kReduceScatter:
      return reduce_scatter_tensor_coalesced(communicator, inputs, call.op,
                                             group, options);
    case CollectiveKind::kBroadcast:
      return as_list(
          broadcast(communicator, inputs.front(), call.root, group, single));
    default:
      break;
  }
  Splits splits;
  if (call.output_splits && !call.output_splits->empty()) {
    splits = {call.output_splits, call.input_splits};
  }
  return as_list(
      all_to_all_single(communicator, inputs.front(), splits, group, single));
}

}  // namespace

RankEvaluator::RankEvaluator(const RankGroups& groups,
                             std::shared_ptr<const OpLibrary> library,
                             Communicator& communicator)
    : groups_(groups),
      communicator_(communicator),
      reference_(reference_evaluator(std::move(library))) {}

Result<std::vector<LocalTensor>> RankEvaluator::operator()(
    const OpSchema& op, std::span<const LocalTensor> inputs) {
  for (const LocalTensor& input : inputs) SP_CHECK(wait_for(input));
  if (is_wait(op.name())) return std::vector<LocalTensor>{inputs.front()};
  return is_collective(op.name()) ? start(op, inputs) : reference_(op, inputs);
}

Result<std::vector<LocalTensor>> RankEvaluator::start(
    const OpSchema& op, std::span<const LocalTensor> inputs) {
  SP_ASSIGN(const TorchCollective call, torch_collective(op));
  SP_ASSIGN(std::vector<std::int64_t> members,
            groups_.members(call, communicator_.rank()));
  SP_ASSIGN(const Group group, Group::ranks(std::move(members)));
  CoalescedOptions options;
  options.where = op.name();
  for (const TensorMeta& meta : op.outputs) {
    SP_ASSIGN(LocalTensor out, LocalTensor::zeros(meta.shape(), meta.dtype()));
    options.outs.push_back(std::move(out));
  }
  if (options.outs.size() != inputs.size() || inputs.empty()) {
    return fail(ErrorCode::kCollectiveCall,
                "`" + op.name() +
                    "` has another number of results than of "
                    "operands");
  }
  SP_ASSIGN(std::vector<AsyncTensor> results,
            start_call(communicator_, call, inputs, group, options));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const void* owner = options.outs[i].owner().get();
    if (owner == nullptr) {
      without_memory_.push_back(results[i]);
    } else {
      running_.insert_or_assign(owner, results[i]);
    }
  }
  return options.outs;
}

Result<void> RankEvaluator::wait_for(const LocalTensor& tensor) {
  const auto found = running_.find(tensor.owner().get());
  if (found == running_.end()) return {};
  const AsyncTensor result = found->second;
  running_.erase(found);
  SP_CHECK(result.wait());
  return {};
}

Result<void> RankEvaluator::finish() {
  for (const auto& [owner, result] : running_) SP_CHECK(result.wait());
  for (const AsyncTensor& result : without_memory_) SP_CHECK(result.wait());
  running_.clear();
  without_memory_.clear();
  return {};
}

}  // namespace shardprop::verification
