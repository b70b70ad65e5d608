#include <shardprop/base/error.h>
#include <shardprop/solver/solve.h>

#include <algorithm>
#include <cmath>

namespace shardprop::solver {

std::string_view to_string(Status status) {
  switch (status) {
    case Status::kOptimal:
      return "optimal";
    case Status::kFeasible:
      return "feasible";
    case Status::kInfeasible:
      return "infeasible";
    case Status::kUnknown:
      return "unknown";
  }
  throw InternalError("a status outside its enumeration");
}

std::optional<double> Solution::gap() const {
  if (!cost.has_value() || !lower_bound.has_value()) return std::nullopt;
  const auto above = static_cast<double>(*cost - *lower_bound);
  if (above <= 0) return 0.0;
  return above / std::max(1.0, std::abs(static_cast<double>(*cost)));
}

}  // namespace shardprop::solver
