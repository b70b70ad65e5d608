// Recipes: their notation, what they make of a mesh, and that they lay out
// parameters and products as their names say.
#include <shardprop/plan/recipe.h>

#include "support/result_checks.h"
#include "support/sanitizers.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

std::string on(const char* recipe, const char* mesh) {
  return to_string(value_of(on_mesh(value_of(Recipe::parse(recipe)),
                                    value_of(DeviceMesh::parse(mesh)))));
}

TEST_CASE("recipes print as they are read") {
  for (const char* text :
       {"ddp", "fsdp=dp", "hsdp=dp:tp", "fsdp=dp,megatron=tp",
        "ddp=a:b,megatron-sp=c", "fsdp=dp,ep=dp"}) {
    CHECK(to_string(value_of(Recipe::parse(text))) == text);
  }
}

TEST_CASE("malformed recipes are rejected") {
  const auto wrong = Recipe::parse("fsdq=dp");
  CHECK_CODE(wrong, ErrorCode::kInvalidArgument);
  CHECK(wrong.error().help == "did you mean `fsdp`?");
  const auto pipeline = Recipe::parse("pp=dp");
  CHECK_CODE(pipeline, ErrorCode::kInvalidArgument);
  CHECK(pipeline.error().message ==
        "`pp` is not a recipe: pipelines are not planned");
  CHECK(pipeline.error().help.find("did you mean") == std::string::npos);
  CHECK_CODE(Recipe::parse(""), ErrorCode::kInvalidArgument);
  CHECK_CODE(Recipe::parse("fsdp="), ErrorCode::kInvalidArgument);
  CHECK_CODE(Recipe::parse("hsdp=dp"), ErrorCode::kInvalidArgument);
  const DeviceMesh mesh = value_of(DeviceMesh::parse("dp=2,tp=2"));
  for (const char* text : {"fsdp=pp", "fsdp=dp,megatron=dp"}) {
    CHECK_CODE(on_mesh(value_of(Recipe::parse(text)), mesh),
               ErrorCode::kInvalidArgument);
  }
  CHECK_CODE(on_mesh(value_of(Recipe::parse("hsdp")),
                     value_of(DeviceMesh::parse("dp=8"))),
             ErrorCode::kInvalidArgument);
}

TEST_CASE("dims are given by position: the last to megatron, others to data") {
  CHECK(on("fsdp", "dp=8") == "fsdp=dp");
  CHECK(on("fsdp", "dp=8,tp=8") == "fsdp=dp:tp");
  CHECK(on("hsdp", "dp=8,tp=8") == "hsdp=dp:tp");
  CHECK(on("megatron", "dp=8,tp=8") == "ddp=dp,megatron=tp");
  CHECK(on("fsdp,megatron-sp", "a=2,b=2,c=2") == "fsdp=a:b,megatron-sp=c");
  CHECK(on("megatron=dp", "dp=8,tp=8") == "ddp=tp,megatron=dp");
  CHECK(on("fsdp,ep", "dp=8,tp=8") == "fsdp=dp:tp,ep=tp");
  CHECK(on("fsdp", "dp=8,tp=1") == "fsdp=dp");
}

TEST_CASE("recipes worth comparing are those of the mesh") {
  const auto names = [](const char* mesh, bool experts) {
    std::vector<std::string> out;
    for (const Recipe& recipe :
         recipes_for(value_of(DeviceMesh::parse(mesh)), experts)) {
      out.push_back(to_string(recipe));
    }
    return out;
  };
  CHECK(names("1", false).empty());
  CHECK(names("tp=8", false) == std::vector<std::string>{"ddp=tp", "fsdp=tp",
                                                         "megatron=tp",
                                                         "megatron-sp=tp"});
  CHECK(names("dp=8,tp=8", true).back() == "fsdp=dp:tp,ep=tp");
}

// How a parameter of Llama lies, and how the forward products take it and make
// their result, on dp=8,tp=8.
struct Row {
  const char* weight;
  const char* stored;
  const char* read;      // transposed: [in, out]
  const char* produced;  // [tokens, out]
};

struct Expected {
  const char* recipe;
  const char* embedding;
  const char* norm;
  Row head;
  std::vector<Row> rows;
};

