// choices_of() reads the choices of a saved plan and checks them against the
// graph by names, shapes and layouts.
#pragma once

#include "plan/problem/choices/given_choices.h"

#include <shardprop/graph/graph.h>
#include <shardprop/plan/plan.h>

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

namespace shardprop {

struct SavedChoices {
  GivenChoices given;
  std::vector<std::size_t> moved;  // indices of copies that are moved
  std::unordered_map<std::string, ValueId> value_named;
};

// Error: kPlanFile, at a place in the file.
Error broken_plan(std::string why, std::string where);
// Returns a place such as "$.nodes[3].inputs".
std::string place_in(const char* list, std::size_t index,
                     const char* rest = "");

// Returns whether the copy is only a view of another copy: the same data, read
// as another value.
bool is_view_of_copy(const PlannedCopy& copy);

// Error: kPlanOtherGraph.
Result<void> check_graph(const Plan& saved, const Graph& graph);
// Precondition: there is a plan. Errors: kPlanOtherGraph, kPlanFile.
Result<SavedChoices> choices_of(const Plan& saved, const Graph& graph);

}  // namespace shardprop
