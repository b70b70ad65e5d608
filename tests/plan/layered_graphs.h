// Random training graphs of a few equal layers, and a head.
#pragma once

#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/graph/recompute.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace shardprop::test {

// LayeredGraph builds x -> layers -> head, with the gradients of all
// parameters. A layer is a matmul with its own parameter, and operators after it:
// relu, the layer's input added or multiplied, or relu of the sum.
class LayeredGraph {
 public:
  enum class After : std::uint8_t { kNothing, kRelu, kAdd, kMul, kAddRelu };
  struct Shape {
    int layers = 2;
    After after = After::kNothing;
    bool has_head = true;
    bool trains = true;
    // If not, the gradient of the input is a result, which forward nodes make.
    bool has_backward_phase = true;
    std::string dtype = "f32";
  };

  explicit LayeredGraph(const Shape& shape) : shape_(shape) {}

  Graph build() {
    const std::string meta = shape_.dtype + "[512,512]";
    const ValueId in = add_input(b_, InputKind::kUser, "x", meta.c_str());
    ValueId x = in;
    struct Layer {
      ValueId x, w, h;
    };
    std::vector<Layer> layers;
    for (int i = 0; i < shape_.layers; ++i) {
      Layer layer{x, parameter("w" + std::to_string(i)), {}};
      layer.h = mm(x, layer.w);
      if (shape_.after == After::kAddRelu) {
        layer.h = op("aten.add.Tensor", {layer.h, x});
      }
      x = after(layer.h, x);
      layers.push_back(layer);
    }
    const ValueId last = x;
    ValueId head;
    if (shape_.has_head) {
      head = parameter("head");
      x = mm(x, head);
    }
    b_.add_output({.value = x});
    if (!shape_.trains) return testing::value_of(std::move(b_).build());
    ValueId g = add_input(b_, InputKind::kUser, "gy", meta.c_str());
    if (shape_.has_head) g = backward(last, head, g);
    for (std::size_t i = layers.size(); i-- > 0;) {
      const Layer& layer = layers[i];
      if (shape_.after == After::kRelu || shape_.after == After::kAddRelu) {
        g = op("aten.mul.Tensor", {g, layer.h});
      }
      const ValueId into = g;
      if (shape_.after == After::kMul) g = op("aten.mul.Tensor", {g, layer.x});
      g = backward(layer.x, layer.w, g);
      if (shape_.after == After::kAdd || shape_.after == After::kAddRelu) {
        g = op("aten.add.Tensor", {into, g});
      }
    }
    if (shape_.has_backward_phase) {
      b_.add_output({.value = g, .kind = OutputKind::kGradient, .target = in});
    } else {
      b_.add_output({.value = g});
    }
    return testing::value_of(std::move(b_).build());
  }

 private:
  ValueId op(const char* name, std::vector<ValueId> inputs) {
    std::vector<GivenArgument> arguments;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      arguments.push_back({"", TensorArg{static_cast<int>(i)}});
    }
    return add_op(b_, name, std::move(arguments), std::move(inputs),
                  ("n" + std::to_string(ops_++)).c_str());
  }
  ValueId mm(ValueId a, ValueId b) { return op("aten.mm.default", {a, b}); }
  ValueId turned(ValueId value) {
    return add_op(b_, "aten.permute.default",
                  {{"", TensorArg{0}}, {"", std::vector<std::int64_t>{1, 0}}},
                  {value}, ("n" + std::to_string(ops_++)).c_str());
  }
  ValueId parameter(const std::string& name) {
    return add_input(b_, InputKind::kParameter, name,
                     (shape_.dtype + "[512,512]").c_str());
  }
  ValueId after(ValueId h, ValueId x) {
    switch (shape_.after) {
      case After::kNothing:
        return h;
      case After::kRelu:
      case After::kAddRelu:
        return op("aten.relu.default", {h});
      case After::kAdd:
        return op("aten.add.Tensor", {h, x});
      case After::kMul:
        return op("aten.mul.Tensor", {h, x});
    }
    return h;
  }
  // Adds the gradient of `w`, and returns that of `x`.
  ValueId backward(ValueId x, ValueId w, ValueId g) {
    const ValueId of_w = mm(turned(x), g);
    b_.add_output({.value = of_w, .kind = OutputKind::kGradient, .target = w});
    return mm(g, turned(w));
  }

  Shape shape_;
  GraphBuilder b_{"layered", testing::standard_library()};
  int ops_ = 0;
};

inline Graph random_layered_graph(std::mt19937& draw, int most_layers = 3) {
  LayeredGraph::Shape shape;
  shape.layers =
      2 + static_cast<int>(draw() % static_cast<unsigned>(most_layers - 1));
  shape.after = static_cast<LayeredGraph::After>(draw() % 4);
  shape.has_head = draw() % 2 == 0;
  shape.trains = draw() % 4 != 0;
  shape.has_backward_phase = draw() % 4 != 0;
  if (draw() % 4 == 0) shape.dtype = "bf16";
  return LayeredGraph(shape).build();
}

// Returns a graph as it runs, by a random rule for what runs again. Null if it has no
// such program: a rule is for equal layers.
inline std::shared_ptr<const Graph> random_running(Graph graph,
                                                   std::mt19937& draw) {
  const bool trains = graph.has_backward();
  auto plain = std::make_shared<const Graph>(std::move(graph));
  Running running{.is_compiled = draw() % 2 == 0};
  const std::array rules{"none", "full", "selective", "full:1", "full:2"};
  const std::size_t rule = draw() % rules.size();
  if (trains)
    running.recompute = testing::value_of(Recompute::parse(rules[rule]));
  auto made = running_graph(plain, testing::standard_library(), running);
  return made ? *made : nullptr;
}

}  // namespace shardprop::test
