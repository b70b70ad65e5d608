// `ProgramFunction` is a function that programs call and that is not an operator.
// docs/row_language.md describes each.
//
//   program_function("unkept")->most   // 3
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace shardprop {

struct ProgramFunction {
  std::string_view name;
  // How many values it takes.
  std::size_t least;
  std::size_t most;
  // How few values it takes if the first one is `out`.
  std::size_t least_of_results;
  // Whether its value depends on the rank's part, so that only per_rank programs
  // may call it.
  bool is_of_rank = false;
};

// Returns every function, sorted by name.
std::span<const ProgramFunction> program_functions();
// Returns the function of that name, or null.
const ProgramFunction* program_function(std::string_view name);

}  // namespace shardprop
