#include <doctest/doctest.h>
#include <shardprop/io/load_graph.h>

#include "io/program_fixture.h"

#include <algorithm>
#include <string>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

Graph load(const Json& json) {
  auto graph = read_json(json);
  if (!graph) FAIL(to_string(graph.error()));
  return *std::move(graph);
}

Json& nodes(Json& json) { return json["graph_module"]["graph"]["nodes"]; }
Json& tensors(Json& json) {
  return json["graph_module"]["graph"]["tensor_values"];
}

}  // namespace

TEST_CASE("a program becomes nodes, values and roles") {
  const Graph graph = load(program());
  REQUIRE(graph.nodes().size() == 7);
  const Node& mm = graph.node(*graph.find_node("mm"));
  CHECK(mm.op_name() == "aten.mm.default");
  CHECK(mm.module_path == "fc");
  CHECK(mm.module_class == "torch.nn.Linear");
  CHECK(to_string(mm.source) == "model.py:53");
  CHECK(mm.source.function == "forward");
  CHECK(mm.source.text == "return fc(x)");
  CHECK(mm.phase == Phase::kForward);
  CHECK(graph.node(*graph.find_node("mm_1")).phase == Phase::kBackward);

  const ValueId w = *graph.find_value("fc.weight");
  const ValueId n = *graph.find_value("count");
  const ValueId x = *graph.find_value("x");
  CHECK(graph.value(w).input_kind == InputKind::kParameter);
  CHECK(graph.value(n).input_kind == InputKind::kBuffer);
  CHECK(graph.value(x).input_kind == InputKind::kUser);
  CHECK_FALSE(graph.inputs()[1].persistent);
  CHECK(graph.gradient_of(w) == graph.find_value("mm_1"));
  CHECK(graph.update_of(n) == graph.find_value("add"));
  const ValueId loss = *graph.find_value("sum_1");
  REQUIRE(graph.outputs().size() > 1);
  CHECK(graph.outputs()[1].value == loss);
  CHECK(graph.outputs()[1].kind == OutputKind::kLoss);
  CHECK(graph.value(*graph.find_value("permute")).view_of == x);
}

TEST_CASE(
    "a graph lies where the first of its tensors do that is not the host's") {
  Json json = program();
  CHECK(load(json).device() == "cpu");
  tensors(json)["x"]["device"]["type"] = "meta";
  CHECK(load(json).device() == "cpu");
  tensors(json)["mm"]["device"] = {{"type", "cuda"}, {"index", 0}};
  const Graph on_gpu = load(json);
  CHECK(on_gpu.device() == "cuda");
  CHECK(on_gpu.hash() == load(program()).hash());
}

TEST_CASE("symbolic sizes carry hints, expressions and guards") {
  const Graph graph = load(program());
  const Value& x = graph.value(*graph.find_value("x"));
  REQUIRE(x.symbolic.size() == 1);
  CHECK(x.symbolic[0].dim == 0);
  CHECK(to_string(x.symbolic[0].size) == "s77");
  CHECK(x.meta.shape() == Dims{16, 8});
  REQUIRE(graph.symbols().size() == 1);
  CHECK(graph.symbols()[0].name == "s77");
  CHECK(graph.symbols()[0].hint == 16);
  CHECK(graph.symbols()[0].min == 2);
  CHECK(graph.symbols()[0].max == 64);
  const std::vector<Guard> guards(graph.guards().begin(), graph.guards().end());
  CHECK(guards == std::vector<Guard>{{"s77 == 16", "dim 0 of x"},
                                     {"s77 >= 2", "range_constraints"},
                                     {"s77 <= 64", "range_constraints"},
                                     {"L['x'].size()[0] >= 2", "guards_code"}});
  REQUIRE(graph.notes().size() == 1);
  CHECK(graph.notes()[0] ==
        ReadingNote(FixedSizeNote{"s77", "dim 0 of x", 16}));
}

