#include <shardprop/plan/recipe.h>

#include "base/edit_distance.h"
#include "base/index.h"
#include "base/quantities.h"
#include "base/try.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shardprop {
namespace {

constexpr std::string_view kNames[] = {"ddp",      "fsdp",        "hsdp",
                                       "megatron", "megatron-sp", "ep"};

bool is_data(RecipeKind kind) {
  return kind == RecipeKind::kDdp || kind == RecipeKind::kFsdp ||
         kind == RecipeKind::kHsdp;
}
bool is_tensor(RecipeKind kind) {
  return kind == RecipeKind::kMegatron || kind == RecipeKind::kMegatronSp;
}

tl::unexpected<Error> refused(std::string message, std::string_view recipe,
                              std::string help) {
  return fail(Error{ErrorCode::kInvalidArgument,
                    std::move(message),
                    "--recipe " + std::string(recipe),
                    {},
                    std::move(help)});
}

std::vector<std::string> split(std::string_view text, char mark) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t end = std::min(text.find(mark), text.size());
    out.emplace_back(text.substr(0, end));
    if (end == text.size()) return out;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string> dims_of(const DeviceMesh& mesh) {
  std::vector<std::string> out;
  for (const MeshDim& dim : mesh.dims()) {
    if (dim.size > 1) out.push_back(dim.name);
  }
  return out;
}

// DimsLeft holds the mesh dims that the parts of a recipe have not used yet.
class DimsLeft {
 public:
  explicit DimsLeft(std::vector<std::string> dims) : dims_(std::move(dims)) {}

  bool empty() const { return dims_.empty(); }
  bool take(const std::string& dim) {
    const auto found = std::find(dims_.begin(), dims_.end(), dim);
    if (found == dims_.end()) return false;
    dims_.erase(found);
    return true;
  }
  std::vector<std::string> take_last() {
    std::vector<std::string> last{dims_.back()};
    dims_.pop_back();
    return last;
  }
  std::vector<std::string> take_all() { return std::exchange(dims_, {}); }

 private:
  std::vector<std::string> dims_;
};

bool has_dim(const DeviceMesh& mesh, const std::string& name) {
  return std::any_of(mesh.dims().begin(), mesh.dims().end(),
                     [&](const MeshDim& dim) { return dim.name == name; });
}

// Takes the mesh dims that a part names. Dims of size 1 are dropped.
Result<void> take_named(RecipePart& part, const DeviceMesh& mesh,
                        DimsLeft& left, std::string_view text) {
  std::vector<std::string> kept;
  for (const std::string& dim : part.dims) {
    if (!has_dim(mesh, dim)) {
      return refused("the mesh has no dim `" + dim + "`", text,
                     "its dims are those of " + to_string(mesh));
    }
    if (mesh.size(*mesh.find_dim(dim)) == 1) continue;
    if (part.kind != RecipeKind::kEp && !left.take(dim)) {
      return refused("two recipes claim the mesh dim `" + dim + "`", text,
                     "name each dim once; ep alone shares one with others");
    }
    kept.push_back(dim);
  }
  part.dims = std::move(kept);
  return {};
}

Recipe joined(std::initializer_list<RecipePart> parts) {
  Recipe out;
  for (const RecipePart& part : parts) out.parts.push_back(part);
  return out;
}

}  // namespace

std::string_view to_string(RecipeKind kind) {
  const auto at = index(kind);
  return at < std::size(kNames) ? kNames[at] : kNames[0];
}

Result<Recipe> Recipe::parse(std::string_view text) {
  Recipe out;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const auto* const known =
        std::find(std::begin(kNames), std::end(kNames), name);
    if (known == std::end(kNames)) {
      const std::vector<std::string_view> names(std::begin(kNames),
                                                std::end(kNames));
      constexpr std::string_view kKnown =
          "recipes are ddp, fsdp, hsdp, megatron, megatron-sp and ep, as in "
          "fsdp=dp,megatron=tp";
      if (name == "pp" || name == "pipeline") {
        return refused("`" + name +
                           "` is not a recipe: pipelines are not "
                           "planned",
                       text, std::string(kKnown));
      }
      const std::string near = did_you_mean(name, names);
      return refused(
          "`" + name + "` is not a recipe", text,
          near.starts_with("did you mean") ? near : std::string(kKnown));
    }
    RecipePart produced;
    produced.kind = static_cast<RecipeKind>(known - std::begin(kNames));
    if (equals != std::string::npos) {
      produced.dims = split(std::string_view(part).substr(equals + 1), ':');
    }
    if (std::any_of(produced.dims.begin(), produced.dims.end(),
                    [](const std::string& dim) { return dim.empty(); })) {
      return refused("`" + part + "` lacks the name of a mesh dim", text,
                     "write " + name + "=DIM, or " + name + " alone");
    }
    if (produced.kind == RecipeKind::kHsdp && !produced.dims.empty() &&
        produced.dims.size() != 2) {
      return refused("hsdp takes two mesh dims", text,
                     "write hsdp=OUTER:INNER: replicas over OUTER, shards over "
                     "INNER");
    }
    out.parts.push_back(std::move(produced));
  }
  return out;
}

