// `UnsaidLayout` is a layout of a plan that another framework's notation cannot
// express.
#pragma once

#include <shardprop/placement/layout.h>

#include <cstdint>
#include <string>

namespace shardprop {

// It is for a value, or for values that differ only in the number of their
// layer: model.layers.*.mlp.up_proj.weight.
struct UnsaidLayout {
  std::string value;
  std::int64_t values = 1;
  Layout layout;
  std::string why;
};

}  // namespace shardprop
