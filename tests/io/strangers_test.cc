// Tests programs that torch.export writes for user models: regions, control
// flow, sizes that depend on data, in-place writes to views,
// and results that the library would not have inferred.
#include <doctest/doctest.h>

#include <shardprop/ops/rule_text.h>

#include "io/user_program.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

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
  for (const char* target :
       {"torch.ops.higher_order.tag_activation_checkpoint",
        "torch.ops.higher_order.wrap_activation_checkpoint"}) {
    CAPTURE(target);
    const auto graph = read_json(with_region(target, region()));
    REQUIRE(graph);
    CHECK(has_note(*graph,
                   "checkpoints 1 region of 1 operator, which run again with "
                   "--recompute model"));
    CHECK(find_node(*graph, "relu.cos")->checkpoint.region == "relu");
  }
  // As our exporter writes it.
  Json json = program();
  for (const int at : {1, 2}) {
    nodes_of(json)[at]["metadata"]["custom"] = R"({"checkpoint": "0"})";
  }
  const auto marked = read_json(json);
  REQUIRE(marked);
  CHECK(has_note(*marked, "checkpoints 1 region of 2 operators"));
  CHECK(std::count_if(marked->nodes().begin(), marked->nodes().end(),
                      [](const Node& node) {
                        return node.checkpoint.region == "0";
                      }) == 2);
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
  // The readers of the region's result have the same dtype.
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
  // The predicate is the first argument and has no batch dim.
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
  // Only the open size is noted.
  CHECK(graph->notes().size() == 1);
  CHECK(has_note(*graph, "`s77`"));
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
  // An operator that only checks is dropped without a note. An operator with
  // other effects gets a note.
  CHECK_FALSE(has_note(*read, "_linalg_check_errors"));
  CHECK(has_note(*read, "`torch.ops.mylib.log.default` has effects"));

  // Each broken node lacks its token and operator, or its results.
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
  // The buffer has the same name as the argument, and the parameter has the
  // name of a node. The graph also has an `mm_1`.
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
    // A user who gave the bound gets no note about it.
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

TEST_CASE("symbolic sizes are set by name") {
  const Json size = {
      {"as_expr",
       {{"expr_str", "Symbol('s77', positive=True, integer=True)"},
        {"hint", {{"as_int", 16}}}}}};
  Json json = program();
  for (const char* name : {"x", "mm", "relu", "ones_like"}) {
    tensors_of(json)[name]["sizes"][0] = size;
  }
  tensors_of(json)["permute"]["sizes"][1] = size;
  json["range_constraints"]["s77"] = {{"min_val", 2}, {"max_val", 64}};
  const auto read = [&](const std::map<std::string, std::int64_t>& sizes) {
    LoadOptions options;
    options.sizes = sizes;
    return read_graph(json.dump(), "test", test_library(), options);
  };
  const auto rows = [&](const std::map<std::string, std::int64_t>& sizes) {
    const auto graph = read(sizes);
    REQUIRE_MESSAGE(graph.has_value(), to_string(graph.error()));
    const auto guards = graph->guards();
    const std::int64_t found = find_node(*graph, "mm")->op.outputs[0].size(0);
    CHECK(has_note(*graph, "`s77` (dim 0 of x)") == sizes.empty());
    // All of the graph has the size, and the plan states it.
    CHECK(find_node(*graph, "mm_1")->op.inputs[0].size(1) == found);
    CHECK(std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) {
      return guard.condition == "s77 == " + std::to_string(found);
    }));
    return found;
  };
  CHECK(rows({}) == 16);
  CHECK(rows({{"s77", 40}}) == 40);
  CHECK(rows({{"batch", 48}}) == 48);
  CHECK(rows({{"s77", 16}}) == 16);
  const auto refused = [&](const std::map<std::string, std::int64_t>& sizes,
                           const char* message, const char* help) {
    CAPTURE(message);
    const auto graph = read(sizes);
    REQUIRE_FALSE(graph);
    CHECK(graph.error().code == ErrorCode::kInvalidArgument);
    CHECK(graph.error().location.find("size ") != std::string::npos);
    CHECK(graph.error().message.find(message) != std::string::npos);
    CHECK(graph.error().help.find(help) != std::string::npos);
  };
  refused({{"s77", 65}}, "`s77` cannot be 65", "within its range");
  refused({{"batch", 1}}, "`s77` cannot be 1", "within its range");
  refused({{"s1", 8}}, "`s1` is not a symbolic size", "sizes to set: s77");
  refused({{"seq", 8}},
          "`seq` is no symbolic size: dim 1 of the inputs is fixed", "s77");
  refused({{"s77", 8}, {"batch", 8}}, "`batch` and `s77` are one size",
          "give it once");
  // Ranges of sizes that are computed hold too.
  json["range_constraints"]["Mul(Integer(2), Symbol('s77'))"] = {
      {"min_val", 4}, {"max_val", 60}};
  CHECK(rows({{"s77", 30}}) == 30);
  refused({{"s77", 31}}, "`2*s77` cannot be 62", "within its range");
  // A size that depends on data is bounded, not set; and the other way round.
  LoadOptions bounded;
  bounded.bounds = {{"s77", 32}};
  const auto bound = read_graph(json.dump(), "test", test_library(), bounded);
  REQUIRE_FALSE(bound);
  CHECK(bound.error().help == "set it: --size s77=32");
  for (const char* name : {"x", "mm", "relu", "ones_like"}) {
    tensors_of(json)[name]["sizes"][0] = {
        {"as_expr", {{"expr_str", "Symbol('u0')"}, {"hint", nullptr}}}};
  }
  refused({{"u0", 8}}, "`u0` depends on data", "--bound u0=N");
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
    // A range of a computed value is a guard, and adds no size.
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
  // The other sums do not determine the value of each term.
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

