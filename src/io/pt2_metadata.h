// Where a node comes from, out of the texts of its metadata.
#pragma once

#include <shardprop/graph/node.h>

#include <string>
#include <string_view>

namespace shardprop::pt2 {

struct ModulePlace {
  std::string path;        // layers.0.attn
  std::string class_name;  // torch.nn.modules.linear.Linear
};

// The innermost of `key,path,class;key,path,class`; empty where the stack says
// that there is none.
ModulePlace innermost_module(std::string_view stack);

// The last `File "...", line N, in f` of a traceback and the line after it.
SourceLocation innermost_source(std::string_view trace);

struct CustomMetadata {
  std::string forward_node;
  std::string decomposed_from;
  std::string checkpoint;
};

// What our exporter writes as JSON under `custom`. Other people's JSON is
// theirs: nothing is read from it, and nothing in it is an error.
CustomMetadata read_custom(std::string_view json);

}  // namespace shardprop::pt2
