#include "plan/problem/build/tensor_parallel_dims.h"

#include <string>

namespace shardprop {

std::vector<std::uint32_t> tensor_parallel_dims(
    const DeviceMesh& mesh, const std::optional<Recipe>& asked) {
  std::vector<std::uint32_t> groups;
  for (int m = mesh.ndim(); m-- > 0 && groups.empty();) {
    if (mesh.size(m) > 1) groups.push_back(1U << m);
  }
  if (!asked) return groups;
  const auto recipe = on_mesh(*asked, mesh);
  if (!recipe) return groups;
  std::uint32_t of_recipe = 0;
  for (const RecipePart& part : recipe->parts) {
    if (part.kind != RecipeKind::kMegatron &&
        part.kind != RecipeKind::kMegatronSp) {
      continue;
    }
    for (const std::string& name : part.dims) {
      const auto m = mesh.find_dim(name);
      if (m && mesh.size(*m) > 1) of_recipe |= 1U << *m;
    }
  }
  if (of_recipe != 0) groups.push_back(of_recipe);
  return groups;
}

}  // namespace shardprop
