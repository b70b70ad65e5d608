// The modules of a planned program as a tree, with their costs.
#pragma once

#include <shardprop/plan/plan.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

struct ModuleTimes {
  // By phase: forward, backward. `compute` includes the kernel boundaries that
  // copies for the module cause, and excludes the optimizer's step.
  std::array<std::int64_t, 2> compute{};
  std::array<std::int64_t, 2> communication{};
  friend bool operator==(const ModuleTimes&, const ModuleTimes&) = default;
};

// A redistribution, or the collectives inside an operator, at their first use
// in the program.
struct ModuleMove {
  std::size_t node = 0;  // that takes or runs it
  bool inside = false;
  std::size_t copy = 0;   // unless inside
  std::string_view home;  // path of the module, of the plan's own
};

struct Module {
  // The last part of its path, or the rest of the path at level 100. If modules
  // are folded, their numbers: "0..31".
  std::string name;
  std::size_t repeats = 1;         // alike modules that it stands for
  std::vector<std::size_t> nodes;  // its own, in schedule order
  std::vector<ModuleMove> moves;   // its own, in schedule order
  ModuleTimes times;               // of one repeat, modules inside included
  std::vector<Module> children;
};

// The operators that belong to one module directly.
struct ModuleNodes {
  std::string_view path;                  // of the plan's own
  std::vector<const PlannedNode*> nodes;  // in schedule order
};

// Returns the modules in order of first use.
std::vector<ModuleNodes> nodes_by_module(const Plan& plan);

// Returns every move of the plan; moves inside operators come first.
std::vector<ModuleMove> all_moves(const Plan& plan);

// The root is the program. Neighbours that are named by numbers are folded if
// their operators, layouts and moves are equal, name by name.
Module module_tree(const Plan& plan);

}  // namespace shardprop
