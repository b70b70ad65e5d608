// Command is one subcommand: a table of options and a function. The table
// drives parsing, checks and --help. The function gets the values and writes
// data to one stream and messages to another.
//
//   Command topologies_command() {
//     return {.name = "topologies", .summary = "the presets",
//             .example = "shardprop topologies", .options = {format_option()},
//             .run = run_topologies};
//   }
#pragma once

#include "cli/output.h"

#include <shardprop/base/option.h>
#include <shardprop/base/result.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::cli {

// These exit codes are part of the contract of the command line.
inline constexpr int kDone = 0;
inline constexpr int kFinding = 1;
inline constexpr int kUsage = 2;
inline constexpr int kBadInput = 3;
inline constexpr int kUnsupported = 4;
inline constexpr int kBug = 70;

// The file that a value of an option makes the command read; empty if none.
using InputPath = std::string (*)(const std::string& value);
std::string input_value(const std::string& value);         // "a.pt2"
std::string input_after_equals(const std::string& value);  // "x=a.txt"
std::string input_topology(const std::string& value);      // "a.toml", no name

struct Option {
  std::string name;   // "--mesh"; "GRAPH" for a positional argument
  std::string value;  // what it takes: "MESH"; empty for a flag
  std::string help;
  std::string fallback;  // used and shown when not given
  bool required = false;
  bool repeatable = false;
  std::vector<std::string> choices;  // any value when empty
  InputPath input = nullptr;         // set if its values name input files
};

// Flags of one row of the library's tables of options: "time_limit" is the flag
// --time-limit.
std::string flag_of(const OptionInfo& info);
Option option_row(const OptionInfo& info);

// --format with the given choices, the first one the default.
Option format_option(std::vector<std::string> choices = {"text", "json"});
Option output_option();  // -o,--output FILE

// The values given, by the option's name.
class Arguments {
 public:
  // `fallbacks` are the options whose value is their fallback.
  explicit Arguments(std::map<std::string, std::vector<std::string>> values,
                     std::vector<NamedInput> inputs = {},
                     std::set<std::string, std::less<>> fallbacks = {})
      : values_(std::move(values)),
        inputs_(std::move(inputs)),
        fallbacks_(std::move(fallbacks)) {}

  // The files that the command reads, which it must not write.
  const std::vector<NamedInput>& inputs() const { return inputs_; }

  // When the command began, from which its limit of time counts.
  std::chrono::steady_clock::time_point begun() const { return begun_; }

  // Whether the option has a value: the user's or its fallback.
  bool has(std::string_view name) const;
  // Whether the user gave the option.
  bool is_given(std::string_view name) const;
  // The value given, or the fallback; empty when there is neither.
  std::string get(std::string_view name) const;
  std::vector<std::string> all(std::string_view name) const;
  // Numbers within bounds; nullopt when not given and without fallback.
  // Error: kInvalidArgument.
  Result<std::optional<std::int64_t>> integer(std::string_view name,
                                              std::int64_t least,
                                              std::int64_t most) const;
  Result<std::optional<double>> number(std::string_view name, double least,
                                       double most) const;
  // "80GiB", "512MiB", "1000" (bytes). Error: kInvalidArgument.
  Result<std::optional<std::int64_t>> bytes(std::string_view name) const;

  // Calls `set(name, text)` for each option of the table that was given. The
  // place of an error is the flag.
  Result<void> apply(
      std::span<const OptionInfo> table,
      const std::function<Result<void>(std::string_view, std::string_view)>&
          set) const;

 private:
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<NamedInput> inputs_;
  std::set<std::string, std::less<>> fallbacks_;
  std::chrono::steady_clock::time_point begun_ =
      std::chrono::steady_clock::now();
};

// Where a command writes.
struct Console {
  std::ostream& data;      // standard output, or the file of -o
  std::ostream& messages;  // standard error
  bool colour = false;     // data goes to a terminal that wants colour
  bool progress = false;   // messages go to a terminal
  // Released once all data is written. It holds the Interruption of a command
  // whose answer must survive a late signal.
  std::shared_ptr<const void> until_written;
};

// Returns the value, or its error with this place of the command line.
template <class T>
Result<T> placed(Result<T> value, const std::string& where) {
  if (!value) return fail(std::move(value).error().at(where));
  return value;
}

// Does the same for an error without a place of its own.
template <class T>
Result<T> placed_at_least(Result<T> value, const std::string& where) {
  if (value || !value.error().location.empty()) return value;
  return placed(std::move(value), where);
}

struct Command {
  std::string name;
  std::string summary;
  std::string example;
  std::vector<Option> options;
  std::function<Result<int>(const Arguments&, Console&)> run;
};

// Parses the command line, runs the command it names and returns the exit code.
// Errors are printed to standard error in the format of rustc. Lack of memory
// is such an error from the creation of the commands on.
int run(const std::function<std::vector<Command>()>& commands, int argc,
        const char* const* argv);

}  // namespace shardprop::cli
