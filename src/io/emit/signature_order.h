// The order in which an exported program lists its inputs and outputs.
#pragma once

#include <shardprop/program/spmd_program.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop::emit {

// The kinds of inputs of torch.export, in its order. Optimizer state is stored
// in buffers.
enum class InputPlace : std::uint8_t { kParameter, kBuffer, kConstant, kUser };
InputPlace place_of(InputKind kind);

// `input_order` returns indices into the program's inputs, sorted by place.
// `output_order` returns indices of outputs: mutations first (buffers,
// parameters, then user inputs), then user outputs, then gradients.
std::vector<std::size_t> input_order(const SpmdProgram& program);
std::vector<std::size_t> output_order(const SpmdProgram& program);

}  // namespace shardprop::emit
