// Plans a two-layer perceptron, built in place, on a mesh:
//
//   plan_mlp dp=2,tp=4
#include <shardprop/graph/graph_builder.h>
#include <shardprop/plan/make_plan.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace shardprop;

// down(relu(up(x))), 4096 tokens of width 1024.
Result<Graph> perceptron(const OpLibrary& library) {
  GraphBuilder builder("perceptron", library);
  const auto input = [&](InputKind kind, const char* name, const char* meta) {
    return TensorMeta::parse(meta).and_then([&](TensorMeta&& parsed) {
      return builder.add_input(
          {.kind = kind, .name = name, .meta = std::move(parsed)});
    });
  };
  const auto x = input(InputKind::kUser, "x", "bf16[4096,1024]");
  if (!x) return tl::unexpected(x.error());
  const auto up = input(InputKind::kParameter, "up", "bf16[1024,4096]");
  if (!up) return tl::unexpected(up.error());
  const auto down = input(InputKind::kParameter, "down", "bf16[4096,1024]");
  if (!down) return tl::unexpected(down.error());

  const std::vector<GivenArgument> one = {{"", TensorArg{0}}};
  const std::vector<GivenArgument> two = {{"", TensorArg{0}},
                                          {"", TensorArg{1}}};
  const auto hidden = builder.add_op("aten.mm.default", two, {*x, *up});
  if (!hidden) return tl::unexpected(hidden.error());
  const auto active = builder.add_op("aten.relu.default", one, *hidden);
  if (!active) return tl::unexpected(active.error());
  const auto y =
      builder.add_op("aten.mm.default", two, {active->front(), *down});
  if (!y) return tl::unexpected(y.error());
  builder.add_output({.value = y->front()});
  return std::move(builder).build();
}

int refuse(const Error& error) {
  std::fputs(to_string(error).c_str(), stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: plan_mlp MESH\n", stderr);
    return 2;
  }
  const Result<DeviceMesh> mesh = DeviceMesh::parse(argv[1]);
  if (!mesh) return refuse(mesh.error());
  const auto library = OpLibrary::standard();
  const Result<Graph> graph = perceptron(*library);
  if (!graph) return refuse(graph.error());
  const Result<Plan> plan =
      make_plan(*graph, *mesh, default_topology(), *library, PlanOptions{});
  if (!plan) return refuse(plan.error());

  for (const PlannedValue& value : plan->values) {
    std::printf("%-9s %s\n", value.name.c_str(),
                to_string(value.tensor.layout).c_str());
  }
  for (const PlannedNode& node : plan->nodes) {
    std::printf("%-9s %s\n", node.name.c_str(),
                to_string(node.outputs.front().tensor.layout).c_str());
  }
  std::printf(
      "%.1f us, %zu redistributions\n",
      static_cast<double>(plan->objective_nanoseconds.value_or(0)) / 1e3,
      plan->copies.size());
  return 0;
}
