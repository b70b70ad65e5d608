// Tests that planning depends on an operator's semantics, not on its name.

#include "graph/analysis/dim_roles.h"
#include "plan/small_graphs.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::standard_library;
using testing::value_of;

const std::vector<GivenArgument> kTwoTensors = {{"", TensorArg{0}},
                                                {"", TensorArg{1}}};

Plan plan_pinned_by_name(const Graph& graph,
                         const std::vector<std::string>& pins) {
  PlanOptions options;
  options.overlap = 0.8;
  for (const std::string& pin : pins) {
    options.pins.push_back(value_of(Pin::parse(pin)));
  }
  return value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=8")),
                            default_topology(), standard_library(), options));
}

// y = x x x copy(w)
Graph with_copy(const char* op, std::vector<GivenArgument> options,
                const char* weight) {
  GraphBuilder b("copied", standard_library());
  const ValueId x =
      test::add_input(b, InputKind::kUser, "x", "bf16[4096,4096]");
  const ValueId w = test::add_input(b, InputKind::kParameter, "w", weight);
  const ValueId h =
      test::add_op(b, "aten.mm.default", kTwoTensors, {x, x}, "h");
  const ValueId h2 =
      test::add_op(b, "aten.mm.default", kTwoTensors, {h, x}, "h2");
  options.insert(options.begin(), {"", TensorArg{0}});
  const ValueId copy = test::add_op(b, op, std::move(options), {w}, "copy");
  b.add_output({.value = test::add_op(b, "aten.mm.default", kTwoTensors,
                                      {h2, copy}, "y")});
  return value_of(std::move(b).build());
}

TEST_CASE("a weight is gathered ahead through a cast of any name") {
  const GivenArgument bf16 = {"dtype", DType::kBF16};
  const std::vector<std::string> pins = {"stored:net.w=S(0)", "x=S(0)"};
  const Plan known = plan_pinned_by_name(
      with_copy("aten._to_copy.default", {bf16}, "f32[4096,4096]"), pins);
  CHECK(known.summary.overlapped_nanoseconds > 0);
  for (const char* op :
       {"aten.to.dtype", "prims.convert_element_type.default"}) {
    CAPTURE(op);
    const Plan plan =
        plan_pinned_by_name(with_copy(op, {bf16}, "f32[4096,4096]"), pins);
    CHECK(plan.objective_nanoseconds == known.objective_nanoseconds);
    CHECK(plan.summary == known.summary);
    const auto kind_of_copy = [](const Plan& of) {
      return std::find_if(
                 of.nodes.begin(), of.nodes.end(),
                 [](const PlannedNode& node) { return node.name == "copy"; })
          ->kind;
    };
    CHECK(kind_of_copy(plan) == OpKind::kPointwise);
    CHECK(kind_of_copy(known) == OpKind::kPointwise);
  }
}

// `Spaces` has the index spaces of a graph's operators.
class Spaces {
 public:
  explicit Spaces(const Graph& graph) {
    for (const Node& node : graph.nodes()) {
      owned_.push_back(std::make_unique<IndexSpace>(
          value_of(standard_library().index_space(node.op))));
    }
  }
  std::vector<const IndexSpace*> all() const {
    std::vector<const IndexSpace*> out;
    for (const auto& space : owned_) out.push_back(space.get());
    return out;
  }

 private:
  std::vector<std::unique_ptr<IndexSpace>> owned_;
};

bool has(const Graph& graph, DimRole role) {
  const Spaces spaces(graph);
  return DimRoles(graph, spaces.all()).has(role);
}

Graph product(const char* op, const char* input, const char* weight) {
  GraphBuilder b("product", standard_library());
  const ValueId x = test::add_input(b, InputKind::kUser, "x", input);
  const ValueId w = test::add_input(b, InputKind::kParameter, "w", weight);
  b.add_output({.value = test::add_op(b, op, kTwoTensors, {x, w}, "y")});
  return value_of(std::move(b).build());
}

TEST_CASE("experts are matrices, not the kernels of a convolution") {
  CHECK(has(product("aten.bmm.default", "f32[4,16,8]", "f32[4,8,6]"),
            DimRole::kExperts));
  CHECK_FALSE(
      has(product("aten.conv1d.default", "f32[16,64,32]", "f32[64,64,3]"),
          DimRole::kExperts));
  GraphBuilder b("bilinear", standard_library());
  const ValueId x = test::add_input(b, InputKind::kUser, "x", "f32[16,8]");
  const ValueId z = test::add_input(b, InputKind::kUser, "z", "f32[16,6]");
  const ValueId w =
      test::add_input(b, InputKind::kParameter, "w", "f32[5,8,6]");
  std::vector<GivenArgument> three = kTwoTensors;
  three.push_back({"", TensorArg{2}});
  b.add_output({.value = test::add_op(b, "aten.bilinear.default", three,
                                      {x, z, w}, "y")});
  CHECK_FALSE(has(value_of(std::move(b).build()), DimRole::kExperts));
}

TEST_CASE("rows of a parameter are looked up by any name") {
  const auto looked_up = [](const char* op, std::vector<GivenArgument> args) {
    GraphBuilder b("table", standard_library());
    const ValueId ids = test::add_input(b, InputKind::kUser, "ids", "i64[8]");
    const ValueId w =
        test::add_input(b, InputKind::kParameter, "w", "f32[128,16]");
    b.add_output(
        {.value = test::add_op(b, op, std::move(args), {w, ids}, "y")});
    return value_of(std::move(b).build());
  };
  CHECK(
      has(looked_up("aten.embedding.default", kTwoTensors), DimRole::kTensor));
  CHECK(has(looked_up("aten.index_select.default", {{"", TensorArg{0}},
                                                    {"dim", std::int64_t{0}},
                                                    {"index", TensorArg{1}}}),
            DimRole::kTensor));
}

}  // namespace
}  // namespace shardprop