TEST_CASE("a bound of a size that the example inputs fix says so") {
  const std::string text = program().dump();
  const auto read = [&](const char* name) {
    LoadOptions options;
    options.bounds = {{name, 32}};
    return read_graph(text, "test", test_library(), options);
  };
  const auto fixed = read("s77");
  REQUIRE_FALSE(fixed);
  CHECK(fixed.error().code == ErrorCode::kInvalidArgument);
  CHECK(fixed.error().message ==
        "`s77` is a size of the example inputs, not one that depends on data");
  CHECK(fixed.error().notes ==
        std::vector<std::string>{"sizes of the example inputs: s77 = 16"});
  CHECK(fixed.error().help == "set it: --size s77=32");
  const auto unknown = read("s0");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().message == "`s0` is not a size of this program");
  CHECK(unknown.error().notes == fixed.error().notes);
}

TEST_CASE("sizes computed in the program are folded, and kept as guards") {
  Json json = program();
  Json product = node("mul", "_operator.mul",
                      {{"a", {{"as_sym_int", {{"as_name", "sym_size_int"}}}}},
                       {"b", {{"as_int", 4}}}});
  product["outputs"] = Json::array({{{"as_sym_int", {{"as_name", "mul"}}}}});
  json["graph_module"]["graph"]["sym_int_values"]["mul"] = {
      {"as_expr",
       {{"expr_str", "Mul(Integer(4), Symbol('s77', integer=True))"}}}};
  Json view =
      node("view", "torch.ops.aten.view.default",
           {{"self", tensor_argument("mm")},
            {"size",
             {{"as_sym_ints",
               Json::array({{{"as_name", "mul"}}, {{"as_int", 1}}})}}}});
  nodes(json).insert(nodes(json).begin() + 2, {product, view});
  tensors(json)["view"] = tensor_meta(7, {64, 1}, {1, 1});
  const Graph graph = load(json);
  const Node& viewed = graph.node(*graph.find_node("view"));
  CHECK(viewed.op.ints_arg("size") == std::vector<std::int64_t>{64, 1});
  REQUIRE(viewed.symbolic.size() == 1);
  CHECK(viewed.symbolic[0].argument == 1);
  CHECK(viewed.symbolic[0].element == 0);
  CHECK(to_string(viewed.symbolic[0].value) == "4*s77");
  CHECK(std::find(graph.guards().begin(), graph.guards().end(),
                  Guard{"4*s77 == 64", "node mul"}) != graph.guards().end());
}

TEST_CASE("arguments are matched by name, whatever their order") {
  Json json = program();
  std::swap(nodes(json)[1]["inputs"][0], nodes(json)[1]["inputs"][1]);
  const Graph graph = load(json);
  const Node& mm = graph.node(*graph.find_node("mm"));
  CHECK(graph.value(mm.inputs[0]).name == "x");
  CHECK(graph.value(mm.inputs[1]).name == "p_w");
  CHECK(graph.hash() == load(program()).hash());
}

TEST_CASE("results that are not produced are left out") {
  Json json = program();
  Json norm = node("norm", "torch.ops.aten.native_layer_norm_backward.default",
                   {{"grad_out", tensor_argument("relu")},
                    {"input", tensor_argument("mm")},
                    {"normalized_shape", {{"as_ints", {4}}}},
                    {"mean", tensor_argument("mean")},
                    {"rstd", tensor_argument("mean")},
                    {"weight", {{"as_none", true}}},
                    {"bias", {{"as_none", true}}},
                    {"output_mask", {{"as_bools", {true, false, false}}}}});
  norm["outputs"] = Json::array(
      {tensor_argument("norm"), {{"as_none", true}}, {{"as_none", true}}});
  const Json mean = node("mean", "torch.ops.aten.mean.dim",
                         {{"self", tensor_argument("mm")},
                          {"dim", {{"as_ints", {1}}}},
                          {"keepdim", {{"as_bool", true}}}});
  nodes(json).insert(nodes(json).begin() + 3, {mean, norm});
  tensors(json)["norm"] = tensor_meta(7, {16, 4}, {4, 1});
  tensors(json)["mean"] = tensor_meta(7, {16, 1}, {1, 1});
  const Graph graph = load(json);
  const Node& backward = graph.node(*graph.find_node("norm"));
  CHECK(backward.op.output_slots ==
        std::vector<std::int32_t>{0, OpSchema::kNotProduced,
                                  OpSchema::kNotProduced});
  CHECK(backward.outputs.size() == 1);
  CHECK(backward.inputs.size() == 4);
}

