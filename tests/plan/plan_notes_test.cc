// Notes on lost time: none is charged twice.
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

template <class Note>
std::vector<Note> notes_of_type(const std::vector<PlanNote>& notes) {
  std::vector<Note> out;
  for (const PlanNote& note : notes) {
    if (const auto* found = std::get_if<Note>(&note)) out.push_back(*found);
  }
  return out;
}

TEST_CASE("time lost to uneven heads is not attributed to a small batch too") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph =
      value_of(load_graph("examples/graphs/gpt2_124m_train.json.gz", library));
  PlanOptions options;
  options.recipe = value_of(Recipe::parse("fsdp=dp,megatron=tp"));
  options.time_limit_seconds = 1e6;
  options.work_limit = 0;
  const Plan plan =
      value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=8,tp=8")),
                         default_topology(), library, options));
  const auto heads = notes_of_type<UnevenHeadsNote>(plan.notes);
  REQUIRE(heads.size() == 1);
  CHECK(heads[0].heads == std::vector<std::int64_t>{12});
  CHECK(heads[0].mesh_dim == "tp");
  CHECK(heads[0].size == 8);
  CHECK(heads[0].lost_nanoseconds > 0);
  CHECK(notes_of_type<SmallBatchNote>(plan.notes).empty());
}

std::vector<PlanNote> notes_of(const char* path, const char* mesh,
                               const char* recipe) {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = value_of(load_graph(path, library));
  PlanOptions options;
  if (*recipe != 0) options.recipe = value_of(Recipe::parse(recipe));
  return value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                            default_topology(), library, options))
      .notes;
}

TEST_CASE("a mask for all heads is no single head") {
  const OpLibrary& library = testing::standard_library();
  GraphBuilder b("masked", library);
  const char* const heads = "bf16[4,4,16,16]";
  std::vector<ValueId> inputs;
  for (const char* name : {"query", "key", "value"}) {
    inputs.push_back(test::add_input(b, InputKind::kUser, name, heads));
  }
  inputs.push_back(
      test::add_input(b, InputKind::kUser, "mask", "bool[4,1,16,16]"));
  const ValueId out =
      test::add_op(b, "aten.scaled_dot_product_attention.default",
                   {{"", TensorArg{0}},
                    {"", TensorArg{1}},
                    {"", TensorArg{2}},
                    {"", TensorArg{3}}},
                   inputs, "attention");
  b.add_output({.value = out});
  // A launch, however it is split.
  const Plan plan = value_of(make_plan(value_of(std::move(b).build()),
                                       value_of(DeviceMesh::parse("dp=2")),
                                       default_topology(), library, {}));
  CHECK(notes_of_type<UnevenHeadsNote>(plan.notes).empty());
}

TEST_CASE("batch norm whose batch is cut sums over all ranks, and says so") {
  const char* const graph = "examples/graphs/tiny/resnet_train.json.gz";
  const auto notes =
      notes_of_type<BatchNormNote>(notes_of(graph, "dp=2", "ddp=dp"));
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].layers == 9);
  CHECK(notes[0].mesh_dims == std::vector<std::string>{"dp"});
  CHECK(notes[0].forward_nanoseconds > 0);
  CHECK(notes[0].backward_nanoseconds > 0);
  CHECK(notes_of_type<BatchNormNote>(notes_of(graph, "dp=1", "")).empty());
}

TEST_CASE("a mesh dim that is named for a pipeline gets a note") {
  const char* const graph = "examples/graphs/tiny/vit_infer.json.gz";
  CHECK(notes_of_type<PipelineDimNote>(notes_of(graph, "pp=2,dp=1", "")) ==
        std::vector<PipelineDimNote>{{"pp", 2}});
  for (const char* mesh : {"dp=2", "pp=1,dp=2"}) {
    CHECK(notes_of_type<PipelineDimNote>(notes_of(graph, mesh, "")).empty());
  }
}

}  // namespace
}  // namespace shardprop
