// did_you_mean() suggests the known name that is nearest to an unknown one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardprop {

// Returns "did you mean `tp`?", or the list of names if none is near.
std::string did_you_mean(std::string_view wrong,
                         std::span<const std::string_view> known);

}  // namespace shardprop
