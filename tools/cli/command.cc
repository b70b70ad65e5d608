#include "cli/command.h"

#include "base/edit_distance.h"
#include "base/guard.h"
#include "base/memory_reserve.h"
#include "base/parse_int.h"
#include "base/parse_number.h"
#include "base/try.h"
#include "cli/output.h"
#include "cli/usage_error.h"
#include "cli/version.h"

#include <CLI/CLI.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>
#include <utility>

namespace shardprop::cli {
namespace {

constexpr std::string_view kOutput = "-o,--output";

bool is_positional(const Option& option) {
  return !option.name.starts_with('-');
}

// The example comes first, since most users look for it.
class ExampleFirst : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    const std::string example = app->get_footer();
    return (example.empty() ? std::string() : "Example: " + example + "\n\n") +
           CLI::Formatter::make_description(app);
  }
  std::string make_footer(const CLI::App*) const override { return {}; }
};

void add_options(CLI::App& app, const Command& command,
                 std::map<std::string, std::vector<std::string>>& values) {
  for (const Option& option : command.options) {
    std::string help = option.help;
    std::string list;
    for (const std::string& choice : option.choices) {
      list += (list.empty() ? "" : "|") + choice;
    }
    if (!list.empty() && list != option.value) help += " (" + list + ")";
    if (!option.fallback.empty()) help += " [" + option.fallback + "]";
    if (option.value.empty() && !is_positional(option)) {
      app.add_flag_callback(
          option.name,
          [&values, name = option.name] { values[name] = {"true"}; }, help);
      continue;
    }
    std::vector<std::string>& slot = values[option.name];
    CLI::Option* added = app.add_option(option.name, slot, help);
    added->type_name(option.value);
    added->required(option.required);
    // Each mention has one value. A list is a repeated flag, since values may
    // hold commas.
    added->expected(1, option.repeatable ? 1 << 20 : 1);
    added->allow_extra_args(false);
    if (!option.repeatable) {
      added->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    }
    if (option.choices.empty()) continue;
    // The help already lists the choices.
    CLI::Validator check = CLI::IsMember(option.choices);
    added->check(check.description(""));
  }
}

bool wants_colour(int descriptor) {
  const char* no_colour = std::getenv("NO_COLOR");
  return (no_colour == nullptr || *no_colour == '\0') &&
         isatty(descriptor) != 0;
}

void print_error(const Error& error) {
  if (!wants_colour(STDERR_FILENO)) {
    std::cerr << to_string(error);
    return;
  }
  const std::string text = to_string(error);
  const std::size_t colon = text.find(':');
  std::cerr << "\x1b[1;31m" << text.substr(0, colon) << "\x1b[0m"
            << text.substr(colon);
}

// Sets the options that the user left out to their fallbacks. Returns their
// names.
std::set<std::string, std::less<>> fill_fallbacks(
    const Command& command,
    std::map<std::string, std::vector<std::string>>& values) {
  std::set<std::string, std::less<>> filled;
  for (const Option& option : command.options) {
    if (!values[option.name].empty() || option.fallback.empty()) continue;
    values[option.name] = {option.fallback};
    filled.insert(option.name);
  }
  return filled;
}

// The input files that the values name, each with its place: "--plan a.json".
std::vector<NamedInput> inputs_of(
    const Command& command,
    const std::map<std::string, std::vector<std::string>>& values) {
  std::vector<NamedInput> inputs;
  for (const Option& option : command.options) {
    const auto given = values.find(option.name);
    if (option.input == nullptr || given == values.end()) continue;
    for (const std::string& value : given->second) {
      std::string path = option.input(value);
      if (!path.empty()) {
        inputs.push_back({std::move(path), option.name + " " + value});
      }
    }
  }
  return inputs;
}

