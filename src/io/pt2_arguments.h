// Reads the arguments of a node with the types of its operator's declaration.
#pragma once

#include <shardprop/graph/graph_builder.h>

#include "io/pt2_values.h"

#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardprop::pt2 {

// Names of the tensors that are produced so far.
using Scope = std::unordered_map<std::string_view, ValueId>;

struct ReadArguments {
  OpSchema op;                  // outputs left out
  std::vector<ValueId> inputs;  // one per op.inputs
  std::vector<SymbolicArg> symbolic;
};

// Errors: kDanglingName, kUsedBeforeMade, kHigherOrderOp, kUnknownVariant and
// the errors of make_op_schema.
Result<ReadArguments> read_arguments(
    const Node& node, std::shared_ptr<const FunctionSchema> function,
    const Values& values, const Scope& scope, const GraphBuilder& builder);

}  // namespace shardprop::pt2
