// Chains that a compiler makes one kernel of.
#include "plan/invariants.h"
#include "plan/search/solve_plan.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/ops/rule_text.h>
#include <shardprop/plan/make_plan.h>

#include <cstdint>
#include <map>
#include <string>

namespace shardprop {
namespace {

using testing::value_of;

constexpr std::int64_t kBytes = std::int64_t{4} * 8192 * 8192;
const std::vector<GivenArgument> kOne = {{"", TensorArg{0}}};
const std::vector<GivenArgument> kTwo = {{"", TensorArg{0}},
                                         {"", TensorArg{1}}};
const std::vector<GivenArgument> kTurn = {
    {"", TensorArg{0}}, {"", std::vector<std::int64_t>{1, 0}}};

std::int64_t passes(double count) {
  return traffic_nanoseconds(default_topology(),
                             count * static_cast<double>(kBytes));
}

Plan plan_of(const Graph& graph, const char* mesh, Fusion fusion,
             std::vector<const char*> pins = {}) {
  PlanOptions options;
  options.fusion = fusion;
  for (const char* pin : pins) {
    options.pins.push_back(value_of(Pin::parse(pin)));
  }
  Plan plan = value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                                 default_topology(),
                                 testing::standard_library(), options));
  test::check_plan(plan);
  return plan;
}

// Returns a graph of relu(exp(x)), transposed, times y. Its output is the
// matmul with w, and also the value `named`.
Graph chain(const char* named = nullptr) {
  GraphBuilder b("chain", testing::standard_library());
  const ValueId x = test::add_input(b, InputKind::kUser, "x", "f32[8192,8192]");
  const ValueId y = test::add_input(b, InputKind::kUser, "y", "f32[8192,8192]");
  const ValueId w =
      test::add_input(b, InputKind::kParameter, "w", "f32[8192,8192]");
  const ValueId e = test::add_op(b, "aten.exp.default", kOne, {x}, "e");
  const ValueId r = test::add_op(b, "aten.relu.default", kOne, {e}, "r");
  const ValueId t = test::add_op(b, "aten.permute.default", kTurn, {r}, "t");
  const ValueId m = test::add_op(b, "aten.mul.Tensor", kTwo, {t, y}, "m");
  const ValueId p = test::add_op(b, "aten.mm.default", kTwo, {m, w}, "p");
  b.add_output({.value = p});
  if (named != nullptr)
    b.add_output({.value = std::string(named) == "e" ? e : r});
  return value_of(std::move(b).build());
}

std::int64_t time_of(const Plan& plan,
                     std::initializer_list<const char*> names) {
  std::int64_t sum = 0;
  for (const PlannedNode& node : plan.nodes) {
    for (const char* name : names) {
      if (node.name == name) sum += node.compute_nanoseconds;
    }
  }
  return sum;
}

TEST_CASE("a chain costs a launch, what enters it and what leaves it") {
  const Plan apart = plan_of(chain(), "1", Fusion::kNone);
  const std::int64_t unfused = time_of(apart, {"e", "r", "t", "m"});
  // Three kernels of 2, 2 and 3 tensors.
  const std::int64_t ramps = 3 * ramp_nanoseconds(default_topology());
  CHECK(std::abs(unfused - (ramps + passes(7))) <= 4);
  const Plan fused = plan_of(chain(), "1", Fusion::kCompiler);
  const std::int64_t together = time_of(fused, {"e", "r", "t", "m"});
  CHECK(std::abs(together - (7000 + passes(3))) <= 4);  // x, y and m
  // The product is as it was.
  CHECK(time_of(fused, {"p"}) == time_of(apart, {"p"}));
}

TEST_CASE("an operator of another library is a kernel of its own") {
  const auto library = value_of(testing::standard_library().with(
      {.declaration = "acme::twice(Tensor x) -> Tensor",
       .definition = value_of(parse_rule("pointwise()"))}));
  GraphBuilder b("foreign", *library);
  const ValueId x = test::add_input(b, InputKind::kUser, "x", "f32[8192,8192]");
  const ValueId e = test::add_op(b, "aten.exp.default", kOne, {x}, "e");
  const ValueId f = test::add_op(b, "acme.twice.default", kOne, {e}, "f");
  const ValueId r = test::add_op(b, "aten.relu.default", kOne, {f}, "r");
  b.add_output({.value = r});
  const Graph graph = value_of(std::move(b).build());
  PlanOptions options;
  options.fusion = Fusion::kCompiler;
  const Plan plan = value_of(make_plan(graph, value_of(DeviceMesh::parse("1")),
                                       default_topology(), *library, options));
  // Each of the three kernels reads one tensor and writes one.
  for (const char* name : {"e", "f", "r"}) {
    CAPTURE(name);
    CHECK(time_of(plan, {name}) >= passes(2));
  }
}

TEST_CASE("a value that is read outside its kernel is written once") {
  const Plan fused = plan_of(chain("e"), "1", Fusion::kCompiler);
  CHECK(std::abs(time_of(fused, {"e", "r", "t", "m"}) - (7000 + passes(4))) <=
        4);
}

