// `OptionInfo` describes one field of an options struct as text. A table of
// these drives the command line, its help, the bindings of other languages and
// the docs. The library validates option values against the same table.
//
//   plan_option_table().front().name;                     // "memory"
//   Result<void> set = set_option(options, "overlap", "0.5");
//   get_option(options, "overlap").value();               // "0.5"
//   options.overlap = -1;
//   validate(options).error();   // error[SP0001]: `overlap` is -1
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

struct OptionInfo {
  std::string_view name;  // "time_limit": the flag --time-limit
  // Placeholder of the value in the help text, such as "S"; empty for a flag,
  // which is "true" or "false".
  std::string_view value;
  std::string_view description;
  std::string range;     // "a number between 0 and 1"; may be empty
  std::string fallback;  // default value as text; empty if the option is unset
  std::vector<std::string> choices;
  bool repeatable = false;  // each use on the command line adds a value

  friend bool operator==(const OptionInfo&, const OptionInfo&) = default;
};

}  // namespace shardprop
