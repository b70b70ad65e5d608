// `RankEmitter` writes one rank's program as PyTorch operators.
#pragma once

#include <shardprop/ops/row_traits.h>
#include "io/emit/moves.h"
#include "io/emit/overlap/transfer_queues.h"
#include "io/emit/torch_graph.h"

#include <shardprop/program/spmd_program.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace shardprop::emit {

// A program with the names that torch uses: parameters, buffers and constants
// come first.
struct TorchProgram {
  TorchGraph graph;
  std::vector<TorchId> inputs;   // by SpmdProgram::inputs
  std::vector<TorchId> outputs;  // by SpmdProgram::outputs
};

class RankEmitter {
 public:
  RankEmitter(const SpmdProgram& program, const OpLibrary& library,
              Coordinate at);
  // Errors: kNotLowered (an operator is not declared), kNoShapeInference (the
  // sizes of a local tensor are unknown), kPlanStep.
  Result<TorchProgram> run();

 private:
  void note_taken();
  // overlap/overlapped_steps.cc
  void stand_at(std::size_t step);
  void finish(const ProgramWait& wait);
  void add_input(const ProgramInput& input);
  Result<void> add(const ProgramOp& op, std::size_t node);
  Result<void> add(const ProgramCollective& collective);
  Result<void> add_collective(const ProgramCollective& collective);
  TorchArgument argument(const ProgramArgument& argument, OperandOrder order);
  TorchId laid_out(ProgramValueId id, OperandOrder order);
  Result<void> add_call(const std::string& op, TorchArguments args,
                        const std::vector<ProgramValueId>& outputs);
  // Adds a call whose result is written into the memory of an operand.
  Result<void> add_write(const ProgramOp& op, const std::string& name,
                         TorchArguments args, ProgramValueId result);
  // Copies a result into the memory that it overwrites, if any.
  void write_back(ProgramValueId result);
  void draw_bits(const ProgramOp& op);
  Result<TensorMeta> meta_of(ProgramValueId id,
                             const std::optional<TensorMeta>& inferred,
                             const std::string& op) const;

  const SpmdProgram& program_;
  const OpLibrary& library_;
  Coordinate at_;
  TorchGraph graph_;
  std::vector<TorchId> values_;  // by ProgramValueId
  Argument device_;
  std::vector<bool> is_taken_;  // by ProgramValueId: by a step, or handed out
  TransferQueues queues_;
  // Random words already emitted, by node, block and layout of the value.
  std::map<std::tuple<std::int64_t, std::int64_t, std::string>,
           std::vector<TorchId>>
      drawn_;
};

// Returns the device of the program's tensors, or else the device that its
// factories name. It has no index, because every rank has its own.
Argument device_of(const SpmdProgram& program);

}  // namespace shardprop::emit