const Expected kExpected[] = {
    {"fsdp",
     "S(0),S(0)",
     "S(0),S(0)",
     {"lm_head", "S(0),S(0)", "R,R", "S(0),S(0)"},
     {{"self_attn.q_proj", "S(0),S(0)", "R,R", "S(0),S(0)"},
      {"self_attn.k_proj", "S(0),S(0)", "R,R", "S(0),S(0)"},
      {"self_attn.v_proj", "S(0),S(0)", "R,R", "S(0),S(0)"},
      {"self_attn.o_proj", "S(0),S(0)", "R,R", "S(0),S(0)"},
      {"mlp.gate_proj", "S(0),S(0)", "R,R", "S(0),S(0)"},
      {"mlp.up_proj", "S(0),S(0)", "R,R", "S(0),S(0)"},
      {"mlp.down_proj", "S(0),S(0)", "R,R", "S(0),S(0)"}}},
    {"hsdp",
     "R,S(0)",
     "R,S(0)",
     {"lm_head", "R,S(0)", "R,R", "S(0),S(0)"},
     {{"self_attn.q_proj", "R,S(0)", "R,R", "S(0),S(0)"},
      {"self_attn.k_proj", "R,S(0)", "R,R", "S(0),S(0)"},
      {"self_attn.v_proj", "R,S(0)", "R,R", "S(0),S(0)"},
      {"self_attn.o_proj", "R,S(0)", "R,R", "S(0),S(0)"},
      {"mlp.gate_proj", "R,S(0)", "R,R", "S(0),S(0)"},
      {"mlp.up_proj", "R,S(0)", "R,R", "S(0),S(0)"},
      {"mlp.down_proj", "R,S(0)", "R,R", "S(0),S(0)"}}},
    {"megatron",
     "R,S(0)",
     "R,R",
     {"lm_head", "R,S(0)", "R,S(1)", "S(0),S(1)"},
     {{"self_attn.q_proj", "R,S(0)", "R,S(1)", "S(0),S(1)"},
      {"self_attn.k_proj", "R,S(0)", "R,S(1)", "S(0),S(1)"},
      {"self_attn.v_proj", "R,S(0)", "R,S(1)", "S(0),S(1)"},
      {"self_attn.o_proj", "R,S(1)", "R,S(0)", "S(0),P(sum)"},
      {"mlp.gate_proj", "R,S(0)", "R,S(1)", "S(0),S(1)"},
      {"mlp.up_proj", "R,S(0)", "R,S(1)", "S(0),S(1)"},
      {"mlp.down_proj", "R,S(1)", "R,S(0)", "S(0),P(sum)"}}},
    {"fsdp=dp,megatron=tp",
     "S(0)@1,S(0)@0",
     "S(0),R",
     {"lm_head", "S(0)@1,S(0)@0", "R,S(1)", "S(0),S(1)"},
     {{"self_attn.q_proj", "S(0)@1,S(0)@0", "R,S(1)", "S(0),S(1)"},
      {"self_attn.k_proj", "S(0)@1,S(0)@0", "R,S(1)", "S(0),S(1)"},
      {"self_attn.v_proj", "S(0)@1,S(0)@0", "R,S(1)", "S(0),S(1)"},
      {"self_attn.o_proj", "S(0),S(1)", "R,S(0)", "S(0),P(sum)"},
      {"mlp.gate_proj", "S(0)@1,S(0)@0", "R,S(1)", "S(0),S(1)"},
      {"mlp.up_proj", "S(0)@1,S(0)@0", "R,S(1)", "S(0),S(1)"},
      {"mlp.down_proj", "S(0),S(1)", "R,S(0)", "S(0),P(sum)"}}},
};

Plan planned(const Graph& graph, const OpLibrary& library, const char* mesh,
             const char* recipe) {
  PlanOptions options;
  if (recipe != nullptr) options.recipe = value_of(Recipe::parse(recipe));
  options.optimizer = Optimizer::kAdamW;
  options.time_limit_seconds = 1e6;
  options.work_limit = 2'000'000'000;
  return value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                            default_topology(), library, options));
}

std::map<std::string, std::string> stored(const Plan& plan) {
  std::map<std::string, std::string> out;
  for (const PlannedValue& value : plan.values) {
    out[value.name] = to_string(value.tensor.layout);
  }
  return out;
}

