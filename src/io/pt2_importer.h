// `Importer` builds a graph from a program's nodes and signature.
#pragma once

#include <shardprop/graph/graph_builder.h>
#include <shardprop/ops/op_library.h>

#include "io/checked_calls.h"
#include "io/pt2_arguments.h"
#include "io/pt2_declare.h"
#include "io/pt2_functionalized.h"
#include "io/pt2_import.h"
#include "io/pt2_region.h"
#include "io/pt2_values.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::pt2 {

// Returns a name as errors show it.
std::string quote(std::string_view name);
// Returns the name of a node for error messages.
std::string_view display_name(const Node& node);

// A `Frame` maps names to values while a graph is read: one frame for the
// program and one per region.
struct Frame {
  Values values;
  Scope scope;
  std::string prefix;  // of the names of what a region makes
  bool is_autocast = false;
  // The region of torch.utils.checkpoint that contains the current nodes;
  // empty: none.
  std::string checkpoint;
};

class Importer {
 public:
  Importer(Program& program, const StoredTensors& stored, Values values,
           const OpLibrary& library, const SizeBounds& bounds,
           GraphBuilder& builder)
      : program_(program),
        stored_(stored),
        library_(library),
        bounds_(bounds),
        builder_(builder),
        frame_{std::move(values), {}, {}, false, {}} {}

  // Consumes the program's nodes one by one, because the graph and the program
  // together would need too much memory.
  Result<void> run();

 private:
  // Inputs, outputs and guards: pt2_import_signature.cc.
  Result<void> add_inputs();
  static tl::unexpected<Error> disagree(const char* what, std::size_t graph,
                                        std::size_t signature);
  Result<void> add_input(std::size_t i);
  void alias_input(NewInput& input, const TensorMeta& meta);
  void note_hint(const SymbolicDim& dim, std::string_view of);
  Result<void> add_outputs();
  Result<void> add_output(std::size_t i);
  Result<ValueId> find_target(const OutputSpec& spec, const NewOutput& output);
  void add_guards();
  void add_bounds();
  void add_open_sizes();
  void add_checkpoints();
  // Operators: pt2_import_nodes.cc.
  Result<void> add_node(const Node& node);
  Result<void> add_functionalized(FunctionalizedCall call);
  Result<void> add_call(const Node& node, const WrittenArguments& written);
  Result<void> add_with_effects(const Node& node);
  Result<void> fold_scalars(const Node& node);
  Result<std::shared_ptr<const FunctionSchema>> declare(
      const Node& node, const WrittenArguments& written);
  Result<std::vector<std::string_view>> add_results(
      const Node& node, const WrittenArguments& written, NewNode& added);
  bool is_bounded(const SymExpr& expression) const;
  // Regions, and calls that disagree with the library: pt2_import_region.cc.
  Result<void> add_region(const Node& node, const Region& region);
  Result<std::vector<ValueId>> region_results(const GraphBody& body);
  Result<ValueId> made(std::string_view name) const;
  Result<void> cast_operands(NewNode& node);
  bool is_read(std::string_view name) const;
  bool drop_extra_dims(const Node& node, NewNode& added);
  // Error: kShapeMismatch.
  Result<void> take_as_written(const Node& node, NewNode& added);

  Program& program_;
  const StoredTensors& stored_;
  const OpLibrary& library_;
  const SizeBounds& bounds_;
  GraphBuilder& builder_;
  Frame frame_;
  CheckedCalls fitting_;
  int casts_ = 0;
  // The number of operators in each region of torch.utils.checkpoint.
  std::map<std::string, std::int64_t> checkpoints_;
  std::set<std::string_view> left_out_;  // operators, each noted once
  // Inputs by the names that outputs use for them. A buffer and an argument of
  // forward() may have the same name.
  Scope targets_;
  Scope user_targets_;
  std::map<std::string, std::string> file_of_;
  std::map<std::string, std::vector<std::string>> names_in_;
  std::set<std::string_view> input_targets_;
  std::map<std::string, std::string> first_in_;
  std::map<std::string, std::string> origins_;
  std::map<std::string, std::shared_ptr<const FunctionSchema>> undeclared_;
};

}  // namespace shardprop::pt2
