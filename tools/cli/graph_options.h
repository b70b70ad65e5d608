// Options of every command that reads a graph: sizes, bounds, and rules for
// operators of the user's own.
#pragma once

#include "cli/command.h"

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/request/graph_reading.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop::cli {

// --bound, --size, --other-size, --rule, --program, --max-input.
std::vector<Option> graph_options();

// --rule: how the operators of other libraries may be sharded.
Option rule_option();

// Returns the reading that these options specify. The place of each text is its
// flag. Error: kInvalidArgument (--max-input).
Result<GraphReading> reading_of(const Arguments& arguments);

// Returns the library with the operators and rules of --rule. Errors: those of
// with_files() and library_with().
Result<std::shared_ptr<const OpLibrary>> library_of(const Arguments& arguments);

// Prints the notes of the graph among the messages, for a command whose output
// has none. The text of a plan has them.
void print_notes(const Graph& graph, Console& console);

// Returns a rule that may fit a custom operator of the graph, judged by shapes.
// The text is empty if shapes suggest no rule.
std::string rule_hint(const Graph& graph, std::string_view op);

}  // namespace shardprop::cli
