// Training graphs of matmul layers whose optimum overlaps transfers: the batch is
// sharded, so that matrices are gathered and gradients are reduced.
#pragma once

#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/plan_question.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shardprop::test {

inline ValueId transposed(GraphBuilder& b, ValueId value,
                          const std::string& name) {
  return add_op(b, "aten.permute.default",
                {{"", TensorArg{0}}, {"", std::vector<std::int64_t>{1, 0}}},
                {value}, name.c_str());
}

inline ValueId product(GraphBuilder& b, ValueId left, ValueId right,
                       const std::string& name) {
  return add_op(b, "aten.mm.default", {{"", TensorArg{0}}, {"", TensorArg{1}}},
                {left, right}, name.c_str());
}

// h1 = x w1, h2 = h1 w2, ... and the gradients of all w. The gradient of the
// last h is the last h itself.
inline Graph layered_training(int layers) {
  GraphBuilder b("layered_training", testing::standard_library());
  const auto named = [](const char* name, int layer) {
    return name + std::to_string(layer);
  };
  std::vector<ValueId> h{add_input(b, InputKind::kUser, "x", "f32[512,512]")};
  std::vector<ValueId> w;
  for (int i = 1; i <= layers; ++i) {
    w.push_back(add_input(b, InputKind::kParameter, named("w", i).c_str(),
                          "f32[512,512]"));
  }
  for (int i = 1; i <= layers; ++i) {
    h.push_back(product(b, h.back(), w[static_cast<std::size_t>(i) - 1],
                        named("h", i)));
  }
  b.add_output({.value = h.back()});
  ValueId d = h.back();
  for (int i = layers; i >= 1; --i) {
    const auto at = static_cast<std::size_t>(i) - 1;
    const ValueId left = transposed(b, h[at], named("ht", i));
    b.add_output({.value = product(b, left, d, named("g", i)),
                  .kind = OutputKind::kGradient,
                  .target = w[at]});
    if (i == 1) break;
    d = product(b, d, transposed(b, w[at], named("wt", i)), named("d", i - 1));
  }
  return testing::value_of(std::move(b).build());
}

// Returns the pins that shard the batch of all values but the gradients.
inline std::vector<Pin> pins_of_batch(int layers) {
  std::vector<Pin> out{testing::value_of(Pin::parse("x=S(0)"))};
  for (int n = 1; n <= layers; ++n) {
    for (const char* name : {"h", "d"}) {
      if (n == layers && *name == 'd') continue;
      const std::string pin = name + std::to_string(n) + "=S(0)";
      out.push_back(testing::value_of(Pin::parse(pin)));
    }
  }
  return out;
}

}  // namespace shardprop::test