TEST_CASE("the kernels of a chain are counted with what they read and write") {
  const auto chain_nodes = {"e", "r", "t", "m"};
  const auto check = [&](const Plan& plan, std::int64_t kernels,
                         std::int64_t bytes, std::int64_t cut) {
    CHECK(plan.kernels.groups == 1);
    CHECK(plan.kernels.kernels == kernels);
    CHECK(plan.kernels.bytes == bytes);
    CHECK(plan.kernels.nanoseconds ==
          7000 * kernels + traffic_nanoseconds(default_topology(),
                                               static_cast<double>(bytes)));
    CHECK(plan.kernels.priced_nanoseconds == time_of(plan, chain_nodes) + cut);
  };
  // One kernel reads x and y, and writes m.
  check(plan_of(chain(), "1", Fusion::kCompiler), 1, 3 * kBytes, 0);
  // It writes e too, which the program returns.
  check(plan_of(chain("e"), "1", Fusion::kCompiler), 1, 4 * kBytes, 0);
  // A redistribution of e makes two kernels: the first one writes e, and the
  // second one reads it.
  const Plan cut =
      plan_of(chain(), "8", Fusion::kCompiler, {"x=S(0)", "e=S(0)", "r=S(1)"});
  std::int64_t boundary = 0;
  for (const PlannedCopy& copy : cut.copies) boundary += copy.cut_nanoseconds;
  REQUIRE(boundary > 0);
  check(cut, 2, 5 * kBytes / 8, boundary);
  CHECK(plan_of(chain(), "1", Fusion::kNone).kernels == PlannedKernels{});
}

TEST_CASE("eager PyTorch runs one kernel for what the exporter decomposed") {
  const Graph graph =
      value_of(load_graph("examples/graphs/tiny/gpt2_train_cuda.json.gz",
                          testing::standard_library()));
  const Plan plan = plan_of(graph, "1", Fusion::kNone);
  std::map<NodeId, std::int64_t> of_norm;  // by forward operator
  std::map<NodeId, int> operators;
  for (const Node& node : graph.nodes()) {
    if (node.decomposed_from != "aten.native_layer_norm_backward.default") {
      continue;
    }
    ++operators[node.forward_node];
    of_norm[node.forward_node] +=
        plan.nodes[node.id.index()].compute_nanoseconds;
  }
  REQUIRE(of_norm.size() == 5);  // two in each of two layers, and the last
  for (const auto& [norm, nanoseconds] : of_norm) {
    CAPTURE(graph.node(norm).name);
    CHECK(operators[norm] >= 13);
    // The gradient, the input, its mean and deviation, and the weight are read.
    // The gradients of input and weight are written. The gradient of the bias
    // reads the incoming gradient alone, and is a second kernel.
    const Node& forward = graph.node(norm);
    const auto bytes = [&](ValueId value) {
      const TensorMeta& meta = graph.value(value).meta;
      return static_cast<double>(meta.numel() * item_size(meta.dtype()));
    };
    double moved = 3 * bytes(forward.inputs[0]) + 2 * bytes(forward.inputs[1]);
    for (std::size_t o = 1; o < forward.outputs.size(); ++o) {
      moved += bytes(forward.outputs[o]);
    }
    const std::int64_t kernel =
        7000 + 7000 + traffic_nanoseconds(default_topology(), moved);
    CHECK(std::abs(nanoseconds - kernel) <= 20);
  }
  // A compiler joins more operators: the kernels are fewer.
  CHECK(plan_of(graph, "1", Fusion::kCompiler).kernels.groups > 0);
}

TEST_CASE("an operator alone between products stays as it was") {
  GraphBuilder b("alone", testing::standard_library());
  const ValueId x = test::add_input(b, InputKind::kUser, "x", "f32[8192,8192]");
  const ValueId p = test::add_op(b, "aten.mm.default", kTwo, {x, x}, "p");
  const ValueId r = test::add_op(b, "aten.relu.default", kOne, {p}, "r");
  const ValueId q = test::add_op(b, "aten.mm.default", kTwo, {r, r}, "q");
  b.add_output({.value = q});
  const Graph graph = value_of(std::move(b).build());
  CHECK(*plan_of(graph, "1", Fusion::kCompiler).objective_nanoseconds ==
        *plan_of(graph, "1", Fusion::kNone).objective_nanoseconds);
}

TEST_CASE("a redistribution inside a chain cuts it and pays") {
  // Pinned so that the chain changes its layout between e and r.
  const Plan plan =
      plan_of(chain(), "8", Fusion::kCompiler, {"x=S(0)", "e=S(0)", "r=S(1)"});
  std::int64_t cuts = 0;
  for (const PlannedCopy& copy : plan.copies) {
    if (copy.from != "e") continue;
    CHECK(copy.cut_nanoseconds ==
          7000 + traffic_nanoseconds(default_topology(),
                                     2 * static_cast<double>(kBytes) / 8));
    ++cuts;
  }
  CHECK(cuts == 1);
  // A copy of a value that is written anyway adds no kernel boundary.
  const Plan written = plan_of(chain("e"), "8", Fusion::kCompiler,
                               {"x=S(0)", "e=S(0)", "r=S(1)"});
  for (const PlannedCopy& copy : written.copies) {
    CHECK(copy.cut_nanoseconds == 0);
  }
}

TEST_CASE("fusion never makes a plan dearer by more than its launches") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph =
      test::residual_training(library, 2, "4096", "1024", "4096");
  for (const char* mesh : {"1", "8", "2,4"}) {
    const Plan fused = plan_of(graph, mesh, Fusion::kCompiler);
    const Plan apart = plan_of(graph, mesh, Fusion::kNone);
    CHECK(*fused.objective_nanoseconds <=
          *apart.objective_nanoseconds + 7000 * 8);
  }
}

}  // namespace
}  // namespace shardprop
