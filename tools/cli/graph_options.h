// Options of every command that reads a graph: sizes, bounds, and rules for
// operators of the user's own.
#pragma once

#include "cli/command.h"
#include "cli/graph_reading.h"

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>

#include <memory>
#include <vector>

namespace shardprop::cli {

// --bound, --size, --rule, --program, --max-input.
std::vector<Option> graph_options();

// Returns the standard library with the user's rules. Errors: kInvalidArgument,
// kUnknownOperator.
Result<std::shared_ptr<const OpLibrary>> library_of(
    const GraphReading& reading);

// Whether every rule is of an operator of the graph. Error: kInvalidArgument.
Result<void> check_rules(const GraphReading& reading, const Graph& graph);

// Reads the graph at `path`. Errors: those of load_graph; kInvalidArgument.
Result<Graph> graph_of(const Arguments& arguments, const std::string& path,
                       const GraphReading& reading, const OpLibrary& library);

// Prints the notes of the graph among the messages, for a command whose output
// has none. The text of a plan has them.
void print_notes(const Graph& graph, Console& console);

// Returns a rule that may fit a custom operator of the graph, judged by shapes.
// The text is empty if shapes suggest no rule.
std::string rule_hint(const Graph& graph, std::string_view op);

}  // namespace shardprop::cli
