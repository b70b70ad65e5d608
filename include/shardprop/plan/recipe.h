// `Recipe` is a well-known way to shard training.
//
//   ddp=dp                  data parallel: batch over dp, parameters replicated
//   fsdp=dp                 the same, but parameters, gradients and optimizer
//                           state are sharded, and gathered for use
//   hsdp=dp:tp              batch over both, shards over tp, replicas over dp
//   megatron=tp             pairs of matmuls by columns, then rows; attention
//                           by heads, embedding and loss by vocabulary
//   megatron-sp=tp          the same, sharded by tokens between the pairs
//   ep=dp                   experts over dp; other tensors follow the recipe
//                           that also names dp, if any
//   fsdp=dp,megatron=tp     both, each on its own mesh dims
//
// Several dims of one recipe are joined by `:`. Without `=DIM` dims are
// assigned by position: the last to megatron, the others to data. Dims that no
// recipe names are data parallel, as with ddp.
//
// A recipe defines the sharding of compute and the storage of parameters.
// Operators that cannot follow it, and all other layouts, are planned at the
// lowest cost.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/mesh/device_mesh.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `RecipeKind` lists the recipes above.
enum class RecipeKind : std::uint8_t {
  kDdp,
  kFsdp,
  kHsdp,
  kMegatron,
  kMegatronSp,
  kEp,
};
std::string_view to_string(RecipeKind kind);  // "megatron-sp"

// `RecipePart` is one recipe with its mesh dims.
struct RecipePart {
  RecipeKind kind = RecipeKind::kDdp;
  std::vector<std::string> dims;  // mesh dims; empty: by position
  friend bool operator==(const RecipePart&, const RecipePart&) = default;
};

struct Recipe {
  std::vector<RecipePart> parts;  // never empty

  // Error: kInvalidArgument.
  static Result<Recipe> parse(std::string_view text);
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

// Prints the recipe; the text parses back.
std::string to_string(const Recipe& recipe);

// Returns the recipe with every mesh dim larger than 1 assigned to a part by
// name. Error: kInvalidArgument (an unknown mesh dim, a dim claimed by two
// recipes, or a recipe with no dim left).
Result<Recipe> on_mesh(const Recipe& recipe, const DeviceMesh& mesh);

// Returns the recipes that are worth comparing on a mesh, by name. If
// `has_experts`, expert parallelism is included.
std::vector<Recipe> recipes_for(const DeviceMesh& mesh, bool has_experts);

}  // namespace shardprop
