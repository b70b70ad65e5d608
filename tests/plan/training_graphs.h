// Random training graphs of a few operators, and the settings in which they are
// planned: prices, micro-batches, overlap and optimizers.
#pragma once

#include "plan/problem/plan_problem.h"
#include "plan/slow_links.h"
#include "plan/small_graphs.h"
#include "support/dear_topology.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace shardprop::test {

struct TrainingShape {
  int num_ops = 1;
  bool has_input = true;      // a tensor that is no parameter
  std::string dtype = "f32";  // of all values
};

// Gradients of one or two parameters are any values, which other operators,
// results and gradients may read, too.
inline Graph random_training_graph(std::mt19937& draw,
                                   const TrainingShape& shape) {
  GraphBuilder b("random_training", testing::standard_library());
  const auto below = [&](std::size_t n) { return draw() % n; };
  const std::string meta = shape.dtype + "[512,512]";
  std::vector<ValueId> values;
  if (shape.has_input) {
    values.push_back(add_input(b, InputKind::kUser, "x", meta.c_str()));
  }
  values.push_back(add_input(b, InputKind::kParameter, "w", meta.c_str()));
  std::vector<ValueId> parameters{values.back()};
  if (below(4) == 0) {
    parameters.push_back(
        add_input(b, InputKind::kParameter, "v", meta.c_str()));
    values.push_back(parameters.back());
  }
  const std::size_t num_inputs = values.size();
  std::vector<bool> used(num_inputs, true);
  const auto operand = [&] {
    const std::size_t v = below(values.size());
    used[v] = true;
    return values[v];
  };
  const std::vector<GivenArgument> two = {{"", TensorArg{0}},
                                          {"", TensorArg{1}}};
  for (int i = 0; i < shape.num_ops; ++i) {
    const std::string name = "n" + std::to_string(i);
    const bool is_product = below(3) != 0;
    if (is_product) {
      const ValueId left = operand();
      values.push_back(
          add_op(b, below(3) == 0 ? "aten.mul.Tensor" : "aten.mm.default", two,
                 {left, operand()}, name.c_str()));
    } else {
      values.push_back(add_op(b, "aten.relu.default", {{"", TensorArg{0}}},
                              {operand()}, name.c_str()));
    }
    used.push_back(false);
  }
  for (const ValueId parameter : parameters) {
    const std::size_t gradient = num_inputs + below(values.size() - num_inputs);
    used[gradient] = true;
    b.add_output({.value = values[gradient],
                  .kind = OutputKind::kGradient,
                  .target = parameter});
  }
  for (std::size_t v = num_inputs; v < values.size(); ++v) {
    if (!used[v]) b.add_output({.value = values[v]});
  }
  return testing::value_of(std::move(b).build());
}

// The settings of a problem.
struct TrainingSettings {
  PlanOptions options;
  Topology topology;
  std::string mesh;
};

inline TrainingSettings random_settings(std::mt19937& draw) {
  const auto below = [&](std::size_t n) { return draw() % n; };
  TrainingSettings out;
  out.options.overlap = std::array{0.0, 0.5, 1.0}[below(3)];
  out.options.accumulate = std::array{1, 2, 7, 8}[below(4)];
  out.options.optimizer = below(5) == 0   ? Optimizer::kNone
                          : below(2) == 0 ? Optimizer::kSgd
                                          : Optimizer::kAdamW;
  out.options.threads = 1;
  out.topology = below(2) == 0
                     ? testing::dear_compute()
                     : slow_links(std::array{0.25, 1.0, 8.0}[below(3)]);
  out.mesh = below(2) == 0 ? "2" : "4";
  return out;
}

inline PlanProblem problem_with(const Graph& graph,
                                const TrainingSettings& settings) {
  return testing::value_of(PlanProblem::create(
      graph, testing::value_of(DeviceMesh::parse(settings.mesh)),
      settings.topology, testing::standard_library(), settings.options));
}

}  // namespace shardprop::test
