// Reads `Argument`, the largest union of the schema, from JSON.
#pragma once

#include "io/pt2_program.h"

namespace shardprop::pt2 {

// Reads a union: an object with one key, which names the variant. Calls
// on_variant(tag) once; it must read the value.
template <class OnVariant>
void read_union(JsonReader& json, OnVariant on_variant) {
  std::size_t count = 0;
  json.object([&](std::string_view tag) {
    if (count++ > 0) {
      json.fail(ErrorCode::kUnknownVariant, "a union has two variants at once");
      return;
    }
    on_variant(tag);
  });
  if (json.ok() && count == 0) {
    json.fail(ErrorCode::kUnknownVariant, "a union has no variant");
  }
}

void unknown_variant(JsonReader& json, std::string_view tag);
// `{"name": "mm"}`, further keys skipped.
std::string_view read_name(JsonReader& json);
SymValue read_sym_value(JsonReader& json);
Device read_device(JsonReader& json);
Argument read_argument(JsonReader& json);
// Reads the graph of a program or of a subgraph (pt2_decode.cc).
void read_graph(JsonReader& json, GraphBody& graph);

}  // namespace shardprop::pt2
