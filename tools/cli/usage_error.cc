#include "cli/usage_error.h"

#include "base/edit_distance.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop::cli {
namespace {

// "-o,--output" as "-o" and "--output".
std::vector<std::string_view> names_of(const Option& option) {
  std::vector<std::string_view> names;
  std::string_view rest = option.name;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    names.push_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return names;
}

const Option* option_named(const Command& command, std::string_view name) {
  for (const Option& option : command.options) {
    const auto names = names_of(option);
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return &option;
    }
  }
  return nullptr;
}

Error left_over(const std::string& word, const Command& command,
                const std::string& help) {
  Error error{ErrorCode::kInvalidArgument, {}, word, {}, help};
  if (!word.starts_with('-')) {
    error.message = "`" + word + "` is one argument too many";
    return error;
  }
  const std::string flag = word.substr(0, word.find('='));
  error.message = "`" + command.name + "` has no option `" + flag + "`";
  std::vector<std::string_view> known;
  for (const Option& option : command.options) {
    for (const std::string_view name : names_of(option)) {
      if (name.starts_with("--")) known.push_back(name);
    }
  }
  // The command has the option, but CLI11 did not read it as an option at this
  // place.
  if (option_named(command, flag) != nullptr) {
    error.message = "`" + flag + "` is not read as an option there";
    error.help = "options come after `" + command.name +
                 "`, and before a word of `--` alone; " + help;
    return error;
  }
  const std::string near = did_you_mean(flag, known);
  if (near.starts_with("did")) error.help = near + "; " + help;
  return error;
}

// Returns the error of a line without a command in its first word.
Error without_command(const std::string& word) {
  Error error{ErrorCode::kInvalidArgument,
              {},
              word,
              {},
              "shardprop --help, or shardprop COMMAND --help"};
  if (!word.starts_with('-') || word == "--") {
    error.message = "`" + word + "` is not read as a command there";
    error.help = "the command is the first word; " + error.help;
    return error;
  }
  const std::string flag = word.substr(0, word.find('='));
  static constexpr std::string_view kOwn[] = {"--help", "--version"};
  const std::string near = did_you_mean(flag, kOwn);
  error.message = "`" + flag + "` is not an option in front of a command";
  error.help = (near.starts_with("did") ? near + "; " : std::string()) +
               "options of a command come after it; " + error.help;
  return error;
}

// "--format: xml not in {text,json}", "--mesh: 1 required MESH missing",
// "--mesh: At Most 1 required but received 2".
Error wrong_value(const CLI::ParseError& wrong, const std::string& flag,
                  const Option& option, const CLI::App& sub,
                  const std::string& help) {
  Error error{ErrorCode::kInvalidArgument, {}, flag, {}, help};
  const CLI::Option* parsed = sub.get_option_no_throw(flag);
  const std::vector<std::string> given =
      parsed == nullptr ? std::vector<std::string>() : parsed->results();
  if (!option.choices.empty() && given.size() == 1) {
    error.message = "`" + given.front() + "` is not a value of " + flag;
    error.location = flag + " " + given.front();
    error.help = "known: ";
    for (const std::string& choice : option.choices) {
      error.help += (&choice == option.choices.data() ? "" : ", ") + choice;
    }
  } else if (given.size() > 1 && !option.repeatable) {
    error.message = flag + " is given more than once";
    error.help = "give it once";
  } else if (given.empty() && !option.value.empty()) {
    error.message = flag + " needs a value";
    error.help = "write " + flag + " " + option.value;
  } else {
    error.message = wrong.what();
  }
  return error;
}

}  // namespace

Error usage_error(const CLI::ParseError& wrong, const CLI::App& app,
                  std::span<const Command> commands) {
  const std::string text = wrong.what();
  const auto subs = app.get_subcommands();
  const auto command =
      subs.empty() ? commands.end()
                   : std::find_if(commands.begin(), commands.end(),
                                  [&](const Command& known) {
                                    return known.name == subs[0]->get_name();
                                  });
  if (command == commands.end()) {
    const auto words = app.remaining(true);
    if (!words.empty()) return without_command(words.front());
    return {ErrorCode::kInvalidArgument,
            text,
            {},
            {},
            "shardprop --help, or shardprop COMMAND --help"};
  }
  const std::string help = "shardprop " + command->name + " --help";
  const auto rest = app.remaining(true);
  if (dynamic_cast<const CLI::ExtrasError*>(&wrong) != nullptr &&
      !rest.empty()) {
    return left_over(rest.front(), *command, help);
  }
  const std::string flag = text.substr(0, text.find(':'));
  if (const Option* option = option_named(*command, flag)) {
    return wrong_value(wrong, flag, *option, *subs[0], help);
  }
  return {ErrorCode::kInvalidArgument, text, command->name, {}, help};
}

}  // namespace shardprop::cli
