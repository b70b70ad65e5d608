// Programs as PyTorch reads them, read back by ourselves. PyTorch reads and
// runs them in tests/torch/test_emitted_programs.py.
#include "plan/small_graphs.h"
#include "support/dear_topology.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/graph/graph_builder.h>
#include <shardprop/io/emit_program.h>
#include <shardprop/io/load_graph.h>
#include <shardprop/lower/lower.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/program/footprint.h>
#include <shardprop/program/rank_program.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string>

namespace shardprop {
namespace {

using testing::standard_library;
using testing::value_of;

SpmdProgram lowered(const char* graph, const char* mesh,
                    Optimizer optimizer = Optimizer::kNone) {
  const OpLibrary& library = standard_library();
  const Graph read = value_of(load_graph(
      "examples/graphs/tiny/" + std::string(graph) + ".json.gz", library));
  PlanOptions options;
  options.optimizer = optimizer;
  options.work_limit = 20'000'000;
  const Plan plan =
      value_of(make_plan(read, value_of(DeviceMesh::parse(mesh)),
                         testing::dear_compute(), library, options));
  return value_of(lower(plan, read, library));
}

// Every rank's program is a graph whose inputs and outputs are the rank's.
TEST_CASE("programs of all ranks are read back with local shapes") {
  for (const char* graph : {"llama3_infer", "vit_infer", "mixtral_infer"}) {
    CAPTURE(graph);
    const SpmdProgram program = lowered(graph, "a=2,b=2");
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      const std::string bytes = value_of(
          emit_program(program, standard_library(), rank, EmitFormat::kPt2));
      const Graph read =
          value_of(read_graph(bytes, "rank", standard_library()));
      CHECK(read.inputs().size() == program.inputs.size());
      CHECK(read.outputs().size() == program.outputs.size());
      for (const ProgramInput& input : program.inputs) {
        const std::string& name = program.value(input.value).name;
        CAPTURE(name);
        const auto found = std::find_if(
            read.inputs().begin(), read.inputs().end(),
            [&](const GraphInput& one) {
              const std::string& own = read.value(one.value).display_name();
              return own == name || read.value(one.value).name == name;
            });
        const bool named = found != read.inputs().end();
        if (!named) continue;  // names that are no identifiers
        CHECK(read.value(found->value).meta.shape() ==
              local_shape(program, input.value,
                          program.mesh.coordinate_at_index(rank)));
      }
    }
  }
}

TEST_CASE("collectives stand there as often as planned, each with its copy") {
  const SpmdProgram program = lowered("llama3_train", "tp=3");
  const auto json = nlohmann::json::parse(
      value_of(exported_program_json(program, standard_library(), 2)));
  const ProgramTraffic sent = traffic(program);
  std::int64_t planned = 0;
  for (const CollectiveKind kind : kAllCollectiveKinds) {
    if (kind != CollectiveKind::kSlice) {
      planned += sent.collectives[static_cast<std::size_t>(kind)];
    }
  }
  std::int64_t collectives = 0;
  std::int64_t waits = 0;
  for (const auto& node : json["graph_module"]["graph"]["nodes"]) {
    const std::string target = node["target"];
    if (target.find("_c10d_functional") == std::string::npos) continue;
    if (target.find("wait_tensor") != std::string::npos) {
      ++waits;
      continue;
    }
    ++collectives;
    const auto custom =
        nlohmann::json::parse(node["metadata"]["custom"].get<std::string>());
    CHECK(custom["shardprop"].contains("node"));
    CHECK(node["inputs"].back()["arg"]["as_string"] == "shardprop_tp");
  }
  CHECK(collectives == planned);
  CHECK(waits == planned);
  CHECK(planned > 10);
}

TEST_CASE("the same program makes the same bytes in either form") {
  const SpmdProgram program = lowered("mlp_dynamic", "2");
  for (const EmitFormat format : {EmitFormat::kPt2, EmitFormat::kJsonGz}) {
    CHECK(value_of(emit_program(program, standard_library(), 1, format)) ==
          value_of(emit_program(program, standard_library(), 1, format)));
  }
  CHECK_CODE(emit_program(program, standard_library(), 2, EmitFormat::kPt2),
             ErrorCode::kMeshCoordinate);
  CHECK_CODE(exported_program_json(program, standard_library(), -1),
             ErrorCode::kMeshCoordinate);
}

// The operators that a rank runs, without their prefix `torch.ops.`.
std::set<std::string> operators_of(const SpmdProgram& program,
                                   std::int64_t rank) {
  const auto json = nlohmann::json::parse(
      value_of(exported_program_json(program, standard_library(), rank)));
  std::set<std::string> out;
  for (const auto& node : json["graph_module"]["graph"]["nodes"]) {
    out.insert(node["target"].get<std::string>().substr(10));
  }
  return out;
}

SpmdProgram lowered(const Graph& graph, const char* mesh, const char* pin) {
  PlanOptions options;
  options.optimizer = Optimizer::kNone;
  options.pins.push_back(value_of(Pin::parse(pin)));
  const Plan plan =
      value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                         testing::dear_compute(), standard_library(), options));
  return value_of(lower(plan, graph, standard_library()));
}

ValueId value_of_cache(const Graph& graph) {
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind == InputKind::kBuffer) return input.value;
  }
  return {};
}

