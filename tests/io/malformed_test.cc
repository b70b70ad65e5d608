// Every way in which a program can be malformed that we thought of, with the
// code and the place that its error has. Each is the program of
// program_fixture.h with one thing changed.
#include <doctest/doctest.h>

#include "io/program_fixture.h"

#include <string>
#include <utility>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

constexpr const char* kGraph = "/graph_module/graph";
constexpr const char* kSignature = "/graph_module/signature";

// One change: the value at a JSON pointer below `root` replaced, or removed
// where `value` is kRemoved.
struct Change {
  const char* what;
  std::string pointer;
  const char* value;
  ErrorCode code;
  const char* place;  // part of the error's location
};
constexpr const char* kRemoved = nullptr;

std::string in_graph(const char* pointer) {
  return std::string(kGraph) + pointer;
}
std::string in_signature(const char* pointer) {
  return std::string(kSignature) + pointer;
}

// Nodes: 0 sym_size_int, 1 mm, 2 relu, 3 sum_1, 4 add, 5 ones_like, 6 permute,
// 7 mm_1.
const std::vector<Change>& changes() {
  static const std::vector<Change> kChanges = {
      // the frame of a program
      {"an empty object", "", "{}", ErrorCode::kFieldMissing, "$"},
      {"a list", "", "[]", ErrorCode::kFieldType, "$"},
      {"a number", "", "3", ErrorCode::kFieldType, "$"},
      {"no graph_module", "/graph_module", kRemoved, ErrorCode::kFieldMissing,
       "$"},
      {"a graph_module that is a string", "/graph_module", "\"g\"",
       ErrorCode::kFieldType, "$.graph_module"},
      {"no graph", kGraph, kRemoved, ErrorCode::kFieldMissing,
       "$.graph_module"},
      {"no signature", kSignature, kRemoved, ErrorCode::kFieldMissing,
       "$.graph_module"},
      {"no nodes", in_graph("/nodes"), kRemoved, ErrorCode::kFieldMissing,
       "$.graph_module.graph"},
      {"no schema version", "/schema_version", kRemoved,
       ErrorCode::kFieldMissing, "$"},
      {"an older schema", "/schema_version/major", "7",
       ErrorCode::kSchemaVersion, "$.schema_version"},
      {"a newer schema", "/schema_version/major", "9",
       ErrorCode::kSchemaVersion, "$.schema_version"},
      {"a schema that is a text", "/schema_version/major", "\"8\"",
       ErrorCode::kFieldType, "$.schema_version.major"},

      // nodes
      {"nodes that are an object", in_graph("/nodes"), "{}",
       ErrorCode::kFieldType, "$.graph_module.graph.nodes"},
      {"a node that is null", in_graph("/nodes/1"), "null",
       ErrorCode::kFieldType, "$.graph_module.graph.nodes[1]"},
      {"a node without target", in_graph("/nodes/1/target"), kRemoved,
       ErrorCode::kFieldMissing, "$.graph_module.graph.nodes[1]"},
      {"an unknown operator of torch", in_graph("/nodes/1/target"),
       "\"torch.ops.aten.mmm.default\"", ErrorCode::kUnknownOperator,
       "nodes[1] `mm`"},
      {"an unknown overload", in_graph("/nodes/1/target"),
       "\"torch.ops.aten.mm.fast\"", ErrorCode::kUnknownOperator,
       "nodes[1] `mm`"},
      {"a target that names no operator", in_graph("/nodes/1/target"),
       "\"call_me\"", ErrorCode::kUnknownOperator, "nodes[1] `mm`"},
      {"two nodes of one name", in_graph("/nodes/2/name"), "\"mm\"",
       ErrorCode::kDuplicateName, "nodes[2]"},

      // arguments
      {"an argument without value", in_graph("/nodes/1/inputs/0/arg"), kRemoved,
       ErrorCode::kFieldMissing, "nodes[1].inputs[0]"},
      {"an unknown kind of argument", in_graph("/nodes/1/inputs/0/arg"),
       R"({"as_foo": 1})", ErrorCode::kUnknownVariant,
       "nodes[1].inputs[0].arg"},
      {"an argument of no kind", in_graph("/nodes/1/inputs/0/arg"), "{}",
       ErrorCode::kUnknownVariant, "nodes[1].inputs[0].arg"},
      {"an argument of two kinds", in_graph("/nodes/1/inputs/0/arg"),
       R"({"as_int": 1, "as_float": 2.0})", ErrorCode::kUnknownVariant,
       "nodes[1].inputs[0].arg"},
      {"a tensor without name", in_graph("/nodes/1/inputs/0/arg"),
       R"({"as_tensor": {}})", ErrorCode::kFieldMissing,
       "nodes[1].inputs[0].arg.as_tensor"},
      {"a dangling name", in_graph("/nodes/1/inputs/0/arg/as_tensor/name"),
       "\"nowhere\"", ErrorCode::kDanglingName, "inputs[0].arg"},
      {"a value used before it is made",
       in_graph("/nodes/1/inputs/0/arg/as_tensor/name"), "\"mm_1\"",
       ErrorCode::kUsedBeforeMade, "nodes[1] `mm`"},
      {"a node that uses its own result",
       in_graph("/nodes/2/inputs/0/arg/as_tensor/name"), "\"relu\"",
       ErrorCode::kUsedBeforeMade, "nodes[2] `relu`"},
      {"an argument that is not declared", in_graph("/nodes/2/inputs/0/name"),
       "\"selff\"", ErrorCode::kUnknownArgument, "nodes[2] `relu`"},
      {"an argument given twice", in_graph("/nodes/1/inputs/1/name"),
       "\"self\"", ErrorCode::kUnknownArgument, "nodes[1] `mm`"},
      {"an argument that is missing", in_graph("/nodes/1/inputs/1"), kRemoved,
       ErrorCode::kMissingArgument, "nodes[1] `mm`"},
      {"an argument of another type", in_graph("/nodes/6/inputs/1/arg"),
       R"({"as_string": "x"})", ErrorCode::kArgumentType, "nodes[6] `permute`"},
      {"an integer that is a float", in_graph("/nodes/6/inputs/1/arg"),
       R"({"as_ints": [1, 0.5]})", ErrorCode::kFieldType,
       "nodes[6].inputs[1].arg.as_ints[1]"},
      {"an integer beyond 64 bits", in_graph("/nodes/6/inputs/1/arg"),
       R"({"as_ints": [1, 99999999999999999999]})", ErrorCode::kFieldType,
       "nodes[6].inputs[1].arg.as_ints[1]"},
      {"a subgraph as argument", in_graph("/nodes/6/inputs/1/arg"),
       R"({"as_graph": {"name": "g", "graph": {"nodes": []}}})",
       ErrorCode::kHigherOrderOp, "inputs[1].arg"},
      {"lists of lists", in_graph("/nodes/6/inputs/1/arg"),
       R"({"as_int_lists": [[1], [0]]})", ErrorCode::kUnknownVariant,
       "inputs[1].arg"},
      {"a scalar that does not exist", in_graph("/nodes/6/inputs/1/arg"),
       R"({"as_sym_ints": [{"as_name": "s"}, {"as_int": 0}]})",
       ErrorCode::kDanglingName, "inputs[1].arg"},
      {"a scalar of unknown kind", in_graph("/nodes/6/inputs/1/arg"),
       R"({"as_sym_ints": [{"as_text": "s"}]})", ErrorCode::kUnknownVariant,
       "nodes[6].inputs[1].arg.as_sym_ints[0]"},
      {"a subgraph without nodes", in_graph("/nodes/6/inputs/1/arg"),
       R"({"as_graph": {"name": "g", "graph": {}}})", ErrorCode::kFieldMissing,
       "nodes[6].inputs[1].arg.as_graph.graph"},
      {"a dtype of unknown number", in_graph("/nodes/5/inputs/0/arg"),
       R"({"as_scalar_type": 99})", ErrorCode::kUnknownVariant,
       "inputs[0].arg"},

      // results
      {"fewer results than declared", in_graph("/nodes/1/outputs"), "[]",
       ErrorCode::kResultMismatch, "nodes[1] `mm`"},
      {"a result of another kind", in_graph("/nodes/1/outputs/0"),
       R"({"as_int": 3})", ErrorCode::kResultMismatch, "nodes[1] `mm`"},
      {"a list where one result is declared", in_graph("/nodes/1/outputs/0"),
       R"({"as_tensors": [{"name": "mm"}]})", ErrorCode::kResultMismatch,
       "nodes[1] `mm`"},
      {"a result without meta", in_graph("/tensor_values/mm"), kRemoved,
       ErrorCode::kDanglingName, "nodes[1] `mm`"},
      {"a result made twice", in_graph("/nodes/2/outputs/0/as_tensor/name"),
       "\"mm\"", ErrorCode::kDuplicateName, "nodes[2] `relu`"},
      {"a result with an input's name",
       in_graph("/nodes/2/outputs/0/as_tensor/name"), "\"x\"",
       ErrorCode::kShapeMismatch, "nodes[2] `relu`"},
      {"a result of another shape",
       in_graph("/tensor_values/mm/sizes/1/as_int"), "5",
       ErrorCode::kShapeMismatch, "nodes[1] `mm`"},
      {"a result of another dtype", in_graph("/tensor_values/mm/dtype"), "13",
       ErrorCode::kShapeMismatch, "nodes[1] `mm`"},

      // tensors
      {"a tensor without dtype", in_graph("/tensor_values/x/dtype"), kRemoved,
       ErrorCode::kFieldMissing, "tensor_values.x"},
      {"a tensor without sizes", in_graph("/tensor_values/x/sizes"), kRemoved,
       ErrorCode::kFieldMissing, "tensor_values.x"},
      {"a tensor without strides", in_graph("/tensor_values/x/strides"),
       kRemoved, ErrorCode::kFieldMissing, "tensor_values.x"},
      {"sizes and strides that disagree",
       in_graph("/tensor_values/x/strides/1"), kRemoved, ErrorCode::kTensorMeta,
       "tensor_values.x"},
      {"a negative size", in_graph("/tensor_values/p_w/sizes/0/as_int"), "-8",
       ErrorCode::kTensorMeta, "tensor_values.p_w"},
      {"a negative stride", in_graph("/tensor_values/p_w/strides/0/as_int"),
       "-4", ErrorCode::kTensorMeta, "tensor_values.p_w"},
      {"an absurd size", in_graph("/tensor_values/p_w/sizes/0/as_int"),
       "9223372036854775807", ErrorCode::kTensorMeta, "tensor_values.p_w"},
      {"an unknown dtype", in_graph("/tensor_values/p_w/dtype"), "77",
       ErrorCode::kUnknownVariant, "tensor_values.p_w"},
      {"the dtype 0", in_graph("/tensor_values/p_w/dtype"), "0",
       ErrorCode::kUnknownVariant, "tensor_values.p_w"},
      {"a size of unknown kind", in_graph("/tensor_values/p_w/sizes/0"),
       R"({"as_text": 3})", ErrorCode::kUnknownVariant,
       "tensor_values.p_w.sizes[0]"},
      {"a symbolic size that is no srepr",
       in_graph("/tensor_values/x/sizes/0/as_expr/expr_str"), "\"Add(\"",
       ErrorCode::kSymExprSyntax, "tensor_values.x"},
      {"a size that nothing can compute",
       in_graph("/tensor_values/p_w/sizes/0"),
       R"j({"as_expr": {"expr_str": "Zeta(Symbol('u0'))", "hint": null}})j",
       ErrorCode::kNoSizeHint, "tensor_values.p_w"},

      // signature
      {"more inputs than specs", in_signature("/input_specs/2"), kRemoved,
       ErrorCode::kSignatureMismatch, "$.graph_module.signature"},
      {"more specs than inputs", in_graph("/inputs/2"), kRemoved,
       ErrorCode::kSignatureMismatch, "$.graph_module.signature"},
      {"more outputs than specs", in_signature("/output_specs/0"), kRemoved,
       ErrorCode::kSignatureMismatch, "$.graph_module.signature"},
      {"specs in another order",
       in_signature("/input_specs/0/parameter/arg/name"), "\"x\"",
       ErrorCode::kSignatureMismatch, "graph.inputs[0]"},
      {"a parameter that is no tensor", in_graph("/inputs/0"),
       R"({"as_int": 3})", ErrorCode::kSignatureMismatch, "graph.inputs[0]"},
      {"an unknown kind of input", in_signature("/input_specs/0"),
       R"({"weight": {}})", ErrorCode::kUnknownVariant,
       "signature.input_specs[0]"},
      {"an unknown kind of output", in_signature("/output_specs/0"),
       R"({"side_effect": {}})", ErrorCode::kUnknownVariant,
       "signature.output_specs[0]"},
      {"a parameter without name",
       in_signature("/input_specs/0/parameter/parameter_name"), kRemoved,
       ErrorCode::kFieldMissing, "signature.input_specs[0]"},
      {"a gradient of nothing",
       in_signature("/output_specs/2/gradient_to_parameter/parameter_name"),
       "\"nowhere\"", ErrorCode::kDanglingName, "graph.outputs[2]"},
      {"a mutation of nothing",
       in_signature("/output_specs/0/buffer_mutation/buffer_name"),
       "\"nowhere\"", ErrorCode::kDanglingName, "graph.outputs[0]"},
      {"a gradient of another shape",
       in_signature("/output_specs/2/gradient_to_parameter/parameter_name"),
       "\"count\"", ErrorCode::kSignatureMismatch, "graph.outputs[2]"},
      {"a gradient that is no tensor", in_graph("/outputs/2"),
       R"({"as_none": true})", ErrorCode::kSignatureMismatch,
       "graph.outputs[2]"},
      {"an output in another order", in_graph("/outputs/0/as_tensor/name"),
       "\"relu\"", ErrorCode::kSignatureMismatch, "graph.outputs[0]"},
      {"two parameters of one name",
       in_signature("/input_specs/1/buffer/buffer_name"), "\"fc.weight\"",
       ErrorCode::kDuplicateName, "graph.inputs[1]"},
      {"ranges that are a list", "/range_constraints", "[]",
       ErrorCode::kFieldType, "$.range_constraints"},
      {"a bound that is a text", "/range_constraints/s77/min_val", "\"two\"",
       ErrorCode::kFieldType, "$.range_constraints.s77.min_val"},
  };
  return kChanges;
}

