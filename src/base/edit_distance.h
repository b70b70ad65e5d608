// "Did you mean": the nearest known name to one that is unknown.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardprop {

// "did you mean `tp`?", or the list of names when none is near.
std::string did_you_mean(std::string_view wrong,
                         std::span<const std::string_view> known);

}  // namespace shardprop
