// A rank's program as torch.export's JSON (facts of the format: pt2_program.h).
#pragma once

#include "io/emit/rank_emitter.h"

#include <shardprop/program/spmd_program.h>

#include <cstddef>
#include <string>
#include <vector>

namespace shardprop::emit {

// Indices into the program's inputs and outputs, in the order of the file:
// parameters, buffers and state, constants, then the user's; what is written,
// what is handed back, then gradients.
std::vector<std::size_t> input_order(const SpmdProgram& program);
std::vector<std::size_t> output_order(const SpmdProgram& program);

std::string exported_json(const SpmdProgram& program,
                          const TorchProgram& torch);

// What stands for the weights in an archive: a file for each dtype, of one zero
// element, and how every weight is seen in it.
struct PlaceholderWeights {
  std::string weights_config;
  std::string constants_config;
  std::vector<std::pair<std::string, std::string>> files;  // name, bytes
};
PlaceholderWeights placeholder_weights(const SpmdProgram& program,
                                       const TorchProgram& torch);

}  // namespace shardprop::emit
