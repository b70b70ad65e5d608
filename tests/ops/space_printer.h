// Prints an index space with all its fields, such as the programs of ranks, which
// to_string() leaves out. Equal texts are equal spaces.
#pragma once

#include <shardprop/ops/index_space.h>

#include <string>

namespace shardprop::testing {

std::string full_text(const IndexSpace& space);

}  // namespace shardprop::testing
