// usage_error() turns an error of CLI11 into one of ours: the wrong word of the
// command line, and the expected one.
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
