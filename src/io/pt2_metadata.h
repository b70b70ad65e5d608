// Reads the origin of a node from the texts of its metadata.
#pragma once

#include <shardprop/graph/node.h>

#include <string>
#include <string_view>

namespace shardprop::pt2 {

struct ModulePlace {
  std::string path;        // layers.0.attn
  std::string class_name;  // torch.nn.modules.linear.Linear
};

// Returns the innermost module of `key,path,class;key,path,class`. Its fields
// are empty if the stack is empty.
ModulePlace innermost_module(std::string_view stack);

// Returns the last `File "...", line N, in f` of a traceback and the line that
// follows it.
SourceLocation innermost_source(std::string_view trace);

struct CustomMetadata {
  std::string forward_node;
  std::string decomposed_from;
  CheckpointMark checkpoint;
  // The node of the planned graph, in programs of `emit`; empty for a copy.
  std::string planned_node;
};

// Reads the JSON that this project's exporter writes under `custom`. JSON of
// other exporters is ignored and never an error.
CustomMetadata read_custom(std::string_view json);

}  // namespace shardprop::pt2
