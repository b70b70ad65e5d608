// Small random programs over f32[8,8], some with a gradient of sorts.
#pragma once

#include "plan/small_graphs.h"
#include "support/result_checks.h"

#include <random>
#include <string>
#include <vector>

namespace shardprop::test {

inline Graph random_graph(const OpLibrary& library, std::mt19937& draw,
                          int num_ops) {
  GraphBuilder b("random", library);
  const auto below = [&](std::size_t n) { return draw() % n; };
  const bool trained = below(2) == 0;
  std::vector<ValueId> values{
      add_input(b, InputKind::kUser, "x", "f32[512,512]"),
      add_input(b, InputKind::kParameter, "w", "f32[512,512]")};
  std::vector<bool> used(2, false);
  const auto operand = [&] {
    const std::size_t v = below(values.size());
    used[v] = true;
    return values[v];
  };
  for (int i = 0; i < num_ops; ++i) {
    const std::string name = "n" + std::to_string(i);
    const std::vector<GivenArgument> two = {{"", TensorArg{0}},
                                            {"", TensorArg{1}}};
    const std::vector<std::int64_t> swap = {1, 0};
    ValueId produced;
    switch (below(4)) {
      case 0:
        produced = add_op(b, "aten.mm.default", two, {operand(), operand()},
                          name.c_str());
        break;
      case 1:
        produced = add_op(b, "aten.mul.Tensor", two, {operand(), operand()},
                          name.c_str());
        break;
      case 2:
        produced = add_op(b, "aten.relu.default", {{"", TensorArg{0}}},
                          {operand()}, name.c_str());
        break;
      default:
        produced =
            add_op(b, "aten.permute.default", {{"", TensorArg{0}}, {"", swap}},
                   {operand()}, name.c_str());
        break;
    }
    values.push_back(produced);
    used.push_back(false);
  }
  // Values that no operator reads are outputs; the last one is the gradient of
  // w.
  for (std::size_t v = 2; v < values.size(); ++v) {
    if (used[v] && v + 1 < values.size()) continue;
    if (trained && v + 1 == values.size()) {
      b.add_output({.value = values[v],
                    .kind = OutputKind::kGradient,
                    .target = values[1]});
    } else {
      b.add_output({.value = values[v]});
    }
  }
  return testing::value_of(std::move(b).build());
}

}  // namespace shardprop::test