void check_layouts(const Plan& plan, const Expected& expected) {
  const auto lies = stored(plan);
  CHECK(lies.at("model.embed_tokens.weight") == expected.embedding);
  CHECK(lies.at("model.norm.weight") == expected.norm);
  CHECK(lies.at("input_ids") != "R,R");
  std::map<std::string, const PlannedNode*> products;
  for (const PlannedNode& node : plan.nodes) {
    if (node.phase == Phase::kForward && node.op == "aten.mm.default") {
      products[node.module_path] = &node;
    }
  }
  const auto check_row = [&](const std::string& prefix, const Row& row) {
    CAPTURE(prefix + row.weight);
    CHECK(lies.at(prefix + row.weight + ".weight") == row.stored);
    const PlannedNode& product = *products.at(prefix + row.weight);
    CHECK(to_string(product.inputs[1].layout) == row.read);
    CHECK(to_string(product.outputs[0].tensor.layout) == row.produced);
  };
  check_row("", expected.head);
  CHECK(products.size() == 1 + 32 * expected.rows.size());
  for (int layer = 0; layer < 32; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    CHECK(lies.at(prefix + "input_layernorm.weight") == expected.norm);
    CHECK(lies.at(prefix + "post_attention_layernorm.weight") == expected.norm);
    for (const Row& row : expected.rows) check_row(prefix, row);
  }
}

TEST_CASE(
    "recipes of Llama 3 8B give their layouts and cost more than a plan") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph =
      value_of(load_graph("examples/graphs/llama3_8b_train.json.gz", library));
  const Plan best = planned(graph, library, "dp=8,tp=8", nullptr);
  for (const Expected& expected : kExpected) {
    CAPTURE(std::string(expected.recipe));
    const Plan plan = planned(graph, library, "dp=8,tp=8", expected.recipe);
    REQUIRE(plan.has_plan());
    check_layouts(plan, expected);
    CHECK(*plan.objective_nanoseconds >= *best.objective_nanoseconds);
    MESSAGE(std::string(expected.recipe)
            << " " << *plan.objective_nanoseconds << " ns, best "
            << *best.objective_nanoseconds << " ns");
  }
}

TEST_CASE("a reason that is the recipe's names the recipe") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = value_of(
      load_graph("examples/graphs/tiny/llama3_train.json.gz", library));
  PlanOptions options;
  options.recipe = value_of(Recipe::parse("fsdp"));
  const Plan plan =
      value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=2,tp=2")),
                         default_topology(), library, options));
  int named = 0;
  for (const PlannedCopy& copy : plan.copies) {
    if (copy.reason.cause != CopyCause::kRecipe) continue;
    ++named;
    CHECK(copy.reason.recipe == value_of(Recipe::parse("fsdp=dp:tp")));
  }
  CHECK(named > 0);
}

// The rows that embedding.backward adds up lie as the table does: of the 128,256
// rows each rank of tp has its own.
TEST_CASE("Megatron shards the gradient of the vocabulary's table") {
  const OpLibrary& library = testing::standard_library();
  for (const char* name : {"tiny/llama3_train", "llama3_8b_train"}) {
    if (testing::kThreadSanitizer) break;
    CAPTURE(std::string(name));
    const Graph graph = value_of(load_graph(
        std::string("examples/graphs/") + name + ".json.gz", library));
    for (const char* recipe :
         {"megatron", "megatron-sp", "fsdp=dp,megatron-sp=tp"}) {
      CAPTURE(std::string(recipe));
      const Plan plan = planned(graph, library, "dp=2,tp=2", recipe);
      REQUIRE(plan.has_plan());
      int tables = 0;
      for (const PlannedNode& node : plan.nodes) {
        if (node.op.find("index_put") == std::string::npos) continue;
        ++tables;
        CHECK(to_string(node.inputs[0].layout) == "P(sum),S(0)");
        CHECK(to_string(node.outputs[0].tensor.layout) == "P(sum),S(0)");
      }
      CHECK(tables == 1);
    }
  }
}

// Parameters in bf16 and f32, gradients, AdamW's two moments: all on every rank.
TEST_CASE("Llama 3 8B does not fit 80 GiB with data parallel alone") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph =
      value_of(load_graph("examples/graphs/llama3_8b_train.json.gz", library));
  for (const char* mesh : {"dp=8", "dp=8,tp=8"}) {
    CAPTURE(std::string(mesh));
    PlanOptions options;
    options.recipe = value_of(Recipe::parse("ddp"));
    options.optimizer = Optimizer::kAdamW;
    options.precision = Precision::kMixed;
    options.memory_limit = std::int64_t{80} << 30;
    const Plan plan =
        value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                           default_topology(), library, options));
    CHECK(plan.status == PlanStatus::kInfeasible);
    const double gib =
        static_cast<double>(plan.memory.peak_bytes) / (std::int64_t{1} << 30);
    MESSAGE(mesh << ": " << gib << " GiB");
    // The plan that comes nearest to the limit; 119.7 GiB are f32 parameters,
    // gradients and moments.
    CHECK(gib == doctest::Approx(123.6).epsilon(0.001));
    REQUIRE(!plan.conflict.memory.empty());
    CHECK(plan.conflict.memory[0].bytes_short > 0);
  }
}

