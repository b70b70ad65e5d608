// `RankEvaluator` evaluates the operators of one rank's program. Collectives run
// among simulated ranks, and the reference evaluates all other operators.
#pragma once

#include "verify/rank_groups.h"

#include <shardprop/base/result.h>
#include <shardprop/collective/async_tensor.h>
#include <shardprop/collective/communicator.h>
#include <shardprop/execute/program_run.h>

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace shardprop::verification {

class RankEvaluator {
 public:
  // `groups` and `communicator` must outlive it.
  RankEvaluator(const RankGroups& groups,
                std::shared_ptr<const OpLibrary> library,
                Communicator& communicator);

  // Starts a collective, and waits at the first use of its result. It passes on
  // the errors of the reference, of RankGroups and of collectives.
  Result<std::vector<LocalTensor>> operator()(
      const OpSchema& op, std::span<const LocalTensor> inputs);
  // Waits for the collectives whose results no operator used.
  Result<void> finish();

 private:
  Result<std::vector<LocalTensor>> start(const OpSchema& op,
                                         std::span<const LocalTensor> inputs);
  Result<void> wait_for(const LocalTensor& tensor);

  const RankGroups& groups_;
  Communicator& communicator_;
  OperatorEvaluator reference_;
  // The collectives that run, by the owner of the result's memory.
  std::unordered_map<const void*, AsyncTensor> running_;
  std::vector<AsyncTensor> without_memory_;  // empty results
};

}  // namespace shardprop::verification
