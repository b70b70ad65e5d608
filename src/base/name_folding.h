// Folds names that differ in numbers only into one: "layers.0..31.wq (x32)".
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {

// Prints ascending numbers as runs: "0..31", "0..3,7".
std::string runs_text(const std::vector<std::int64_t>& numbers);

// NumberedName is a name with its numbers separated: "layers.3.wq" has the
// pattern "layers.*.wq" and the number 3.
struct NumberedName {
  std::string pattern;                // number components as "*"
  std::vector<std::int64_t> numbers;  // in order
};
NumberedName numbered_name(std::string_view name);

// Fills each place of a pattern with runs of numbers, one set per place:
// "layers.0..31.wq".
std::string with_numbers(const std::string& pattern,
                         const std::vector<std::set<std::int64_t>>& places);

struct FoldedName {
  std::string text;
  std::vector<std::size_t> members;  // indices of the names it stands for
};

// Folds names of equal `group` that differ only in numeric components. They
// fold into one name if they are all combinations of these numbers. The result
// is in order of first appearance.
std::vector<FoldedName> fold_names(const std::vector<std::string>& names,
                                   const std::vector<std::string>& groups);

// layers.3.q_proj -> layers.*.q_proj
std::string starred_name(std::string_view name);

// Returns the path of the first numbered layer that contains a module:
// "model.layers.3" for "model.layers.3.mlp.up_proj". Empty without a number.
std::string layer_path(std::string_view module_path);

// Returns the path of a module inside of its last numbered layer:
// "mlp.up_proj" for "model.layers.3.mlp.up_proj". The path itself if it has no
// number or ends with one.
std::string path_in_layer(std::string_view module_path);

// Returns whether the full text is a decimal number without a sign.
bool is_number(std::string_view text);

}  // namespace shardprop
