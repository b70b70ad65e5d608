#include "ops/program/program_functions.h"

#include <algorithm>
#include <array>

namespace shardprop {
namespace {

constexpr auto kFunctions = std::to_array<ProgramFunction>({
    {"additive", 1, 1, 1},
    {"all_dims_but", 2, 2, 2},
    {"all_gather", 1, 1, 1, true},
    {"all_gather_unordered", 1, 1, 1, true},
    {"all_reduce_max", 1, 1, 1, true},
    {"all_reduce_min", 1, 1, 1, true},
    {"all_reduce_sum", 1, 1, 1, true},
    {"as_index", 1, 1, 1},
    {"by_program", 2, 2, 2, true},
    {"cast", 2, 2, 2},
    {"class_dim", 1, 1, 1},
    {"count", 2, 2, 2},
    {"count_along", 2, 2, 2},
    {"cut_dim", 1, 1, 1, true},
    {"default", 2, 2, 2},
    {"dims_behind", 2, 2, 2},
    {"dtype", 1, 2, 1},
    {"element", 2, 2, 2},
    {"epsilon", 2, 2, 2},
    {"first_given", 1, 1, 1},
    {"if_cut", 4, 4, 4, true},
    {"if_joined", 4, 4, 4, true},
    {"if_unaligned", 4, 4, 4, true},
    {"indices_or", 3, 3, 3},
    {"is_floating", 1, 1, 1},
    {"is_integral", 1, 1, 1},
    {"is_none", 1, 1, 1},
    {"itself", 0, 0, 0},
    {"larger", 2, 2, 2},
    {"last_dims", 2, 2, 2},
    {"local_indices", 2, 2, 2, true},
    {"local_size", 2, 2, 1, true},
    {"numel", 1, 1, 1},
    {"offset", 2, 2, 1, true},
    {"ones_among", 2, 2, 2},
    {"outside", 2, 2, 2, true},
    {"place_of", 3, 3, 3},
    {"places", 2, 2, 1},
    {"places_along", 2, 2, 2},
    {"quotient", 2, 2, 2},
    {"quotient_up", 2, 2, 2},
    {"rank", 1, 1, 1},
    {"reduced_dims", 2, 2, 2},
    {"result", 2, 2, 2},
    {"row_size", 1, 1, 1},
    {"size", 2, 2, 2},
    {"slice_start", 3, 3, 3},
    {"trailing", 2, 2, 2},
    {"unkept", 3, 3, 3},
    {"unpadded", 3, 3, 3},
    {"upcast", 1, 1, 1},
    {"whole", 1, 1, 1},
    {"wrap", 2, 2, 2},
});

}  // namespace

std::span<const ProgramFunction> program_functions() { return kFunctions; }

const ProgramFunction* program_function(std::string_view name) {
  const auto* found = std::lower_bound(
      kFunctions.begin(), kFunctions.end(), name,
      [](const ProgramFunction& function, std::string_view key) {
        return function.name < key;
      });
  return found != kFunctions.end() && found->name == name ? found : nullptr;
}

}  // namespace shardprop