// PyTorch wrote the file, so the file wins over the operator definition.
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

// The elements of this view are unknown. A write through it has no known
// target, and its layout does not follow from its base's shards.
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

TEST_CASE("floats that depend on data stand as 1") {
  Json json = program();
  for (const char* name : {"b_n", "add"}) {
    tensors_of(json)[name]["dtype"] = kF32;
  }
  nodes_of(json)[4]["inputs"][1]["arg"] = {
      {"as_sym_float", {{"as_name", "f"}}}};
  CHECK(read_json(json));
}

// As PyTorch 2.6 to 2.12 write the states of an LSTM: a dim of size 1 too many.
TEST_CASE("an LSTM of an older release is read") {
  Json json = program();
  json["torch_version"] = "2.10.0";
  Json& nodes = nodes_of(json);
  Json lstm =
      node("lstm", "torch.ops.aten.lstm.input",
           {{"input", tensor_argument("s")},
            {"hx",
             {{"as_tensors", Json::array({{{"name", "h"}}, {{"name", "c"}}})}}},
            {"params",
             {{"as_tensors",
               Json::array({{{"name", "w_ih"}}, {{"name", "w_hh"}}})}}},
            {"has_biases", {{"as_bool", false}}},
            {"num_layers", {{"as_int", 1}}},
            {"dropout", {{"as_float", 0.0}}},
            {"train", {{"as_bool", false}}},
            {"bidirectional", {{"as_bool", false}}},
            {"batch_first", {{"as_bool", true}}}});
  lstm["outputs"] = Json::array(
      {tensor_argument("y"), tensor_argument("hn"), tensor_argument("cn")});
  nodes.insert(nodes.begin(), lstm);
  Json& tensors = tensors_of(json);
  tensors["s"] = tensor_meta(kF32, {4, 5, 8}, {40, 8, 1});
  for (const char* name : {"h", "c"}) {
    tensors[name] = tensor_meta(kF32, {1, 4, 8}, {32, 8, 1});
  }
  for (const char* name : {"w_ih", "w_hh"}) {
    tensors[name] = tensor_meta(kF32, {32, 8}, {8, 1});
  }
  tensors["y"] = tensor_meta(kF32, {4, 5, 8}, {8, 32, 1});
  for (const char* name : {"hn", "cn"}) {
    tensors[name] = tensor_meta(kF32, {1, 1, 4, 8}, {32, 32, 8, 1});
  }
  Json& graph = json["graph_module"]["graph"];
  for (const char* name : {"s", "h", "c", "w_ih", "w_hh"}) {
    graph["inputs"].push_back(tensor_argument(name));
    json["graph_module"]["signature"]["input_specs"].push_back(
        {{"user_input", {{"arg", tensor_argument(name)}}}});
  }
  const auto hand_out = [&](const char* name) {
    graph["outputs"].push_back(tensor_argument(name));
    json["graph_module"]["signature"]["output_specs"].push_back(
        {{"user_output", {{"arg", tensor_argument(name)}}}});
  };
  hand_out("y");
  const auto read = read_graph(json.dump(), "test", test_library());
  REQUIRE_MESSAGE(read.has_value(), to_string(read.error()));
  CHECK(has_note(*read, "a dim of size 1 too many"));
  const Node* node = find_node(*read, "lstm");
  REQUIRE(node != nullptr);
  CHECK(to_string(node->op.outputs[1]) == "f32[1,4,8]");
  CHECK(test_library().index_space(node->op));

  // A state that is read keeps the shape that its readers were written for.
  hand_out("hn");
  const auto used = read_graph(json.dump(), "test", test_library());
  REQUIRE_MESSAGE(used.has_value(), to_string(used.error()));
  CHECK(has_note(*used, "taken as it is written"));
  CHECK(find_node(*used, "lstm")->op.outputs[1].rank() == 4);

  // Other shapes are a changed file, as before.
  tensors_of(json)["cn"] = tensor_meta(kF32, {1, 1, 4, 7}, {28, 28, 7, 1});
  const auto changed = read_graph(json.dump(), "test", test_library());
  REQUIRE_FALSE(changed);
  CHECK(changed.error().code == ErrorCode::kShapeMismatch);
}
