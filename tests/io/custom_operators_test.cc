// Tests custom operators of programs that torch.export writes: declared and guessed
// writes, views and wrappers.
#include <doctest/doctest.h>

#include <shardprop/ops/rule_text.h>

#include "io/user_program.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

constexpr int kI64 = 5;

Json none_argument() { return {{"as_none", true}}; }

// acme::accum(Tensor x, Tensor(a!) y, Tensor index, Tensor? scale=None) -> (),
// written as torch.export writes it: relu is x, the buffer `n` is y, and a
// result computed from the new y is an output.
Json with_accum() {
  Json json = program();
  Json& nodes = nodes_of(json);
  Json accum = node("accum", "torch.ops.acme.accum.default",
                    {{"x", tensor_argument("relu")},
                     {"y", tensor_argument("b_n")},
                     {"index", tensor_argument("i")}});
  accum["outputs"] = Json::array();
  nodes.insert(nodes.begin() + 3, accum);
  Json& graph = json["graph_module"]["graph"];
  tensors_of(json)["b_n"] = tensor_meta(kF32, {10, 4}, {4, 1});
  tensors_of(json)["add"] = tensor_meta(kF32, {10, 4}, {4, 1});
  tensors_of(json)["i"] = tensor_meta(kI64, {16}, {1});
  graph["inputs"].push_back(tensor_argument("i"));
  json["graph_module"]["signature"]["input_specs"].push_back(
      {{"user_input", {{"arg", tensor_argument("i")}}}});
  return json;
}

// The same after run_decompositions().
Json with_functionalized_accum() {
  Json json = with_accum();
  Json& accum = nodes_of(json)[3];
  accum = node(
      "auto_functionalized_v2", "torch.ops.higher_order.auto_functionalized_v2",
      {{"", {{"as_operator", "torch.ops.acme.accum.default"}}},
       {"x", tensor_argument("relu")},
       {"index", tensor_argument("i")},
       {"scale", none_argument()},
       {"_y_base_index", {{"as_int", 0}}},
       {"_all_bases", {{"as_tensors", Json::array({{{"name", "b_n"}}})}}}});
  accum["outputs"] =
      Json::array({none_argument(), tensor_argument("getitem_1")});
  tensors_of(json)["getitem_1"] = tensor_meta(kF32, {10, 4}, {4, 1});
  for (Json& one : nodes_of(json)) {
    if (one["name"] != "add") continue;
    one["inputs"][0]["arg"] = tensor_argument("getitem_1");
  }
  return json;
}

constexpr const char* kAccum =
    "acme::accum(Tensor x, Tensor(a!) y, Tensor index, Tensor? scale=None) -> "
    "()";

std::shared_ptr<const OpLibrary> with_rule_of_accum() {
  auto made =
      test_library().with({.declaration = kAccum,
                           .definition = *parse_rule("{n}d,{v}d,{n}->{v}d")});
  REQUIRE(made);
  return *made;
}

}  // namespace

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

TEST_CASE("declared writes of a custom operator are respected") {
  const auto library = with_rule_of_accum();
  for (const Json& json : {with_accum(), with_functionalized_accum()}) {
    const auto graph = read_graph(json.dump(), "test", *library);
    REQUIRE_MESSAGE(graph.has_value(), to_string(graph.error()));
    const Node* accum = nullptr;
    for (const Node& one : graph->nodes()) {
      if (one.op.name() == "acme.accum.default") accum = &one;
    }
    REQUIRE(accum != nullptr);
    CHECK_FALSE(has_note(*graph, "is not declared"));
    CHECK(to_string(*accum->op.function).ends_with("-> Tensor y"));
    // The next reader of y reads the new value.
    const Node* add = find_node(*graph, "add");
    REQUIRE(add != nullptr);
    CHECK(add->inputs[0] == accum->outputs[0]);
    // The terms of the rule follow the declaration, not the order of the file.
    const auto space = library->index_space(accum->op);
    REQUIRE_MESSAGE(space.has_value(), to_string(space.error()));
    CHECK(to_string(*space).starts_with("1d,1d,1->1d {d=4}"));
  }
}

