// `PassedElements` is the refinement that OpDefinition::passes() adds.
#pragma once

#include <shardprop/ops/index_space.h>

#include <string>
#include <vector>

namespace shardprop {

class OpCall;

struct PassedElements {
  std::vector<std::string> arguments;  // empty: all arguments
  void operator()(const OpCall& call, IndexSpace& space) const;
};

}  // namespace shardprop
