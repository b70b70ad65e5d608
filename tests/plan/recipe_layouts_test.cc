// RecipeLayouts applies a recipe to a graph: which factor of an operator each
// mesh dim shards, and how inputs are stored.
#include "plan/problem/constraints/recipe_layouts.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// A recipe on the graph of `problem`.
class AppliedRecipe {
 public:
  AppliedRecipe(const PlanProblem& problem, const char* text)
      : problem_(problem),
        recipe_(
            value_of(on_mesh(value_of(Recipe::parse(text)), problem.mesh()))),
        layouts_(recipe_, problem.graph(), problem.mesh(), problem.roles()) {}

  const RecipeLayouts& operator*() const { return layouts_; }
  const Node& node(const char* name) const {
    return problem_.graph().node(*problem_.graph().find_node(name));
  }
  std::string stored(const char* name) const {
    for (const GraphInput& input : problem_.graph().inputs()) {
      if (problem_.graph().value(input.value).name != name) continue;
      const auto layout = layouts_.stored(input);
      return layout ? to_string(*layout) : "free";
    }
    return "none";
  }
  // Returns the layouts of an operand in the choices that follow the recipe.
  std::vector<std::string> granted_layouts(const char* name,
                                           std::size_t operand) const {
    const ChoiceSet& set = *problem_.choices_of(node(name).id);
    std::vector<std::string> out;
    for (const std::uint32_t c :
         granted(set, problem_.layouts(), layouts_.wish(node(name)),
                 layouts_.order())) {
      const std::string text =
          to_string(problem_.layouts()[set.layout(c, operand)]);
      if (std::find(out.begin(), out.end(), text) == out.end()) {
        out.push_back(text);
      }
    }
    return out;
  }

 private:
  const PlanProblem& problem_;
  Recipe recipe_;
  RecipeLayouts layouts_;
};

PlanProblem mlp_problem(const Graph& graph, const char* mesh = "dp=2,tp=2") {
  return value_of(PlanProblem::create(
      graph, value_of(DeviceMesh::parse(mesh)), default_topology(),
      testing::standard_library(), PlanOptions{}));
}

using Texts = std::vector<std::string>;

TEST_CASE("ddp replicates parameters, and fsdp stores them in shards") {
  const Graph graph = test::mlp(testing::standard_library());
  const PlanProblem problem = mlp_problem(graph);
  const AppliedRecipe ddp(problem, "ddp=dp:tp");
  CHECK(ddp.stored("w1") == "R,R");
  CHECK(ddp.stored("x") == "S(0),S(0)");
  CHECK(ddp.granted_layouts("up", 0) == Texts{"S(0),S(0)"});
  CHECK(ddp.granted_layouts("up", 1) == Texts{"R,R"});
  const AppliedRecipe fsdp(problem, "fsdp=dp:tp");
  CHECK(fsdp.stored("w1") == "S(0),S(0)");
  CHECK(fsdp.stored("x") == "S(0),S(0)");
  // The computation is that of ddp.
  CHECK(fsdp.granted_layouts("up", 1) == Texts{"R,R"});
  // hsdp has replicas over the first mesh dim.
  CHECK(AppliedRecipe(problem, "hsdp=dp:tp").stored("w1") == "R,S(0)");
}

TEST_CASE("megatron shards the first matmul by columns, the next by rows") {
  const Graph graph = test::mlp(testing::standard_library());
  const PlanProblem problem = mlp_problem(graph);
  const AppliedRecipe recipe(problem, "ddp=dp,megatron=tp");
  CHECK(recipe.stored("w1") == "R,S(1)");
  CHECK(recipe.stored("w2") == "R,S(0)");
  CHECK(recipe.granted_layouts("up", 1) == Texts{"R,S(1)"});
  CHECK(recipe.granted_layouts("up", 2) == Texts{"S(0),S(1)"});
  CHECK(recipe.granted_layouts("act", 0) == Texts{"S(0),S(1)"});
  CHECK(recipe.granted_layouts("down", 1) == Texts{"R,S(0)"});
  CHECK(recipe.granted_layouts("down", 2) == Texts{"S(0),P(sum)"});
  // Tensor parallelism is granted first, and shards a parameter first.
  const auto order = (*recipe).order();
  CHECK(std::vector<int>(order.begin(), order.end()) == std::vector<int>{1, 0});
  const AppliedRecipe both(problem, "fsdp=dp,megatron=tp");
  CHECK(both.stored("w1") == "S(0),S(1)");
  CHECK(both.stored("w2") == "S(0)@1,S(0)@0");
}

