// What torch.export writes of models that nobody tuned for: regions, control
// flow, sizes that depend on data, custom operators, views in place, and
// results that the library would not have inferred.
#include <doctest/doctest.h>

#include <shardprop/ops/rule_text.h>

#include "io/program_fixture.h"

#include <algorithm>
#include <string>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

constexpr int kF32 = 7;

Json& nodes_of(Json& program) {
  return program["graph_module"]["graph"]["nodes"];
}
Json& tensors_of(Json& program) {
  return program["graph_module"]["graph"]["tensor_values"];
}

// relu as the body of a region on mm.
Json region(const std::string& result_of = "cos") {
  const Json meta = tensor_meta(kF32, {16, 4}, {4, 1});
  return {
      {"as_graph",
       {{"name", "submod_1"},
        {"graph",
         {{"inputs", Json::array({tensor_argument("arg")})},
          {"outputs", Json::array({tensor_argument(result_of)})},
          {"nodes", Json::array({node("cos", "torch.ops.aten.cos.default",
                                      {{"self", tensor_argument("arg")}})})},
          {"tensor_values", {{"arg", meta}, {"cos", meta}}},
          {"sym_int_values", Json::object()}}}}}};
}

// The program with `relu` made by that operator of subgraphs.
Json with_region(const std::string& target, const Json& graph) {
  Json json = program();
  nodes_of(json)[2] = node(
      "relu", target,
      {{"", {{"as_bool", false}}}, {"", graph}, {"", tensor_argument("mm")}});
  return json;
}

