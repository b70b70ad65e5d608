// UnsaidLayout: what the words of another framework leave unsaid of a plan.
#pragma once

#include <shardprop/placement/layout.h>

#include <cstdint>
#include <string>

namespace shardprop {

// Of a value, or of values that are alike but for the number of their layer:
// model.layers.*.mlp.up_proj.weight.
struct UnsaidLayout {
  std::string value;
  std::int64_t values = 1;
  Layout layout;
  std::string why;
};

}  // namespace shardprop