// The patches' convolution makes the stream, which the norms need whole.
TEST_CASE("ViT on tp=4 has the pairs of attention and of the MLP") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph =
      value_of(load_graph("examples/graphs/vit_b16_infer.json.gz", library));
  const Plan plan = planned(graph, library, "tp=4", "megatron");
  REQUIRE(plan.has_plan());
  const auto lies = stored(plan);
  const std::string patches = "vit.embeddings.patch_embeddings.projection.";
  CHECK(lies.at(patches + "weight") == "R");
  constexpr int kLayers = 12;
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = "vit.layers." + std::to_string(layer) + ".";
    CAPTURE(prefix);
    for (const char* first : {"attention.q_proj", "attention.k_proj",
                              "attention.v_proj", "mlp.fc1"}) {
      CHECK(lies.at(prefix + first + ".weight") == "S(0)");
      CHECK(lies.at(prefix + first + ".bias") == "S(0)");
    }
    for (const char* second : {"attention.o_proj", "mlp.fc2"}) {
      CHECK(lies.at(prefix + second + ".weight") == "S(1)");
    }
    for (const char* norm : {"layernorm_before", "layernorm_after"}) {
      CHECK(lies.at(prefix + norm + ".weight") == "R");
    }
  }
  const auto reduced = static_cast<std::size_t>(CollectiveKind::kAllReduce);
  CHECK(plan.summary.collectives[reduced] == 2 * kLayers);
  for (const PlannedNode& node : plan.nodes) {
    if (node.op.find("attention") == std::string::npos) continue;
    CHECK(to_string(node.inputs[0].layout) == "S(1)");
  }
}

TEST_CASE("every recipe of every mesh is planned, and none beats the optimum") {
  const OpLibrary& library = testing::standard_library();
  for (const char* name : {"llama3_train", "gpt2_train", "mixtral_infer",
                           "vit_infer", "t5_train", "mlp_dynamic"}) {
    if (testing::kThreadSanitizer && name != std::string_view("mlp_dynamic")) {
      continue;
    }
    const Graph graph = value_of(load_graph(
        std::string("examples/graphs/tiny/") + name + ".json.gz", library));
    for (const char* mesh : {"2", "2,2"}) {
      CAPTURE(std::string(name));
      CAPTURE(std::string(mesh));
      PlanOptions options;
      options.compare = true;
      options.time_limit_seconds = 1e6;
      options.work_limit = 50'000'000;
      const Plan plan =
          value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                             default_topology(), library, options));
      REQUIRE(plan.has_plan());
      CHECK(plan.recipes.size() >= 4);
      for (const PlanRecipe& recipe : plan.recipes) {
        CAPTURE(recipe.name);
        REQUIRE(recipe.objective_nanoseconds.has_value());
        CHECK(*recipe.objective_nanoseconds >= *plan.objective_nanoseconds);
      }
    }
  }
}

TEST_CASE("experts are sharded over the mesh dim that ep names") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = value_of(
      load_graph("examples/graphs/tiny/mixtral_infer.json.gz", library));
  const auto lies = stored(planned(graph, library, "dp=2", "fsdp=dp,ep=dp"));
  for (const char* weight : {"w1", "w2", "w3"}) {
    CHECK(lies.at("model.layers.0.mlp." + std::string(weight)) == "S(0)");
  }
  const Plan plan = planned(graph, library, "dp=2", "fsdp=dp,ep=dp");
  int by_experts = 0;
  for (const PlanRole& role : plan.roles) {
    if (role.use == RoleUse::kExperts) ++by_experts;
  }
  CHECK(by_experts == 1);
}

Plan tiny_llama(const PlanOptions& options) {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = value_of(
      load_graph("examples/graphs/tiny/llama3_train.json.gz", library));
  return value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=2,tp=2")),
                            default_topology(), library, options));
}