const Node* find_node(const Graph& graph, std::string_view name) {
  for (const Node& node : graph.nodes()) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

bool has_note(const Graph& graph, std::string_view part) {
  const auto notes = graph.notes();
  return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
    return note.find(part) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("a region's nodes take its place") {
  const auto graph = read_json(with_region(
      "torch.ops.higher_order.wrap_with_set_grad_enabled", region()));
  REQUIRE(graph);
  const Node* inside = find_node(*graph, "relu.cos");
  REQUIRE(inside != nullptr);
  CHECK(inside->op_name() == "aten.cos.default");
  CHECK(find_node(*graph, "relu") == nullptr);
  // sum_1 uses what the region made.
  CHECK(find_node(*graph, "sum_1")->inputs.front() == inside->outputs.front());
}

TEST_CASE("a note counts checkpointed regions and their operators") {
  for (const char* target : {"torch.ops.higher_order.tag_activation_checkpoint",
                             "torch.ops.higher_order.wrap_activation_checkpoint"}) {
    CAPTURE(target);
    const auto graph = read_json(with_region(target, region()));
    REQUIRE(graph);
    CHECK(has_note(*graph, "checkpoints 1 region of 1 operator; the plan does "
                           "not recompute them"));
  }
  // As our exporter writes it.
  Json json = program();
  for (const int at : {1, 2}) {
    nodes_of(json)[at]["metadata"]["custom"] = R"({"checkpoint": "0"})";
  }
  const auto marked = read_json(json);
  REQUIRE(marked);
  CHECK(has_note(*marked, "checkpoints 1 region of 2 operators"));
  // A forward pass alone keeps nothing.
  auto& signature = json["graph_module"]["signature"]["output_specs"];
  signature[2] = {{"user_output", {{"arg", tensor_argument("mm_1")}}}};
  const auto forward = read_json(json);
  REQUIRE(forward);
  CHECK_FALSE(has_note(*forward, "checkpoints"));
  CHECK_FALSE(has_note(*read_json(program()), "checkpoints"));
}

TEST_CASE("a region that returns what it is given") {
  const auto graph = read_json(
      with_region("torch.ops.higher_order.wrap_with_autocast", region("arg")));
  REQUIRE(graph);
  CHECK(find_node(*graph, "sum_1")->inputs.front() ==
        find_node(*graph, "mm")->outputs.front());
}

TEST_CASE("a region that does not make its result") {
  const auto graph = read_json(with_region(
      "torch.ops.higher_order.wrap_with_set_grad_enabled", region("nowhere")));
  REQUIRE_FALSE(graph);
  CHECK(graph.error().code == ErrorCode::kDanglingName);
}

TEST_CASE("autocast casts the operands to the dtype that is written") {
  Json graph = region();
  graph["as_graph"]["graph"]["tensor_values"]["cos"]["dtype"] = 13;
  Json json = with_region("torch.ops.higher_order.wrap_with_autocast", graph);
  // What uses the region's result agrees.
  tensors_of(json)["relu"]["dtype"] = 13;
  tensors_of(json)["sum_1"]["dtype"] = 13;
  nodes_of(json)[5]["inputs"][0]["arg"] = tensor_argument("mm");
  const auto read = read_json(json);
  REQUIRE(read);
  const Node* inside = find_node(*read, "relu.cos");
  REQUIRE(inside != nullptr);
  CHECK(inside->op.inputs[0].dtype() == DType::kBF16);
  CHECK(read->node(read->value(inside->inputs[0]).producer).op_name() ==
        "aten._to_copy.default");
}

TEST_CASE("control flow is one operator without a rule") {
  const auto graph =
      read_json(with_region("torch.ops.higher_order.cond", region()));
  REQUIRE(graph);
  const Node* cond = find_node(*graph, "relu");
  REQUIRE(cond != nullptr);
  CHECK(cond->op_name() == "higher_order.cond.default");
  CHECK(cond->inputs.size() == 1);
  const auto space = test_library().index_space(cond->op);
  REQUIRE_FALSE(space);
  CHECK(space.error().code == ErrorCode::kNoStrategy);
  CHECK(space.error().message.find("replicated") != std::string::npos);
}

TEST_CASE("control flow along batch dims that the user names") {
  Json json = with_region("torch.ops.higher_order.cond", region());
  // What decides comes first, and has no batch.
  nodes_of(json)[2]["inputs"][0]["arg"] = tensor_argument("b_n");
  const auto library = test_library().with(
      {.name = "higher_order.cond", .definition = *parse_rule("batch(0)")});
  REQUIRE(library);
  const auto graph = read_graph(json.dump(), "test", **library);
  REQUIRE(graph);
  const auto space = (*library)->index_space(find_node(*graph, "relu")->op);
  INFO((space ? std::string() : to_string(space.error())));
  REQUIRE(space);
  CHECK(to_string(*space) == "(),a1->a1 {a=16}");
  CHECK(graph->notes().empty());
}

TEST_CASE("an operator with effects stands for itself, without its token") {
  const auto with_effects = [](const std::string& token, const Json& op,
                               const Json& results) {
    Json call = node("with_effects", "torch.ops.higher_order.with_effects",
                     {{"", tensor_argument(token)},
                      {"", {{"as_operator", op}}},
                      {"", tensor_argument("mm")}});
    call["outputs"] = results;
    return call;
  };
  Json json = program();
  Json& graph = json["graph_module"]["graph"];
  Json& signature = json["graph_module"]["signature"];
  for (const char* token : {"token", "token_1", "token_2", "token_3"}) {
    tensors_of(json)[token] = tensor_meta(kF32, {0}, {1});
  }
  const Json none = {{"as_none", true}};
  nodes_of(json)[2] =
      with_effects("token_2", "torch.ops.aten.relu.default",
                   {tensor_argument("token_3"), tensor_argument("relu")});
  nodes_of(json)[2]["inputs"][2]["name"] = "self";
  nodes_of(json).insert(
      nodes_of(json).begin() + 2,
      with_effects("token", "torch.ops.aten._linalg_check_errors.default",
                   {tensor_argument("token_1"), none}));
  nodes_of(json).insert(nodes_of(json).begin() + 3,
                        with_effects("token_1", "torch.ops.mylib.log.default",
                                     {tensor_argument("token_2"), none}));
  const Json spec = {{"token", {{"arg", {{"name", "token"}}}}}};
  graph["inputs"].insert(graph["inputs"].begin(), tensor_argument("token"));
  signature["input_specs"].insert(signature["input_specs"].begin(), spec);
  graph["outputs"].insert(graph["outputs"].begin(), tensor_argument("token_3"));
  signature["output_specs"].insert(signature["output_specs"].begin(), spec);

  const auto plain = read_json(program());
  const auto read = read_json(json);
  REQUIRE(plain);
  INFO((read ? std::string() : to_string(read.error())));
  REQUIRE(read);
  CHECK(read->inputs().size() == plain->inputs().size());
  CHECK(read->outputs().size() == plain->outputs().size());
  CHECK(read->nodes().size() == plain->nodes().size());
  const Node* relu = find_node(*read, "with_effects");
  REQUIRE(relu != nullptr);
  CHECK(relu->op_name() == "aten.relu.default");
  CHECK(relu->inputs.front() == find_node(*read, "mm")->outputs.front());
  CHECK(find_node(*read, "sum_1")->inputs.front() == relu->outputs.front());
  // What checks is left out silently, what does more is not.
  CHECK_FALSE(has_note(*read, "_linalg_check_errors"));
  CHECK(has_note(*read, "`torch.ops.mylib.log.default` has effects"));

  // Without a token, an operator or results.
  for (const char* part : {"inputs", "outputs"}) {
    Json broken = json;
    nodes_of(broken)[4][part] = Json::array();
    const auto refused = read_json(broken);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kHigherOrderOp);
  }
}

TEST_CASE("parameters, arguments and nodes may have one name") {
  Json json = program();
  Json& signature = json["graph_module"]["signature"];
  // The buffer is called as the argument is, the parameter as a node. There is
  // an `mm_1` behind that.
  for (Json& spec : signature["input_specs"]) {
    if (spec.contains("parameter")) spec["parameter"]["parameter_name"] = "mm";
    if (spec.contains("buffer")) spec["buffer"]["buffer_name"] = "x";
  }
  for (Json& spec : signature["output_specs"]) {
    if (spec.contains("gradient_to_parameter")) {
      spec["gradient_to_parameter"]["parameter_name"] = "mm";
    }
    if (spec.contains("buffer_mutation")) {
      spec["buffer_mutation"]["buffer_name"] = "x";
    }
  }
  const auto graph = read_json(json);
  INFO((graph ? std::string() : to_string(graph.error())));
  REQUIRE(graph);
  std::vector<std::string> shown;
  for (const Value& value : graph->values()) {
    shown.push_back(value.display_name());
    CHECK(graph->find_value(shown.back()) == value.id);
  }
  std::sort(shown.begin(), shown.end());
  CHECK(std::adjacent_find(shown.begin(), shown.end()) == shown.end());
  CHECK(find_node(*graph, "mm") == nullptr);
  const auto parameter = graph->find_value("mm");
  REQUIRE(parameter);
  CHECK(graph->value(*parameter).is_input());
  CHECK(graph->gradient_of(*parameter));
  CHECK(graph->value(*graph->find_value("x")).input_kind == InputKind::kBuffer);
  CHECK(graph->find_value("x.input"));
  CHECK(graph->find_value("mm.node"));
}

TEST_CASE("sizes that depend on data have a bound") {
  Json json = program();
  for (const char* name : {"x", "mm", "relu", "ones_like"}) {
    tensors_of(json)[name]["sizes"][0] = {
        {"as_expr", {{"expr_str", "Symbol('u0')"}, {"hint", nullptr}}}};
  }
  tensors_of(json)["permute"]["sizes"][1] = tensors_of(json)["x"]["sizes"][0];
  const auto rows = [&](const LoadOptions& options) {
    const auto graph = read_graph(json.dump(), "test", test_library(), options);
    REQUIRE(graph);
    // Whoever gave the bound is not told of it.
    CHECK(has_note(*graph, "`u0` depends on data") == options.bounds.empty());
    return find_node(*graph, "mm")->op.outputs[0].size(0);
  };
  CHECK(rows({}) == 1024);
  LoadOptions bounded;
  bounded.bounds = {{"u0", 48}};
  CHECK(rows(bounded) == 48);
  json["range_constraints"]["u0"] = {{"min_val", 0}, {"max_val", 32}};
  CHECK(rows({}) == 32);
  bounded.bounds = {{"u0", 33}};
  const auto larger = read_graph(json.dump(), "test", test_library(), bounded);
  REQUIRE_FALSE(larger);
  CHECK(larger.error().code == ErrorCode::kInvalidArgument);
  CHECK(larger.error().notes ==
        std::vector<std::string>{"the program says u0 <= 32"});

  LoadOptions unknown;
  unknown.bounds = {{"u7", 48}};
  const auto refused = read_graph(json.dump(), "test", test_library(), unknown);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalidArgument);
  CHECK(refused.error().location.ends_with("bound u7=48"));
  CHECK(refused.error().help.find("u0") != std::string::npos);
}