TEST_CASE("a rule of an undeclared operator is not bound by position alone") {
  // Either `bias` is an absent tensor, and `b` has the third term, or it is an
  // absent number, and `b` has the second term.
  Json json = program();
  Json mix = node("mix", "torch.ops.mylib.mix.default",
                  {{"a", tensor_argument("relu")},
                   {"bias", none_argument()},
                   {"b", tensor_argument("relu")},
                   {"scale", none_argument()}});
  tensors_of(json)["mix"] = tensors_of(json)["relu"];
  nodes_of(json).insert(nodes_of(json).begin() + 3, mix);
  const auto space = [&](OpLibrary::Addition addition) {
    const auto library = test_library().with(std::move(addition));
    REQUIRE(library);
    const auto graph = read_graph(json.dump(), "test", **library);
    REQUIRE_MESSAGE(graph.has_value(), to_string(graph.error()));
    const Node* found = find_node(*graph, "mix");
    REQUIRE(found != nullptr);
    const auto made = (*library)->index_space(found->op);
    return made ? to_string(*made) : made.error().message;
  };
  const std::string refused =
      space({.name = "mylib.mix", .definition = *parse_rule("ab,b,ab->ab")});
  CAPTURE(refused);
  CHECK(refused.find("`bias` is None, and may be a tensor that has a term: the "
                     "rule needs the declaration of the operator") !=
        std::string::npos);
  const std::string declared =
      space({.declaration = "mylib::mix(Tensor a, Tensor? bias, Tensor b, "
                            "float? scale=None) -> Tensor",
             .definition = *parse_rule("ab,b,ab->ab")});
  CHECK(declared.starts_with("ab,ab->ab"));
  // Forms that treat all tensors alike need no declaration.
  CHECK(space({.name = "mylib.mix", .definition = *parse_rule("pointwise()")})
            .starts_with("ab,ab->ab"));
}

TEST_CASE("a wrapped custom operator is planned as its call") {
  const auto graph =
      read_graph(with_functionalized_accum().dump(), "test", test_library());
  REQUIRE_MESSAGE(graph.has_value(), to_string(graph.error()));
  // The operator has no declaration: the wrapper's text names the argument that
  // it writes.
  CHECK(has_note(*graph, "taken for a write of `y`"));
  const Node* add = find_node(*graph, "add");
  REQUIRE(add != nullptr);
  const Node& accum = graph->node(graph->value(add->inputs[0]).producer);
  CHECK(accum.op.name() == "acme.accum.default");
  CHECK(accum.op.inputs.size() == 3);
  CHECK(to_string(*accum.op.function).find("-> Tensor y") != std::string::npos);
}

TEST_CASE("an undeclared write is guessed, and the note says how to state it") {
  const auto graph = read_graph(with_accum().dump(), "test", test_library());
  REQUIRE_MESSAGE(graph.has_value(), to_string(graph.error()));
  CHECK(has_note(*graph, "taken for a write of its first tensor"));
  CHECK(has_note(*graph, "a rule with its declaration states what it writes"));
  CHECK_FALSE(has_note(*graph, "similar name"));
}

TEST_CASE(
    "the note about an undeclared operator names a rule of a similar name") {
  const auto read_with = [](const char* declaration) {
    const auto library = test_library().with(
        {.declaration = declaration, .definition = pointwise()});
    REQUIRE(library.has_value());
    auto graph = read_graph(with_accum().dump(), "test", **library);
    REQUIRE_MESSAGE(graph.has_value(), to_string(graph.error()));
    return *std::move(graph);
  };
  CHECK(has_note(read_with("acme::acum(Tensor x, Tensor y) -> Tensor"),
                 "a rule is given for `acme.acum`, which has a similar name"));
  CHECK_FALSE(
      has_note(read_with("acme::other(Tensor x) -> Tensor"), "similar name"));
  CHECK_FALSE(
      has_note(read_with("lib::acum(Tensor x) -> Tensor"), "similar name"));
}

TEST_CASE("a wrapper that writes through views stays one operator") {
  const auto with = [](const std::function<void(Json&)>& change) {
    Json json = with_functionalized_accum();
    change(nodes_of(json)[3]);
    return read_graph(json.dump(), "test", test_library());
  };
  const auto stays = with([](Json& accum) {
    accum["inputs"].push_back(
        {{"name", "_y_size"}, {"arg", {{"as_ints", {10, 4}}}}, {"kind", 2}});
  });
  REQUIRE_MESSAGE(stays.has_value(), to_string(stays.error()));
  const Node* wrapper = find_node(*stays, "auto_functionalized_v2");
  REQUIRE(wrapper != nullptr);
  const auto space = test_library().index_space(wrapper->op);
  REQUIRE_FALSE(space);
  CHECK(space.error().message.find("writes through views") !=
        std::string::npos);
  CHECK(space.error().help.find("batch(0)") == std::string::npos);
  const auto refused = [&](const std::function<void(Json&)>& change) {
    const auto graph = with(change);
    REQUIRE_FALSE(graph);
    CHECK(graph.error().code == ErrorCode::kHigherOrderOp);
    CHECK_FALSE(graph.error().help.empty());
  };
  refused([](Json& accum) { accum["inputs"].erase(0); });
  refused([](Json& accum) { accum["inputs"].erase(5); });
  refused([](Json& accum) { accum["inputs"][4]["arg"] = {{"as_int", 1}}; });
  refused([](Json& accum) { accum["inputs"][4]["arg"] = {{"as_int", -1}}; });
  refused([](Json& accum) { accum["outputs"] = Json::array(); });
}
