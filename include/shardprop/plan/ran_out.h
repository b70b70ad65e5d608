// `RanOut` says why the search for a plan ended before a proof:
//
//   to_string(RanOut::kWork)  ->  "work"
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardprop {

enum class RanOut : std::uint8_t {
  kNothing,
  kTime,
  kWork,
  kInterrupted,
  kMemory,  // memory of the planning machine
  kSize,    // the named space is too large to count
  // No limit: all attempts of the search are done.
  kAttempts,
  kGap,  // no limit: the plan is within the gap that was asked for
};
// "nothing", "time", "work", "interrupted", "memory", "size", "attempts", "gap".
std::string_view to_string(RanOut what);
std::optional<RanOut> parse_ran_out(std::string_view text);

}  // namespace shardprop