TEST_CASE("sizes computed from others tell what those were") {
  const auto sized = [](const std::string& text, int hint) {
    Json json = program();
    const Json size = {
        {"as_expr", {{"expr_str", text}, {"hint", {{"as_int", hint}}}}}};
    for (const char* name : {"x", "mm", "relu", "ones_like"}) {
      tensors_of(json)[name]["sizes"][0] = size;
    }
    tensors_of(json)["permute"]["sizes"][1] = size;
    json["graph_module"]["graph"]["sym_int_values"]["sym_size_int"] = size;
    return json;
  };
  struct Case {
    std::string text;
    std::int64_t hint;  // of s39, where the size is 16
  };
  const std::string s = "Symbol('s39', positive=True, integer=True)";
  const Case cases[] = {{"Mul(Integer(2), " + s + ")", 8},
                        {"Add(" + s + ", Integer(1))", 15},
                        {"Add(Integer(20), Mul(Integer(-1), " + s + "))", 4},
                        {"FloorDiv(" + s + ", Integer(2))", 32},
                        {"Max(Integer(3), " + s + ")", 16},
                        {"Min(Integer(300), " + s + ")", 16},
                        {"Pow(" + s + ", Integer(2))", 4},
                        {"Add(Mul(Integer(2), " + s + "), Integer(-6))", 11}};
  for (const Case& given : cases) {
    INFO(given.text);
    Json json = sized(given.text, 16);
    json["range_constraints"] = {{"2*s39", {{"min_val", 4}, {"max_val", 128}}},
                                 {"s39", {{"min_val", 2}, {"max_val", 64}}}};
    const auto graph = read_json(json);
    INFO((graph ? std::string() : to_string(graph.error())));
    REQUIRE(graph);
    CHECK(find_node(*graph, "mm")->op.outputs[0].size(0) == 16);
    CHECK_FALSE(has_note(*graph, "depends on data"));
    REQUIRE(graph->symbols().size() == 1);
    CHECK(graph->symbols()[0].name == "s39");
    CHECK(graph->symbols()[0].hint == given.hint);
    // A range of what is computed is a guard, and not one more size.
    const auto guards = graph->guards();
    CHECK(std::any_of(guards.begin(), guards.end(), [](const Guard& guard) {
      return guard.condition == "2*s39 <= 128";
    }));
  }
  // No size makes 2*s39 odd.
  const auto odd = read_json(sized("Mul(Integer(2), " + s + ")", 17));
  REQUIRE(odd);
  CHECK_FALSE(odd->symbols()[0].hint);
}