TEST_CASE("our exporter's notes name the forward op") {
  Json json = program();
  nodes(json)[7]["metadata"]["custom"] =
      R"({"phase": "backward", "forward_node": "mm", )"
      R"("decomposed_from": "aten.linear_backward.default"})";
  const Graph graph = load(json);
  const Node& backward = graph.node(*graph.find_node("mm_1"));
  CHECK(backward.forward_node == graph.find_node("mm"));
  CHECK(backward.decomposed_from == "aten.linear_backward.default");
}

TEST_CASE("an operator of one's own is read as it is called") {
  Json json = program();
  nodes(json)[2]["target"] = "torch.ops.my_ops.act.fast";
  const Graph graph = load(json);
  const Node& own = graph.node(*graph.find_node("relu"));
  CHECK(own.op_name() == "my_ops.act.fast");
  CHECK(own.op.function->has_tag("undeclared"));
  CHECK(own.op.outputs.size() == 1);
  REQUIRE(graph.notes().size() == 2);
  const auto* note = std::get_if<UndeclaredOperatorNote>(&graph.notes()[0]);
  REQUIRE(note != nullptr);
  CHECK(note->op == "torch.ops.my_ops.act.fast");
  CHECK(note->declaration.starts_with("my_ops::act.fast("));
  CHECK(note->writes == UndeclaredOperatorNote::Writes::kNothing);
}

TEST_CASE("run-time checks are no part of the graph") {
  Json json = program();
  Json check = node("check", "torch.ops.aten._assert_tensor_metadata.default",
                    {{"a", tensor_argument("x")}});
  check["outputs"] = Json::array();
  nodes(json).insert(nodes(json).begin(), check);
  CHECK(load(json).nodes().size() == 7);
}

TEST_CASE("inputs that are no tensors are passed over") {
  Json json = program();
  Json& module = json["graph_module"];
  module["graph"]["inputs"].push_back({{"as_int", 3}});
  module["signature"]["input_specs"].push_back(
      {{"constant_input", {{"name", "k"}, {"value", {{"as_int", 3}}}}}});
  module["graph"]["outputs"].push_back({{"as_none", true}});
  module["signature"]["output_specs"].push_back(
      {{"user_output", {{"arg", {{"as_none", true}}}}}});
  const Graph graph = load(json);
  CHECK(graph.inputs().size() == 3);
  CHECK(graph.outputs().size() == 3);
}

TEST_CASE("older files: no names of nodes, nulls for defaults, plain symbols") {
  Json json = program();
  for (Json& n : nodes(json)) n.erase("name");
  json["guards_code"] = nullptr;
  json["range_constraints"] = nullptr;
  tensors(json)["x"]["sizes"][0]["as_expr"]["expr_str"] = "s77";
  const Graph graph = load(json);
  CHECK(graph.find_node("mm"));
  CHECK(graph.nodes().size() == 7);
}

TEST_CASE("unknown fields are passed over") {
  Json json = program();
  json["new_field"] = {{"deep", {1, 2, "three"}}};
  nodes(json)[1]["new_field"] = nullptr;
  tensors(json)["x"]["new_field"] = 1.5;
  CHECK(load(json).hash() == load(program()).hash());
}