Json changed(const Change& change) {
  Json json = program();
  const Json::json_pointer pointer(change.pointer);
  if (change.value != kRemoved) {
    json[pointer] = Json::parse(change.value);
    return json;
  }
  Json& parent = json[pointer.parent_pointer()];
  if (parent.is_array()) {
    parent.erase(std::stoul(pointer.back()));
  } else {
    parent.erase(pointer.back());
  }
  return json;
}

}  // namespace

TEST_CASE("one thing changed: its code, its place") {
  REQUIRE(read_json(program()));
  CHECK(changes().size() >= 60);
  for (const Change& change : changes()) {
    CAPTURE(change.what);
    const auto graph = read_json(changed(change));
    REQUIRE_FALSE(graph);
    CAPTURE(to_string(graph.error()));
    CHECK(code_name(graph.error().code) == code_name(change.code));
    CHECK(graph.error().location.find(change.place) != std::string::npos);
    CHECK_FALSE(graph.error().message.empty());
  }
}

// Layers repeat their calls, and what fits is looked at once.
TEST_CASE("a call beside one that fits is checked by itself") {
  const auto with_second = [](const char* self, std::vector<int> dims,
                              const std::vector<int>& sizes) {
    Json json = program();
    Json& graph = json["graph_module"]["graph"];
    graph["nodes"].push_back(node("permute_2", "torch.ops.aten.permute.default",
                                  {{"self", tensor_argument(self)},
                                   {"dims", {{"as_ints", std::move(dims)}}}}));
    graph["tensor_values"]["permute_2"] = tensor_meta(7, sizes, {1, 8});
    return read_json(json);
  };
  const auto is_refused = [](const Result<Graph>& graph) {
    return !graph && graph.error().code == ErrorCode::kShapeMismatch &&
           graph.error().location.find("`permute_2`") != std::string::npos;
  };
  CHECK(with_second("x", {1, 0}, {8, 16}));
  CHECK(is_refused(with_second("x", {0, 1}, {8, 16})));
  CHECK(is_refused(with_second("relu", {1, 0}, {8, 16})));
  CHECK(is_refused(with_second("x", {1, 0}, {16, 8})));
}

