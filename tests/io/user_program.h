// Access to parts of a program and of its graph, shared by tests of user models.
#pragma once

#include "io/program_fixture.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace shardprop {

// The number of f32 in a program.
inline constexpr int kF32 = 7;

inline Json& nodes_of(Json& program) {
  return program["graph_module"]["graph"]["nodes"];
}
inline Json& tensors_of(Json& program) {
  return program["graph_module"]["graph"]["tensor_values"];
}

inline const Node* find_node(const Graph& graph, std::string_view name) {
  for (const Node& node : graph.nodes()) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

inline bool has_note(const Graph& graph, std::string_view part) {
  const auto notes = graph.notes();
  return std::any_of(notes.begin(), notes.end(), [&](const ReadingNote& note) {
    return to_string(note).find(part) != std::string::npos;
  });
}

}  // namespace shardprop
