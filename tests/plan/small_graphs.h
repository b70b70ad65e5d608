// Small programs to plan, made by hand.
#pragma once

#include "support/result_checks.h"

#include <shardprop/graph/graph_builder.h>

#include <string>
#include <utility>

namespace shardprop::test {

inline ValueId add_input(GraphBuilder& builder, InputKind kind,
                         const std::string& name, const char* meta) {
  return testing::value_of(builder.add_input(
      {.kind = kind,
       .name = name,
       .qualified_name = kind == InputKind::kUser ? "" : "net." + name,
       .meta = testing::value_of(TensorMeta::parse(meta))}));
}

inline ValueId add_op(GraphBuilder& builder, const char* op,
                      std::vector<GivenArgument> arguments,
                      std::vector<ValueId> inputs, const char* name) {
  return testing::value_of(
             builder.add_op(op, std::move(arguments), std::move(inputs), name))
      .front();
}

// y = relu(x w1) w2
inline Graph mlp(const OpRegistry& registry) {
  GraphBuilder b("mlp", registry);
  const ValueId x = add_input(b, InputKind::kUser, "x", "f32[64,32]");
  const ValueId w1 = add_input(b, InputKind::kParameter, "w1", "f32[32,128]");
  const ValueId w2 = add_input(b, InputKind::kParameter, "w2", "f32[128,32]");
  const std::vector<GivenArgument> two = {{"", TensorArg{0}},
                                          {"", TensorArg{1}}};
  const ValueId h = add_op(b, "aten.mm.default", two, {x, w1}, "up");
  const ValueId a =
      add_op(b, "aten.relu.default", {{"", TensorArg{0}}}, {h}, "act");
  const ValueId y = add_op(b, "aten.mm.default", two, {a, w2}, "down");
  b.add_output({.value = y});
  return testing::value_of(std::move(b).build());
}

// y = x w with its gradient, given that of y, and a buffer that is counted up.
inline Graph linear_training(const OpRegistry& registry) {
  GraphBuilder b("linear_training", registry);
  const ValueId x = add_input(b, InputKind::kUser, "x", "f32[4096,1024]");
  const ValueId gy = add_input(b, InputKind::kUser, "gy", "f32[4096,1024]");
  const ValueId w = add_input(b, InputKind::kParameter, "w", "f32[1024,1024]");
  const ValueId n = add_input(b, InputKind::kBuffer, "n", "f32[]");
  const std::vector<GivenArgument> two = {{"", TensorArg{0}},
                                          {"", TensorArg{1}}};
  const ValueId y = add_op(b, "aten.mm.default", two, {x, w}, "y");
  const ValueId xt = add_op(
      b, "aten.permute.default",
      {{"", TensorArg{0}}, {"", std::vector<std::int64_t>{1, 0}}}, {x}, "xt");
  const ValueId gw = add_op(b, "aten.mm.default", two, {xt, gy}, "gw");
  const ValueId more =
      add_op(b, "aten.add.Scalar", {{"", TensorArg{0}}, {"", std::int64_t{1}}},
             {n}, "more");
  b.add_output({.value = y});
  b.add_output({.value = gw, .kind = OutputKind::kGradient, .target = w});
  b.add_output({.value = more, .kind = OutputKind::kUpdate, .target = n});
  return testing::value_of(std::move(b).build());
}

}  // namespace shardprop::test