Result<int> run_command(const Command& command, const Arguments& arguments) {
  const std::string path = arguments.get(kOutput);
  if (arguments.has(kOutput)) {
    SP_CHECK(check_target(path));
    SP_CHECK(check_no_input(path, arguments.inputs()));
  }
  const std::optional<int> descriptor =
      arguments.has(kOutput) ? descriptor_named(path) : STDOUT_FILENO;
  if (descriptor) {
    DescriptorBuffer buffer(*descriptor);
    std::ostream data(&buffer);
    Console console{data, std::cerr, wants_colour(*descriptor),
                    isatty(STDERR_FILENO) != 0, nullptr};
    Result<int> code = command.run(arguments, console);
    data.flush();
    if (buffer.error() == 0) return code;
    return fail(cannot_write(
        *descriptor == STDOUT_FILENO ? "standard output" : "-o " + path,
        buffer.error()));
  }
  // A failed run must not change an older file.
  std::ostringstream data;
  data.exceptions(std::ios::badbit);  // else it is cut off without memory
  Console console{data, std::cerr, false, isatty(STDERR_FILENO) != 0, nullptr};
  Result<int> code = command.run(arguments, console);
  if (!code) return code;
  if (auto written = write_whole(path, data.view()); !written) {
    return fail(std::move(written).error());
  }
  return code;
}

}  // namespace

std::string input_value(const std::string& value) { return value; }

std::string input_after_equals(const std::string& value) {
  const std::size_t equals = value.find('=');
  return equals == std::string::npos ? "" : value.substr(equals + 1);
}

std::string input_topology(const std::string& value) {
  return value.ends_with(".toml") ? value : "";
}

