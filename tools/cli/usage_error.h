// What CLI11 says of a command line it cannot take, in our words: which word of
// it is wrong, and what would be right.
#pragma once

#include "cli/command.h"

#include <span>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace shardprop::cli {

Error usage_error(const CLI::ParseError& wrong, const CLI::App& app,
                  std::span<const Command> commands);

}  // namespace shardprop::cli
