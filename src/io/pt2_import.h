// Converts an exported program to a graph.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>

#include "io/pt2_program.h"
#include "io/pt2_values.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::pt2 {

// The tensor file of each qualified name, as the archive's weights_config lists
// them. Names with the same file are the same tensor.
using StoredTensors = std::vector<std::pair<std::string, std::string>>;

// Errors: the errors of the graph builder, and kDanglingName, kUsedBeforeMade,
// kSignatureMismatch, kHigherOrderOp, kNoSizeHint, kResultMismatch,
// kUnknownOperator, kUnknownVariant.
Result<Graph> to_graph(Program program, const StoredTensors& stored,
                       std::string name, const OpLibrary& library,
                       const GivenSizes& given = {});

}  // namespace shardprop::pt2
