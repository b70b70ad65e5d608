// Operators on lists of tensors become one operator for each place.
#include "graph_fixture.h"

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

// op(lists..., rest) as an exported program has it; outputs as stated.
Result<std::vector<ValueId>> add_lists(
    GraphFixture& f, const char* op,
    const std::vector<std::vector<ValueId>>& lists,
    std::vector<GivenArgument> rest, const std::vector<TensorMeta>& outputs,
    std::optional<ValueId> numbers = std::nullopt) {
  NewNode node;
  node.name = "lists";
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> metas;
  for (const auto& list : lists) {
    std::vector<TensorArg> tensors;
    for (const ValueId id : list) {
      tensors.push_back({static_cast<std::int32_t>(metas.size())});
      metas.push_back(f.builder.meta(id));
      node.inputs.push_back(id);
    }
    given.push_back({"", std::move(tensors)});
  }
  for (GivenArgument& argument : rest) given.push_back(std::move(argument));
  if (numbers) {
    given.push_back({"", TensorArg{static_cast<std::int32_t>(metas.size())}});
    metas.push_back(f.builder.meta(*numbers));
    node.inputs.push_back(*numbers);
  }
  auto schema =
      make_op_schema(f.library.find(op), std::move(given), std::move(metas));
  REQUIRE(schema);
  node.op = *std::move(schema);
  std::vector<std::optional<TensorMeta>> results(outputs.begin(),
                                                 outputs.end());
  set_results(node.op, std::move(results));
  return f.builder.add_node(std::move(node));
}

// Returns the graph with these two outputs.
Graph with_outputs(GraphFixture& f, const std::vector<ValueId>& made) {
  REQUIRE(made.size() == 2);
  f.output(made[0]);
  f.output(made[1]);
  auto graph = std::move(f.builder).build();
  REQUIRE(graph);
  return *std::move(graph);
}

std::vector<std::string> names_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) names.push_back(node.op_name());
  return names;
}

}  // namespace

TEST_CASE("foreach: one operator for each place, scalars of lists too") {
  GraphFixture f;
  const ValueId a = f.input("a", "f32[8]");
  const ValueId b = f.input("b", "f32[4,4]");
  const auto made = add_lists(f, "aten._foreach_mul.ScalarList", {{a, b}},
                              {{"scalars", std::vector<double>{2.0, 3.0}}},
                              {meta("f32[8]"), meta("f32[4,4]")});
  REQUIRE(made);
  const Graph graph = with_outputs(f, *made);
  CHECK(names_of(graph) ==
        std::vector<std::string>{"aten.mul.Scalar", "aten.mul.Scalar"});
  CHECK(graph.nodes()[1].op.float_arg("other") == 3.0);
  CHECK(graph.value((*made)[1]).meta == meta("f32[4,4]"));
}

TEST_CASE("foreach in place: every tensor has its update") {
  GraphFixture f;
  const ValueId a = f.input("a", "f32[8]", InputKind::kParameter, "a");
  const ValueId b = f.input("b", "f32[4]", InputKind::kParameter, "b");
  const ValueId c = f.input("c", "f32[8]");
  const ValueId d = f.input("d", "f32[4]");
  REQUIRE(add_lists(f, "aten._foreach_add_.List", {{a, b}, {c, d}}, {}, {}));
  const auto graph = std::move(f.builder).build();
  REQUIRE(graph);
  CHECK(names_of(*graph) ==
        std::vector<std::string>{"aten.add.Tensor", "aten.add.Tensor"});
  CHECK(graph->outputs().size() == 2);
}

TEST_CASE("foreach: numbers in one tensor leave the operator whole") {
  GraphFixture f;
  const ValueId a = f.input("a", "f32[8]");
  const ValueId b = f.input("b", "f32[4]");
  const ValueId numbers = f.input("numbers", "f32[2]");
  const auto made =
      add_lists(f, "aten._foreach_addcmul.Tensor", {{a, b}, {a, b}, {a, b}}, {},
                {meta("f32[8]"), meta("f32[4]")}, numbers);
  REQUIRE(made);
  const Graph graph = with_outputs(f, *made);
  CHECK(names_of(graph) ==
        std::vector<std::string>{"aten._foreach_addcmul.Tensor"});
}