TEST_CASE("sizes that depend on data share what they must add up to") {
  const auto size = [](const std::string& text) {
    return Json{{"as_expr", {{"expr_str", text}, {"hint", nullptr}}}};
  };
  Json json = program();
  for (const char* name : {"x", "mm", "relu", "ones_like"}) {
    tensors_of(json)[name]["sizes"][0] = size("Symbol('u0')");
  }
  tensors_of(json)["permute"]["sizes"][1] = size("Symbol('u0')");
  Json& graph = json["graph_module"]["graph"];
  graph["sym_int_values"]["item"] = size("Symbol('u0')");
  graph["sym_int_values"]["item_1"] = size("Symbol('u1')");
  const auto rows = [&](const std::string& sum, const LoadOptions& options) {
    graph["sym_bool_values"]["eq"] =
        size("Equality(" + sum + ", Integer(101))");
    const auto read = read_graph(json.dump(), "test", test_library(), options);
    INFO((read ? std::string() : to_string(read.error())));
    REQUIRE(read);
    return find_node(*read, "mm")->op.outputs[0].size(0);
  };
  const std::string both = "Add(Symbol('u0'), Symbol('u1'))";
  CHECK(rows(both, {}) == 51);
  LoadOptions bounded;
  bounded.bounds = {{"u1", 80}};
  CHECK(rows(both, bounded) == 21);
  bounded.bounds = {{"u1", 102}};
  CHECK(rows(both, bounded) == 1024);
  // Others say nothing of what each is.
  for (const char* sum :
       {"Symbol('u0')", "Add(Symbol('u0'), Mul(Integer(2), Symbol('u1')))",
        "Mul(Symbol('u0'), Symbol('u1'))",
        "Add(Symbol('u0'), Symbol('u1'), Integer(1))",
        "Add(Symbol('u0'), Strange(Symbol('u1')))"}) {
    INFO(sum);
    CHECK(rows(sum, {}) == 1024);
  }
}

TEST_CASE("of operators that are not proven the file knows better") {
  Json json = program();
  // The row takes tensors of four dims alone; only cuDNN has a kernel for it.
  Json& node = nodes_of(json)[2];
  node["target"] = "torch.ops.aten._scaled_dot_product_cudnn_attention.default";
  const Json operand = node["inputs"][0]["arg"];
  node["inputs"] = Json::array();
  for (const char* name : {"query", "key", "value"}) {
    node["inputs"].push_back({{"name", name}, {"arg", operand}, {"kind", 1}});
  }
  node["inputs"].push_back(
      {{"name", "attn_bias"}, {"arg", {{"as_none", true}}}, {"kind", 1}});
  node["inputs"].push_back({{"name", "compute_log_sumexp"},
                            {"arg", {{"as_bool", true}}},
                            {"kind", 1}});
  for (int unused = 1; unused < 9; ++unused) {
    node["outputs"].push_back({{"as_none", true}});
  }
  const auto graph = read_json(json);
  INFO((graph ? std::string() : to_string(graph.error())));
  REQUIRE(graph);
  CHECK(has_note(*graph, "taken as it is written"));
  CHECK(find_node(*graph, "relu")->op.outputs[0].shape() == Dims{16, 4});
}

