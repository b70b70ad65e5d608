#include "solver/model/incumbent.h"

#include <shardprop/base/error.h>
#include <shardprop/solver/checker.h>

#include <algorithm>
#include <utility>

namespace shardprop::solver {

Int128 Incumbent::cost_in_units() const {
  if (!cost_) return kNoCost;
  const Int128 down = *cost_ / network_.unit;
  return down + (*cost_ > down * network_.unit ? 1 : 0);
}

void Incumbent::offer(std::vector<int> choices) {
  Assignment full = network_.expand(std::move(choices));
  const auto judged = evaluate(problem_, full);
  if (!judged.has_value() || !judged->feasible()) {
    throw InternalError("the solver accepted an assignment that does not hold");
  }
  if (cost_ && judged->cost >= *cost_) return;
  cost_ = judged->cost;
  assignment_ = std::move(full);
}

void Incumbent::offer_known(const Assignment& known) {
  const auto judged = evaluate(problem_, known);
  if (!judged.has_value() || !judged->feasible()) return;
  if (cost_ && judged->cost >= *cost_) return;
  // Memory may run out in the copy.
  Assignment own = known;
  cost_ = judged->cost;
  assignment_ = std::move(own);
}

void Incumbent::raise_bound(Int128 units) {
  Int128 bound = units * network_.unit;
  if (cost_) bound = std::min(bound, *cost_);
  bound_ = bound_ ? std::max(*bound_, bound) : bound;
}

void Incumbent::close(Int128 units) {
  if (known()) {
    raise_bound(units);
  } else {
    infeasible_ = true;
  }
}

}  // namespace shardprop::solver
