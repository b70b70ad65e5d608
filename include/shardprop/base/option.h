// OptionInfo: one field of an options struct as text. A table of these is what the
// command line, its help, other languages and the docs are driven by; the
// library checks what it is given against the same table.
//
//   plan_option_table().front().name;                     // "memory", say
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
  // What stands for its value in a help text, "S"; empty for a flag, which is
  // "true" or "false".
  std::string_view value;
  std::string_view description;
  std::string range;     // "a number between 0 and 1"; may be empty
  std::string fallback;  // as text; empty where it is unset
  std::vector<std::string> choices;
  bool repeatable = false;  // every mention adds a value

  friend bool operator==(const OptionInfo&, const OptionInfo&) = default;
};

}  // namespace shardprop
