// Returns the error of a plan whose parts contradict each other or its graph.
#pragma once

#include <shardprop/base/result.h>

#include <cstddef>
#include <string>

namespace shardprop::lowering {

inline auto broken_plan(const std::string& where, const std::string& what) {
  Error error{ErrorCode::kPlanBroken,
              "the plan does not hold together: " + what,
              where,
              {},
              "plan anew: the plan was changed, or made by another version"};
  return fail(std::move(error));
}

inline std::string place_of_copy(std::size_t copy) {
  return "copy " + std::to_string(copy);
}

}  // namespace shardprop::lowering