std::string flag_of(const OptionInfo& info) {
  std::string flag = "--" + std::string(info.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

Option option_row(const OptionInfo& info) {
  return {.name = flag_of(info),
          .value = std::string(info.value),
          .help = std::string(info.description),
          .fallback = info.value.empty() ? "" : info.fallback,
          .repeatable = info.repeatable,
          .choices = info.choices};
}

Option format_option(std::vector<std::string> choices) {
  std::string first = choices.front();
  return {.name = "--format",
          .value = "FORMAT",
          .help = "form of the output",
          .fallback = std::move(first),
          .choices = std::move(choices)};
}

Option output_option() {
  return {.name = std::string(kOutput),
          .value = "FILE",
          .help = "write the data there instead of standard output"};
}

bool Arguments::has(std::string_view name) const {
  const auto it = values_.find(std::string(name));
  return it != values_.end() && !it->second.empty();
}

bool Arguments::is_given(std::string_view name) const {
  return has(name) && !fallbacks_.contains(name);
}

std::string Arguments::get(std::string_view name) const {
  return has(name) ? values_.at(std::string(name)).back() : std::string();
}

std::vector<std::string> Arguments::all(std::string_view name) const {
  return has(name) ? values_.at(std::string(name)) : std::vector<std::string>();
}

Result<std::optional<std::int64_t>> Arguments::integer(
    std::string_view name, std::int64_t least, std::int64_t most) const {
  if (!has(name)) return std::nullopt;
  const std::string text = get(name);
  const auto value = parse_int(text);
  if (!value || *value < least || *value > most) {
    return fail(Error{ErrorCode::kInvalidArgument,
                      "`" + text + "` is not a valid value",
                      std::string(name) + " " + text,
                      {},
                      "give an integer between " + std::to_string(least) +
                          " and " + std::to_string(most)});
  }
  return value;
}

Result<std::optional<double>> Arguments::number(std::string_view name,
                                                double least,
                                                double most) const {
  if (!has(name)) return std::nullopt;
  const std::string text = get(name);
  const auto value = parse_number(text);
  if (!value || *value < least || *value > most) {
    std::ostringstream range;
    range << "give a number between " << least << " and " << most;
    return fail(Error{ErrorCode::kInvalidArgument,
                      "`" + text + "` is not a valid value",
                      std::string(name) + " " + text,
                      {},
                      range.str()});
  }
  return value;
}

Result<std::optional<std::int64_t>> Arguments::bytes(
    std::string_view name) const {
  if (!has(name)) return std::nullopt;
  const std::string text = get(name);
  if (const auto value = parse_bytes(text)) return value;
  return fail(Error{ErrorCode::kInvalidArgument,
                    "`" + text + "` is not an amount of memory",
                    std::string(name) + " " + text,
                    {},
                    "write 80GiB, 512MiB or a number of bytes"});
}

Result<void> Arguments::apply(
    std::span<const OptionInfo> table,
    const std::function<Result<void>(std::string_view, std::string_view)>& set)
    const {
  for (const OptionInfo& info : table) {
    const std::string flag = flag_of(info);
    for (const std::string& text : all(flag)) {
      auto done = set(info.name, text);
      if (done) continue;
      Error error = std::move(done).error();
      // The table names its option, but the user gave a flag.
      if (error.location == info.name) error.location = flag + " " + text;
      return fail(std::move(error));
    }
  }
  return {};
}

namespace {

// CLI11 reports only that some subcommand is required.
Result<void> check_command(std::span<const Command> commands, int argc,
                           const char* const* argv) {
  std::vector<std::string_view> names;
  for (const Command& command : commands) names.push_back(command.name);
  if (argc < 2) {
    return fail(ErrorCode::kInvalidArgument, "no command is given",
                did_you_mean("", names) + "; shardprop --help");
  }
  const std::string_view word = argv[1];
  if (word.starts_with('-') ||
      std::count(names.begin(), names.end(), word) > 0) {
    return {};
  }
  return fail(ErrorCode::kInvalidArgument,
              "`" + std::string(word) + "` is not a command",
              did_you_mean(word, names) + "; shardprop --help");
}

// Prints the text of --help or --version, which replaces the run of a command.
int print_help(const CLI::App& app, const CLI::Success& request) {
  DescriptorBuffer buffer(STDOUT_FILENO);
  std::ostream out(&buffer);
  app.exit(request, out, std::cerr);
  out.flush();
  if (buffer.error() == 0) return kDone;
  const Error error = cannot_write("standard output", buffer.error());
  print_error(error);
  return code_exit(error.code);
}

constexpr std::size_t kStack = std::size_t{1} << 20;

[[gnu::noinline]] void touch_stack() {
  constexpr std::size_t kPage = 4096;
  [[maybe_unused]] volatile char room[kStack];
  for (std::size_t at = kStack; at >= kPage; at -= kPage) room[at - kPage] = 0;
}

// Allocates the stack that the work may need while there is memory. If a stack
// cannot grow later, the process ends without an error message.
void take_stack() {
  rlimit most{};
  if (getrlimit(RLIMIT_STACK, &most) == 0 && most.rlim_cur >= 4 * kStack) {
    touch_stack();
  }
}

// Parses the command line and runs the command that it names.
int run_named(std::span<const Command> commands, int argc,
              const char* const* argv) {
  if (const auto named = check_command(commands, argc, argv); !named) {
    print_error(named.error());
    return code_exit(named.error().code);
  }
  CLI::App app(
      "shardprop decides how tensors are laid out over a mesh of "
      "devices",
      "shardprop");
  app.require_subcommand(1);
  app.set_version_flag(
      "--version", [] { return version_text(); },
      "version, build options and compiler");
  app.formatter(std::make_shared<ExampleFirst>());
  app.footer("shardprop explain model.pt2 --mesh dp=8,tp=8");

  std::map<std::string, std::map<std::string, std::vector<std::string>>> given;
  for (const Command& command : commands) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    sub->footer(command.example);
    add_options(*sub, command, given[command.name]);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    return print_help(app, request);
  } catch (const CLI::ParseError& wrong) {
    print_error(usage_error(wrong, app, commands));
    return kUsage;
  }
  const std::string name = app.get_subcommands().front()->get_name();
  const auto command =
      std::find_if(commands.begin(), commands.end(),
                   [&](const Command& c) { return c.name == name; });
  auto fallbacks = fill_fallbacks(*command, given[name]);
  const Result<int> code = run_command(
      *command, Arguments(given[name], inputs_of(*command, given[name]),
                          std::move(fallbacks)));
  if (code) return *code;
  print_error(code.error());
  return code_exit(code.error().code);
}

}  // namespace

int run(const std::function<std::vector<Command>()>& commands, int argc,
        const char* const* argv) {
  prepare_output();
  take_stack();
  MemoryReserve reserve;
  try {
    const std::vector<Command> all = commands();
    return run_named(all, argc, argv);
  } catch (const std::exception& bug) {
    reserve.release();
    if (const auto error = refusal(std::current_exception())) {
      print_error(*error);
      return code_exit(error->code);
    }
    std::cerr << "error: a bug of shardprop's: " << bug.what()
              << "\n   = help: please report it with the command and its "
                 "input\n";
    return kBug;
  }
}

}  // namespace shardprop::cli