// PyTorch wrote the file, whatever the row of an operator says.
TEST_CASE("a call that a proven row does not take is kept as it is written") {
  Json json = program();
  nodes_of(json)[1]["inputs"][0]["arg"] = tensor_argument("p_w");
  const auto graph = read_json(json);
  INFO((graph ? std::string() : to_string(graph.error())));
  REQUIRE(graph);
  CHECK(has_note(*graph,
                 "`mm`: the rule of `aten.mm.default` does not take these "
                 "operands"));
  CHECK(has_note(*graph, "taken as it is written, to run replicated"));
  const Node* mm = find_node(*graph, "mm");
  CHECK(mm->op.outputs[0].shape() == Dims{16, 4});
  const auto space = test_library().index_space(mm->op);
  REQUIRE_FALSE(space);
  CHECK(space.error().code == ErrorCode::kShapeMismatch);
}

// Nobody could say which elements it shows: what is written through it, and how
// it lies where its base lies in shards.
TEST_CASE("a view that its row does not take is malformed") {
  Json json = program();
  Json& view = nodes_of(json)[2];
  view["target"] = "torch.ops.aten.slice.Tensor";
  view["inputs"].push_back(
      {{"name", "dim"}, {"arg", {{"as_int", 7}}}, {"kind", 1}});
  const auto graph = read_json(json);
  REQUIRE_FALSE(graph);
  CHECK(graph.error().code == ErrorCode::kShapeMismatch);
  CHECK(graph.error().location.find("nodes[2] `relu`") != std::string::npos);
}

TEST_CASE("detach_ is the view that it is") {
  Json json = program();
  nodes_of(json)[2]["target"] = "torch.ops.aten.detach_.default";
  const auto graph = read_json(json);
  REQUIRE(graph);
  CHECK(find_node(*graph, "relu")->op_name() == "aten.detach.default");
}

TEST_CASE("a custom operator that returns nothing writes its first tensor") {
  Json json = program();
  Json write =
      node("write", "torch.ops.mylib.addto.default",
           {{"a", tensor_argument("relu")}, {"b", tensor_argument("mm")}});
  write["outputs"] = Json::array();
  nodes_of(json).insert(nodes_of(json).begin() + 3, write);
  const auto graph = read_json(json);
  REQUIRE(graph);
  const Node* made = find_node(*graph, "write");
  REQUIRE(made != nullptr);
  CHECK(find_node(*graph, "sum_1")->inputs.front() == made->outputs.front());
  CHECK(has_note(*graph, "a write of its first tensor"));
}

TEST_CASE("what a custom operator writes through a view is seen by its base") {
  Json json = program();
  tensors_of(json)["flat"] = tensor_meta(kF32, {64}, {1});
  Json write =
      node("write", "torch.ops.mylib.addto.default",
           {{"a", tensor_argument("flat")}, {"b", tensor_argument("p_w")}});
  write["outputs"] = Json::array();
  const auto at = nodes_of(json).begin() + 3;
  nodes_of(json).insert(at, write);
  nodes_of(json).insert(
      nodes_of(json).begin() + 3,
      node("flat", "torch.ops.aten.view.default",
           {{"self", tensor_argument("relu")}, {"size", {{"as_ints", {64}}}}}));
  const auto graph = read_json(json);
  INFO((graph ? std::string() : to_string(graph.error())));
  REQUIRE(graph);
  const ValueId summed = find_node(*graph, "sum_1")->inputs.front();
  const Node& back = graph->node(graph->value(summed).producer);
  CHECK(back.op_name() == "aten.reshape.default");
  CHECK(back.inputs.front() == find_node(*graph, "write")->outputs.front());
}

TEST_CASE("floats that depend on data stand as 1") {
  Json json = program();
  for (const char* name : {"b_n", "add"}) {
    tensors_of(json)[name]["dtype"] = kF32;
  }
  nodes_of(json)[4]["inputs"][1]["arg"] = {
      {"as_sym_float", {{"as_name", "f"}}}};
  CHECK(read_json(json));
}