TEST_CASE("what no JSON library would write") {
  struct Text {
    const char* what;
    std::string text;
    ErrorCode code;
  };
  const std::string good = program().dump();
  std::string doubled_key = good;
  doubled_key.insert(1, "\"torch_version\": \"2\",");
  std::string doubled_tensor = good;
  const std::size_t at = doubled_tensor.find("\"p_w\":{");
  REQUIRE(at != std::string::npos);
  doubled_tensor.insert(at, R"("p_w":{"dtype":7,"sizes":[],"strides":[]},)");
  std::string long_list = good;
  const std::string ints = "\"as_ints\":[";
  const std::size_t list = long_list.find(ints);
  REQUIRE(list != std::string::npos);
  std::string zeros;
  for (int i = 0; i < 70000; ++i) zeros += "0,";
  long_list.insert(list + ints.size(), zeros);
  const Text texts[] = {
      {"nothing", "", ErrorCode::kNoProgram},
      {"blanks", " \n\t ", ErrorCode::kNoProgram},
      {"no JSON", "hello", ErrorCode::kJsonSyntax},
      {"zeroes", std::string(64, '\0'), ErrorCode::kJsonSyntax},
      {"cut in the middle", good.substr(0, good.size() / 2),
       ErrorCode::kJsonSyntax},
      {"cut before the last bracket", good.substr(0, good.size() - 1),
       ErrorCode::kJsonSyntax},
      {"more behind it", good + "{}", ErrorCode::kJsonSyntax},
      {"not UTF-8", "{\"\xff\": 1}", ErrorCode::kJsonSyntax},
      {"a deep nest of lists", "{\"x\":" + std::string(1000000, '['),
       ErrorCode::kTooDeep},
      {"a deep nest in a field nobody reads",
       "{\"x\":" + std::string(5000, '[') + std::string(5000, ']') + "}",
       ErrorCode::kTooDeep},
      {"a field that stands twice", doubled_key, ErrorCode::kRepeatedKey},
      {"a tensor that stands twice", doubled_tensor, ErrorCode::kRepeatedKey},
      {"an endless list", long_list, ErrorCode::kListTooLong},
  };
  for (const Text& text : texts) {
    CAPTURE(text.what);
    const auto graph = read_graph(text.text, "test", test_library());
    REQUIRE_FALSE(graph);
    CAPTURE(to_string(graph.error()));
    CHECK(code_name(graph.error().code) == code_name(text.code));
  }
}

TEST_CASE("every prefix of a program is an error, never a crash") {
  const std::string good = program().dump();
  for (std::size_t size = 0; size < good.size(); size += 7) {
    CHECK_FALSE(read_graph(good.substr(0, size), "test", test_library()));
  }
}
