// In which order an exported program has its inputs and outputs.
#pragma once

#include <shardprop/program/spmd_program.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop::emit {

// What an input is to torch.export, in its order. Optimizer state is kept in
// buffers.
enum class InputPlace : std::uint8_t { kParameter, kBuffer, kConstant, kUser };
InputPlace place_of(InputKind kind);

// Indices into the program's inputs: by place; of its outputs: what is written
// (buffers, parameters, then the user's), what is handed back, then gradients.
std::vector<std::size_t> input_order(const SpmdProgram& program);
std::vector<std::size_t> output_order(const SpmdProgram& program);

}  // namespace shardprop::emit
