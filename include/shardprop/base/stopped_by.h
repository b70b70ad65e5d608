// `StoppedBy` is the limit that ended a search before its proof.
//
//   if (solution.stopped_by == StoppedBy::kWork) ...  // more work may help
#pragma once

#include <cstdint>

namespace shardprop {

enum class StoppedBy : std::uint8_t {
  kTime,
  kWork,
  kRequest,  // a stop was requested
};

}  // namespace shardprop
