// A large image is cut over space; a batch of images is cut as a batch.

#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>

#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::standard_library;
using testing::value_of;

// The graph has three convolutions of three rows and columns, one after
// another.
Plan plan_of_images(const std::string& images) {
  using Ints = std::vector<std::int64_t>;
  const std::vector<GivenArgument> conv = {
      {"", TensorArg{0}},         {"", TensorArg{1}},
      {"bias", NoneArg{}},        {"stride", Ints{1, 1}},
      {"padding", Ints{1, 1}},    {"dilation", Ints{1, 1}},
      {"transposed", false},      {"output_padding", Ints{0, 0}},
      {"groups", std::int64_t{1}}};
  GraphBuilder b("images", standard_library());
  ValueId x = test::add_input(b, InputKind::kUser, "x", images.c_str());
  for (int i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    const ValueId w = test::add_input(b, InputKind::kParameter, "w" + number,
                                      "bf16[64,64,3,3]");
    x = test::add_op(b, "aten.convolution.default", conv, {x, w},
                     ("y" + number).c_str());
  }
  b.add_output({.value = x});
  const Graph graph = value_of(std::move(b).build());
  return value_of(make_plan(graph, value_of(DeviceMesh::parse("4")),
                            default_topology(), standard_library(), {}));
}

std::string lies(const PlannedNode& node) {
  return to_string(node.outputs.front().tensor.layout);
}

TEST_CASE("one large image is cut over its rows, with a halo") {
  const Plan plan = plan_of_images("bf16[1,64,2048,2048]");
  REQUIRE(plan.status == PlanStatus::kOptimal);
  for (const PlannedNode& node : plan.nodes) {
    CAPTURE(node.name);
    CHECK(lies(node) == "S(2)");
    CHECK(node.inside.size() == 2);
  }
}

TEST_CASE("a batch that all ranks can share is cut as a batch") {
  const Plan plan = plan_of_images("bf16[4,64,2048,2048]");
  REQUIRE(plan.status == PlanStatus::kOptimal);
  for (const PlannedNode& node : plan.nodes) {
    CAPTURE(node.name);
    CHECK(lies(node) == "S(0)");
    CHECK(node.inside.empty());
  }
}

}  // namespace
}  // namespace shardprop