TEST_CASE("a parameter too small for another shard is stored in fewer") {
  const Graph graph = test::mlp(testing::standard_library());
  // w1 has 32 rows, and 128 columns.
  const PlanProblem problem = mlp_problem(graph, "dp=64,tp=2");
  CHECK(AppliedRecipe(problem, "fsdp=dp,megatron=tp").stored("w1") ==
        "S(1)@1,S(1)@0");
  const PlanProblem wide = mlp_problem(graph, "dp=256");
  CHECK(AppliedRecipe(wide, "fsdp=dp").stored("w1") == "R");
}

TEST_CASE("a wish that no choice grants leaves all choices") {
  const Graph graph = test::mlp(testing::standard_library());
  const PlanProblem problem = mlp_problem(graph);
  const ChoiceSet& set = *problem.choices_of(*graph.find_node("up"));
  const std::vector<int> order{0, 1};
  NodeWish wish(2);
  CHECK(granted(set, problem.layouts(), wish, order).size() == set.size());
  wish[0] = {DimWish::Kind::kFactor, {FactorId{99}}};
  CHECK(granted(set, problem.layouts(), wish, order).size() == set.size());
  // The next factor in order of preference counts instead.
  wish[0].factors.push_back(FactorId{0});
  const auto kept = granted(set, problem.layouts(), wish, order);
  REQUIRE(!kept.empty());
  CHECK(kept.size() < set.size());
  for (const std::uint32_t c : kept) {
    CHECK(set.op.strategies[c].assignment[0] == 0);
  }
  wish[1].kind = DimWish::Kind::kNothing;
  for (const std::uint32_t c : granted(set, problem.layouts(), wish, order)) {
    const auto target = set.op.strategies[c].assignment[1];
    CHECK((target == kUnassigned ||
           static_cast<std::size_t>(target) >= set.op.space->factors.size()));
  }
}

TEST_CASE("megatron-sp shards tokens between the pairs, megatron does not") {
  const Graph graph =
      value_of(load_graph("examples/graphs/tiny/llama3_train.json.gz",
                          testing::standard_library()));
  const PlanProblem problem = mlp_problem(graph, "tp=2");
  const AppliedRecipe plain(problem, "megatron=tp");
  const AppliedRecipe tokens(problem, "megatron-sp=tp");
  int between = 0;
  for (const Node& node : graph.nodes()) {
    if (problem.choices_of(node.id) == nullptr) continue;
    const DimWish wish = (*plain).wish(node)[0];
    if (wish.kind != DimWish::Kind::kNothing) {
      CHECK((*tokens).wish(node)[0] == wish);
      continue;
    }
    const DimWish by_tokens = (*tokens).wish(node)[0];
    CHECK(by_tokens.kind != DimWish::Kind::kNothing);
    between += by_tokens.kind == DimWish::Kind::kFactor ? 1 : 0;
  }
  CHECK(between > 0);
}

TEST_CASE("mesh dims with one purpose are joined in the space of a recipe") {
  const DeviceMesh mesh = value_of(DeviceMesh::parse("a=2,b=2,c=2"));
  const auto recipe = [&](const char* text) {
    return value_of(on_mesh(value_of(Recipe::parse(text)), mesh));
  };
  CHECK(joined_dims(recipe("fsdp=a:b:c"), mesh) == 0b110);
  CHECK(joined_dims(recipe("fsdp=a:b,megatron=c"), mesh) == 0b010);
  CHECK(joined_dims(recipe("hsdp=a:b,megatron=c"), mesh) == 0);
  CHECK(is_in_space(recipe("fsdp=a:b:c"), mesh, {1, 0b110}));
  CHECK(is_in_space(recipe("fsdp=a:b,megatron=c"), mesh, {2, 0b010}));
  CHECK_FALSE(is_in_space(recipe("fsdp=a:b,megatron=c"), mesh, {1}));
  CHECK_FALSE(is_in_space(recipe("fsdp=a,megatron=b:c"), mesh, {2, 0b010}));
  CHECK(is_in_space(recipe("hsdp=a:b,megatron=c"), mesh, {}));
}

}  // namespace
}  // namespace shardprop
