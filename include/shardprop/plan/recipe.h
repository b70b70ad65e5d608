// Recipe: a way of laying out training that people know by name.
//
//   ddp=dp                  data parallel: batch over dp, parameters replicated
//   fsdp=dp                 the same, parameters, gradients and optimizer state
//                           in shards, gathered for use
//   hsdp=dp:tp              batch over both, shards over tp, replicas over dp
//   megatron=tp             pairs of products by columns, then rows; attention
//                           by heads, embedding and loss by vocabulary
//   megatron-sp=tp          the same, by tokens between the pairs
//   ep=dp                   experts over dp, whose other tensors are laid out
//                           by the recipe that dp is named in, if any
//   fsdp=dp,megatron=tp     both, each on its own mesh dims
//
// Several dims of one recipe are joined by `:`. Without `=DIM` dims are given
// by position: the last to megatron, the others to data. Dims that no recipe is
// named for are data parallel, as by ddp.
//
// A recipe says how computation is laid out and how parameters are stored; the
// rest, and whatever it cannot be followed in, is planned at least cost.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/mesh/device_mesh.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

enum class RecipeKind : std::uint8_t {
  kDdp,
  kFsdp,
  kHsdp,
  kMegatron,
  kMegatronSp,
  kEp,
};
std::string_view to_string(RecipeKind kind);  // "megatron-sp"

struct RecipePart {
  RecipeKind kind = RecipeKind::kDdp;
  std::vector<std::string> dims;  // of the mesh; empty: by position
  friend bool operator==(const RecipePart&, const RecipePart&) = default;
};

struct Recipe {
  std::vector<RecipePart> parts;  // never empty

  // Error: kInvalidArgument.
  static Result<Recipe> parse(std::string_view text);
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

// Parses back.
std::string to_string(const Recipe& recipe);

// With every mesh dim larger than 1 given by name to a part.
// Error: kInvalidArgument (a dim that the mesh has not, that two recipes claim,
// or that none is left for).
Result<Recipe> on_mesh(const Recipe& recipe, const DeviceMesh& mesh);

// Those worth comparing on a mesh, by name; with experts, expert parallelism
// too.
std::vector<Recipe> recipes_for(const DeviceMesh& mesh, bool has_experts);

}  // namespace shardprop
