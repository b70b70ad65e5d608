// ChoiceExcess states how much each choice of a variable adds to the overlappable
// time of overlap windows, less the compute.
#pragma once

#include "plan/network/network_assignment.h"
#include "plan/network/network_structure.h"
#include "plan/problem/plan_problem.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

class ChoiceExcess {
 public:
  // Both arguments must outlive the object.
  ChoiceExcess(const PlanProblem& problem, const NetworkStructure& structure);

  // Returns the excess by choice of a variable, in nanoseconds. A transfer to or
  // from another variable counts with the mean of the two assignments' choices
  // of that variable. `weight` is by load of an overlap window.
  std::vector<double> of(std::size_t variable, const NetworkAssignment& a,
                         const NetworkAssignment& b,
                         const std::vector<double>& weight) const;

 private:
  // Returns the weighted sum of the parts of a time that the window takes in
  // each micro-batch.
  double weighted(std::size_t window, std::int64_t nanoseconds,
                  const std::vector<double>& weight) const;

  const PlanProblem& problem_;
  const NetworkStructure& structure_;
  // By variable: its edges with a transfer that overlaps.
  std::vector<std::vector<std::size_t>> edges_;
};

}  // namespace shardprop
