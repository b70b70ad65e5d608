// The modules of a planned program as a tree, with what they cost.
#pragma once

#include <shardprop/plan/plan.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

struct ModuleTimes {
  // By phase: forward, backward. Compute holds what copies made for the module
  // add by cutting kernels in two, and not the optimizer's step.
  std::array<std::int64_t, 2> compute{};
  std::array<std::int64_t, 2> communication{};
  friend bool operator==(const ModuleTimes&, const ModuleTimes&) = default;
};

// A redistribution, or the collectives inside an operator, where the program
// first needs it.
struct ModuleMove {
  std::size_t node = 0;  // that takes or runs it
  bool inside = false;
  std::size_t copy = 0;   // unless inside
  std::string_view home;  // path of the module, of the plan's own
};

struct Module {
  // The last part of its path (of one 100 levels deep: the rest); runs where
  // folded: "0..31".
  std::string name;
  std::size_t repeats = 1;         // alike modules that it stands for
  std::vector<std::size_t> nodes;  // its own, in schedule order
  std::vector<ModuleMove> moves;   // its own, in schedule order
  ModuleTimes times;               // of one repeat, modules inside included
  std::vector<Module> children;
};

// The operators that stand in one module itself.
struct ModuleNodes {
  std::string_view path;                  // of the plan's own
  std::vector<const PlannedNode*> nodes;  // in schedule order
};

// In order of first use.
std::vector<ModuleNodes> nodes_by_module(const Plan& plan);

// Every move of the plan, those inside operators first.
std::vector<ModuleMove> all_moves(const Plan& plan);

// The root stands for the program. Neighbours with numbers for names whose
// operators, layouts and moves are the same, name by name, are folded.
Module module_tree(const Plan& plan);

}  // namespace shardprop
