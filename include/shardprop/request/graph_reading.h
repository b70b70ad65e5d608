// `GraphReading` states how a graph is read: the rules for the user's own
// operators, the sizes that replace those of the export, further exports that show
// what follows the sizes, and the program of a file that holds several.
//
//   GraphReading reading;
//   add_option(reading, "rule", {"mylib.swiglu=pointwise()", "argument 1"});
//   add_option(reading, "size", {"batch=64,s1=128", "argument 2"});
//   Result<LoadedGraph> loaded = load_graph("model.pt2", reading);
//   loaded->reading.sizes[1].text;   // "s1=128"
//
// A plan records the reading of its graph (Plan::options), so that the saved
// plan suffices to read the graph again in the same way.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/io/load_graph.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `GivenText` is a text of the user, and the place of errors about it: a flag, an
// argument, or a member of a plan's file.
struct GivenText {
  std::string text;
  std::string place;
  // A rule of an operator file, which the graph need not use.
  bool is_from_file = false;
};

// `GivenExport` is a further export of the program, and the place of errors about it.
struct GivenExport {
  OtherExport file;
  std::string place;
};

struct GraphReading {
  // OP=ROW, DECLARATION=ROW (ops/rule_text.h), @FILE (operator_file.h)
  std::vector<GivenText> rules;
  std::vector<GivenText> bounds;  // NAME=N, a size that depends on data
  std::vector<GivenText> sizes;   // NAME=N, a size of the user's inputs
  // The same program at other sizes, which shows what follows the sizes.
  std::vector<GivenExport> other_sizes;
  // N[,N]: the number of blocks of each row of equal blocks (graph/repeat_blocks.h);
  // empty: as in the export.
  GivenText blocks;
  GivenText program;  // NAME; empty: the file holds one program
  // Maximum size of the input after decompression.
  std::int64_t max_input_bytes = std::int64_t{2} << 30;
  // Time until which a pipe or fifo is read; unlimited if empty.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

// `LoadedGraph` is a graph with the library and the reading that it came from.
struct LoadedGraph {
  std::shared_ptr<const OpLibrary> library;  // standard, with the rules
  std::shared_ptr<const Graph> graph;
  GraphReading reading;
};

// Adds one option by its name: `rule`, `bound`, `size` (also several: "s0=8,s1=4"),
// `other_size` (a path), `blocks` or `program`. Returns false if the name is another
// one. All but `blocks` and `program` can be given several times.
bool add_option(GraphReading& reading, std::string_view name,
                const GivenText& given);

// Adds rules. A rule replaces those of the same operator that the reading has
// already.
void replace_rules(GraphReading& reading, std::vector<GivenText> rules);

// Returns the standard library with the rules. Errors, at the place of the rule:
// kInvalidArgument (not OP=ROW, an operator with two rules, those of
// parse_rule()), kUnknownOperator.
Result<std::shared_ptr<const OpLibrary>> library_with(
    const std::vector<GivenText>& rules);

// Removes the rules of operator files for operators that the graph does not have.
void drop_unused(std::vector<GivenText>& rules, const Graph& graph);

// Checks that every rule is for an operator of the graph or of a file, and that the graph was
// read with the declarations of the rules. Error: kInvalidArgument.
Result<void> check_rules(const std::vector<GivenText>& rules,
                         const Graph& graph);

// Reads the file of a graph. The reading of the result has the rules of operator
// files that the graph uses. Errors: those of with_files(), library_with(),
// check_rules() and
// load_graph() of io/load_graph.h; kInvalidArgument (a bound or size that is not
// NAME=N, or that is given twice; numbers of blocks that are none); those of
// repeat_blocks().
Result<LoadedGraph> load_graph(const std::string& path, GraphReading reading);
// Reads a graph from memory; `name` becomes the graph's name.
Result<LoadedGraph> read_graph(std::string_view bytes, const std::string& name,
                               GraphReading reading);

// Adds how the graph of a saved plan was read. If the reading names the same
// operator or size, it must have the same rule or value. Other exports of the
// reading replace those of the plan. `place` names the plan
// in errors. Error: kInvalidArgument.
Result<void> add_reading_of(const Plan& saved, const std::string& place,
                            GraphReading& reading);

// Writes the reading into the options of a plan. Other exports that have no file
// are left out.
void record(const GraphReading& reading, Plan& plan);

}  // namespace shardprop
