// BoundOp is a call with everything that depends on the call but not on the
// layouts. It stores the outputs, the index space, the walk over its
// strategies, the operands that it writes, and the arguments that it depends
// on. BoundOps caches bound calls, because a program makes few different calls.
// A cache miss for new layouts need not infer the shapes again.
#pragma once

#include "ops/argument_reads.h"
#include "propagate/call_key.h"
#include "strategy/strategy_walk.h"

#include <shardprop/base/result.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/op_library.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shardprop {

struct WrittenOperand {
  std::size_t operand;
  // The output that is the same tensor and has the same layout.
  std::optional<std::size_t> output;
};

struct BoundOp {
  std::shared_ptr<const OpSchema> op;  // with its outputs
  std::shared_ptr<const IndexSpace> space;
  std::shared_ptr<const StrategyWalk> walk;  // of both
  std::vector<WrittenOperand> writes;
  std::vector<Look> looks;  // one per declared argument
};

// Errors: those of OpLibrary::infer_results(), index_space(), check_outputs().
Result<BoundOp> bind_op(const OpLibrary& library, const DeviceMesh& mesh,
                        const OpSchema& op);

// Returns the index space in which operands that are not read must be full and
// replicated. It ignores the layouts that they have.
IndexSpace with_unread_whole(IndexSpace space);

// Safe to use from several threads at once.
class BoundOps {
 public:
  BoundOps(std::shared_ptr<const OpLibrary> library, DeviceMesh mesh)
      : library_(std::move(library)), mesh_(std::move(mesh)) {}

  // Returns the cached bind_op() of the call; errors are not cached.
  Result<std::shared_ptr<const BoundOp>> get(const OpSchema& op);

 private:
  // This number exceeds the different calls of any one program. If it is
  // reached, the cache is cleared.
  static constexpr std::size_t kMostHeld = 1 << 12;

  std::shared_ptr<const OpLibrary> library_;
  DeviceMesh mesh_;
  std::mutex mutex_;
  std::unordered_map<CallKey, std::shared_ptr<const BoundOp>, CallKeyHash>
      held_;
};

}  // namespace shardprop