TEST_CASE("a cache that is updated is written by the in-place overload") {
  const Graph graph = test::decoding(standard_library(), true, false);
  const std::set<std::string> one =
      operators_of(lowered(graph, "1", "cache=R"), 0);
  CHECK(one.contains("aten.index_copy_.default"));
  CHECK_FALSE(one.contains("aten.index_copy.default"));
  // Read back, the write is the update of the buffer.
  const Graph read = value_of(read_graph(
      value_of(emit_program(lowered(graph, "1", "cache=R"), standard_library(),
                            0, EmitFormat::kPt2)),
      "rank", standard_library()));
  CHECK(read.outputs().size() == 2);
  CHECK(read.update_of(value_of_cache(read)).has_value());
  // The program of sharded rows makes the new shard, which is copied into the old one.
  const std::set<std::string> rows =
      operators_of(lowered(graph, "2", "next=S(0)"), 1);
  CHECK(rows.contains("aten.copy_.default"));
  // No operator may write a buffer that is read again or is not updated.
  for (const bool is_updated : {false, true}) {
    const Graph kept = test::decoding(standard_library(), is_updated, true);
    const std::set<std::string> all =
        operators_of(lowered(kept, "1", "cache=R"), 0);
    CHECK(all.contains("aten.index_copy.default"));
    CHECK_FALSE(all.contains("aten.index_copy_.default"));
  }
}

TEST_CASE(
    "rows that are written into an updated buffer are copied into a view") {
  GraphBuilder b("rows", standard_library());
  const ValueId cache =
      test::add_input(b, InputKind::kBuffer, "cache", "f32[8,4]");
  const ValueId x = test::add_input(b, InputKind::kUser, "x", "f32[2,4]");
  const ValueId next = test::add_op(b, "aten.slice_scatter.default",
                                    {{"", TensorArg{0}},
                                     {"", TensorArg{1}},
                                     {"dim", std::int64_t{0}},
                                     {"start", std::int64_t{3}},
                                     {"end", std::int64_t{5}}},
                                    {cache, x}, "next");
  const ValueId y =
      test::add_op(b, "aten.neg.default", {{"", TensorArg{0}}}, {next}, "y");
  b.add_output({.value = y});
  b.add_output({.value = next, .kind = OutputKind::kUpdate, .target = cache});
  const Graph graph = value_of(std::move(b).build());
  const std::set<std::string> all =
      operators_of(lowered(graph, "1", "cache=R"), 0);
  CHECK(all.contains("aten.slice.Tensor"));
  CHECK(all.contains("aten.copy_.default"));
  CHECK_FALSE(all.contains("aten.slice_scatter.default"));
}

// The kinds of device that a program names, in metas and in arguments.
std::set<std::string> devices_of(const nlohmann::json& json) {
  std::set<std::string> kinds;
  for (const auto& [key, value] : json.items()) {
    if (value.is_structured()) kinds.merge(devices_of(value));
    if (key != "device" && key != "as_device") continue;
    if (value.contains("type")) kinds.insert(value["type"]);
  }
  return kinds;
}

// Returns whether every `full` node has a device argument.
bool all_placed(const nlohmann::json& program) {
  const auto& nodes = program["graph_module"]["graph"]["nodes"];
  return std::all_of(nodes.begin(), nodes.end(), [](const auto& node) {
    const auto& inputs = node["inputs"];
    return node["target"] != "torch.ops.aten.full.default" ||
           std::any_of(inputs.begin(), inputs.end(), [](const auto& input) {
             return input["name"] == "device";
           });
  });
}

// The cumsum of sharded rows names no device. Its local program creates the
// totals of the ranks before.
TEST_CASE("what a program makes itself lies where the graph's tensors do") {
  const OpLibrary& library = standard_library();
  for (const std::string device : {"cpu", "cuda"}) {
    CAPTURE(device);
    GraphBuilder b("totals", library);
    if (device != "cpu") b.set_device(device);
    const ValueId x = value_of(b.add_input(
        {.name = "x", .meta = value_of(TensorMeta::parse("f32[37,10]"))}));
    const auto totals = value_of(b.add_op(
        "aten.cumsum.default",
        {{"self", TensorArg{0}}, {"dim", std::int64_t{0}}}, {x}, "totals"));
    b.add_output({.value = totals.front()});
    const Graph graph = value_of(std::move(b).build());
    PlanOptions options;
    options.pins = {value_of(Pin::parse("x=S(0)")),
                    value_of(Pin::parse("totals=S(0)"))};
    const Plan plan =
        value_of(make_plan(graph, value_of(DeviceMesh::parse("3")),
                           default_topology(), library, options));
    REQUIRE(!plan.nodes.front().inside.empty());
    const SpmdProgram program = value_of(lower(plan, graph, library));
    CHECK(program.device == device);
    for (const std::int64_t rank : {0, 2}) {
      const auto json = nlohmann::json::parse(
          value_of(exported_program_json(program, library, rank)));
      CHECK(all_placed(json));
      CHECK(devices_of(json) == std::set<std::string>{device});
    }
  }
}

TEST_CASE("shardings say who holds what") {
  const SpmdProgram program = lowered("llama3_train", "a=2,b=2");
  const auto json = nlohmann::json::parse(
      value_of(shardings_json(program, standard_library())));
  CHECK(json["schema"] == "shardprop.shardings/1");
  CHECK(json["inputs"].size() == program.inputs.size());
  CHECK(json["outputs"].size() == program.outputs.size());
  REQUIRE(!json["groups"].empty());
  for (const auto& group : json["groups"]) {
    std::string name = "shardprop";
    for (const std::string dim : group["mesh_dims"]) name += "_" + dim;
    CHECK(group["name"] == name);
    std::size_t ranks = 0;
    for (const auto& one : group["ranks"]) ranks += one.size();
    CHECK(ranks == 4);
  }
  for (const auto& input : json["inputs"]) {
    const std::size_t shapes = input["local_shapes"].size();
    CHECK((shapes == 1 || shapes == 4));
    CHECK(input["placements"].size() == 2);
  }
}

}  // namespace
}  // namespace shardprop
