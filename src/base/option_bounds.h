// These bounds apply to options of both solving and planning.
#pragma once

#include <cstdint>
#include <limits>

namespace shardprop {

inline constexpr double kMostSeconds = 1e12;
inline constexpr std::uint64_t kMostWork = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kMostThreads = 1024;
inline constexpr std::uint64_t kMostSeed =
    std::numeric_limits<std::uint64_t>::max();

}  // namespace shardprop
