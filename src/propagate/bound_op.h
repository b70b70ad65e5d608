// BoundOp: a call with what follows from it alone, whatever the layouts:
// outputs, index space, the walk over its strategies, which operands it writes,
// which arguments it depends on. BoundOps remembers them by call, since a
// program makes few different ones: a miss of layouts is no reason to infer
// shapes anew.
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
  // The output that is the same tensor, in the same layout.
  std::optional<std::size_t> output;
};

struct BoundOp {
  std::shared_ptr<const OpSchema> op;  // outputs filled in
  std::shared_ptr<const IndexSpace> space;
  std::shared_ptr<const StrategyWalk> walk;  // of both
  std::vector<WrittenOperand> writes;
  std::vector<Look> looks;  // one per declared argument
};

// Errors: those of OpLibrary::infer_results(), index_space(), check_outputs().
Result<BoundOp> bind_op(const OpLibrary& library, const DeviceMesh& mesh,
                        const OpSchema& op);

// The index space that asks for the operands that are not read whole and
// replicated, however the others are laid out.
IndexSpace with_unread_whole(IndexSpace space);

// Safe to use from several threads at once.
class BoundOps {
 public:
  BoundOps(std::shared_ptr<const OpLibrary> library, DeviceMesh mesh)
      : library_(std::move(library)), mesh_(std::move(mesh)) {}

  // As bind_op(); errors are not remembered.
  Result<std::shared_ptr<const BoundOp>> get(const OpSchema& op);

 private:
  // More than the different calls of any one program; all are forgotten when
  // there are more.
  static constexpr std::size_t kMostHeld = 1 << 12;

  std::shared_ptr<const OpLibrary> library_;
  DeviceMesh mesh_;
  std::mutex mutex_;
  std::unordered_map<CallKey, std::shared_ptr<const BoundOp>, CallKeyHash>
      held_;
};

}  // namespace shardprop
