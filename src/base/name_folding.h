// Names that differ in numbers only, said once: "layers.0..31.wq (x32)".
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {

// "0..31", "0..3,7": ascending numbers as runs.
std::string runs_text(const std::vector<std::int64_t>& numbers);

// A name with its numbers apart: "layers.3.wq" is one of the pattern
// "layers.*.wq", with 3.
struct NumberedName {
  std::string pattern;                // components that are numbers marked
  std::vector<std::int64_t> numbers;  // in order
};
NumberedName numbered_name(std::string_view name);

// A pattern with runs of numbers in its places, one set for each:
// "layers.0..31.wq".
std::string with_numbers(const std::string& pattern,
                         const std::vector<std::set<std::int64_t>>& places);

struct FoldedName {
  std::string text;
  std::vector<std::size_t> members;  // indices of the names it stands for
};

// Names whose `group` is equal and that differ only in components between dots
// that are numbers fold into one where they are all combinations of those
// numbers. In order of first appearance.
std::vector<FoldedName> fold_names(const std::vector<std::string>& names,
                                   const std::vector<std::string>& groups);

// layers.3.q_proj -> layers.*.q_proj
std::string starred_name(std::string_view name);

// Whether the whole text is a decimal number without sign.
bool is_number(std::string_view text);

}  // namespace shardprop