std::string to_string(const Recipe& recipe) {
  std::string text;
  for (const RecipePart& part : recipe.parts) {
    if (!text.empty()) text += ',';
    text += to_string(part.kind);
    for (const std::string& dim : part.dims) {
      text += (&dim == &part.dims.front() ? '=' : ':') + dim;
    }
  }
  return text;
}

Result<Recipe> on_mesh(const Recipe& recipe, const DeviceMesh& mesh) {
  Recipe out = recipe;
  const std::string text = to_string(recipe);
  DimsLeft left(dims_of(mesh));
  for (RecipePart& part : out.parts) {
    SP_CHECK(take_named(part, mesh, left, text));
  }
  const auto unnamed = [&](std::size_t p) {
    return recipe.parts[p].dims.empty();
  };
  for (std::size_t p = 0; p < out.parts.size(); ++p) {
    if (!unnamed(p) || !is_tensor(out.parts[p].kind) || left.empty()) continue;
    out.parts[p].dims = left.take_last();
  }
  for (std::size_t p = 0; p < out.parts.size(); ++p) {
    RecipePart& part = out.parts[p];
    if (!unnamed(p) || !is_data(part.kind)) continue;
    part.dims = left.take_all();
    if (part.kind == RecipeKind::kHsdp && part.dims.size() != 2) {
      const std::size_t count = part.dims.size();
      return refused("hsdp takes two mesh dims, and " +
                         counted(count, "mesh dim") +
                         (count == 1 ? " is" : " are") + " left for it on " +
                         to_string(mesh),
                     text,
                     count < 2 ? "give it two mesh dims, or ask for fsdp"
                               : "name them: hsdp=OUTER:INNER");
    }
  }
  // Experts use the last mesh dim of data parallelism, if there is one.
  for (std::size_t p = 0; p < out.parts.size(); ++p) {
    RecipePart& part = out.parts[p];
    if (!unnamed(p) || part.kind != RecipeKind::kEp) continue;
    for (const RecipePart& other : out.parts) {
      if (is_data(other.kind) && !other.dims.empty()) {
        part.dims = {other.dims.back()};
      }
    }
    if (part.dims.empty() && !left.empty()) part.dims = left.take_last();
  }
  std::erase_if(out.parts,
                [](const RecipePart& part) { return part.dims.empty(); });
  if (!left.empty()) {
    out.parts.insert(out.parts.begin(), {RecipeKind::kDdp, left.take_all()});
  }
  return out;
}

std::vector<Recipe> recipes_for(const DeviceMesh& mesh, bool has_experts) {
  const std::vector<std::string> all = dims_of(mesh);
  std::vector<Recipe> out;
  if (all.empty()) return out;
  const std::vector<std::string> last{all.back()};
  const std::vector<std::string> first(all.begin(), all.end() - 1);
  out.push_back(joined({{RecipeKind::kDdp, all}}));
  out.push_back(joined({{RecipeKind::kFsdp, all}}));
  if (all.size() == 2) out.push_back(joined({{RecipeKind::kHsdp, all}}));
  for (const RecipeKind tensor :
       {RecipeKind::kMegatron, RecipeKind::kMegatronSp}) {
    if (first.empty()) {
      out.push_back(joined({{tensor, last}}));
      continue;
    }
    for (const RecipeKind data : {RecipeKind::kDdp, RecipeKind::kFsdp}) {
      out.push_back(joined({{data, first}, {tensor, last}}));
    }
    if (first.size() == 2) {
      out.push_back(joined({{RecipeKind::kHsdp, first}, {tensor, last}}));
    }
  }
  if (has_experts) {
    out.push_back(joined({{RecipeKind::kFsdp, all}, {RecipeKind::kEp, last}}));
  }
  return out;
}

}  // namespace shardprop
