// Weights that an exported program's archive names, without their values.
#pragma once

#include "io/emit/rank_emitter.h"

#include <shardprop/program/spmd_program.h>

#include <string>
#include <utility>
#include <vector>

namespace shardprop::emit {

// `PlaceholderWeights` is the placeholder for the weights in an archive: one
// file per dtype with a single zero element, and the strides that view every
// weight in it.
struct PlaceholderWeights {
  std::string weights_config;
  std::string constants_config;
  std::vector<std::pair<std::string, std::string>> files;  // name, bytes
};
PlaceholderWeights placeholder_weights(const SpmdProgram& program,
                                       const TorchProgram& torch);

}  // namespace shardprop::emit
