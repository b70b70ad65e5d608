// preset_texts() returns the text of each file of src/mesh/presets, that of the
// default preset first. The build writes its source.
#pragma once

#include <span>
#include <string_view>

namespace shardprop {

std::span<const std::string_view> preset_texts();

}  // namespace shardprop