TEST_CASE("recipes have the plan of the lone command where time runs out") {
  PlanOptions options;
  options.time_limit_seconds = 0;
  options.compare = true;
  const Plan compared = tiny_llama(options);
  options.compare = false;
  REQUIRE(compared.recipes.size() >= 4);
  for (const PlanRecipe& recipe : compared.recipes) {
    CAPTURE(recipe.name);
    options.recipe = value_of(Recipe::parse(recipe.name));
    const Plan alone = tiny_llama(options);
    CHECK(recipe.status == PlanStatus::kFeasible);
    CHECK(recipe.objective_nanoseconds == alone.objective_nanoseconds);
    CHECK(recipe.peak_bytes == alone.memory.peak_bytes);
    CHECK(*recipe.objective_nanoseconds >= *compared.objective_nanoseconds);
  }
}

TEST_CASE("beside recipes a plan keeps its options and what ended the search") {
  PlanOptions options;
  options.time_limit_seconds = 1e6;
  options.work_limit = 0;
  options.compare = true;
  const Plan plan = tiny_llama(options);
  CHECK(plan.ran_out == RanOut::kWork);
  const auto limit = std::find_if(
      plan.options.begin(), plan.options.end(),
      [](const auto& option) { return option.first == "time_limit"; });
  REQUIRE(limit != plan.options.end());
  CHECK(limit->second == "1000000");
}

TEST_CASE("a recipe that does not matter leaves a conflict reducible") {
  PlanOptions options;
  options.time_limit_seconds = 1e6;
  options.work_limit = 50'000'000;
  options.optimizer = Optimizer::kAdamW;
  options.memory_limit = 110 << 10;
  CHECK(tiny_llama(options).has_plan());
  options.recipe = value_of(Recipe::parse("ddp"));
  const Plan plan = tiny_llama(options);
  CHECK(plan.status == PlanStatus::kInfeasible);
  CHECK(plan.conflict.irreducible);
  options.memory_limit = 1024;
  const Plan less = tiny_llama(options);
  CHECK(less.status == PlanStatus::kInfeasible);
  CHECK_FALSE(less.conflict.irreducible);
}

std::int64_t parameters_in_shards(const Plan& plan, const char* mesh_dim) {
  for (const PlanRole& role : plan.roles) {
    if (role.use == RoleUse::kParameters && role.mesh_dim == mesh_dim) {
      return role.permille;
    }
  }
  return 0;
}

TEST_CASE("what products are split by is not said to lie in shards") {
  PlanOptions options;
  options.time_limit_seconds = 1e6;
  options.work_limit = 2'000'000'000;
  options.optimizer = Optimizer::kAdamW;
  options.recipe = value_of(Recipe::parse("fsdp=dp,megatron=tp"));
  const Plan plan = tiny_llama(options);
  CHECK(parameters_in_shards(plan, "dp") == 1000);
  CHECK(parameters_in_shards(plan, "tp") < 100);
}

std::vector<RoleModule> modules_of(const Plan& plan, RoleUse use) {
  for (const PlanRole& role : plan.roles) {
    if (role.use == use) return role.modules;
  }
  return {};
}

TEST_CASE("modules are named with their layers where those are cut otherwise") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = value_of(
      load_graph("examples/graphs/tiny/llama3_train.json.gz", library));
  PlanOptions options;
  options.time_limit_seconds = 1e6;
  options.recipe = value_of(Recipe::parse("megatron"));
  options.pins.push_back(value_of(
      Pin::parse("module:model.layers.1.mlp.up_proj phase:forward=S(0)")));
  const Plan plan =
      value_of(make_plan(graph, value_of(DeviceMesh::parse("tp=2")),
                         default_topology(), library, options));
  REQUIRE(plan.has_plan());
  CHECK(modules_of(plan, RoleUse::kBatch) ==
        std::vector<RoleModule>{{"model.layers.1.mlp.up_proj"}});
  const auto tensor = modules_of(plan, RoleUse::kTensor);
  const auto has = [&](const char* name) {
    return std::find(tensor.begin(), tensor.end(), RoleModule{name}) !=
           tensor.end();
  };
  CHECK(has("model.layers.0.mlp.up_proj"));
  CHECK(has("mlp.gate_proj"));
  CHECK_FALSE(has("mlp.up_proj"));
}

}  // namespace
}  // namespace shardprop
