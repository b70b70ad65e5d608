// Small programs to plan, made by hand.
#pragma once

#include "support/result_checks.h"

#include <shardprop/graph/graph_builder.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

inline ValueId add_mm(GraphBuilder& builder, ValueId a, ValueId b,
                      const std::string& name) {
  return add_op(builder, "aten.mm.default",
                {{"", TensorArg{0}}, {"", TensorArg{1}}}, {a, b}, name.c_str());
}

// `op` is a view or a reshape.
inline ValueId add_view(GraphBuilder& builder, ValueId of,
                        std::vector<std::int64_t> size, const std::string& name,
                        const char* op = "aten.view.default") {
  return add_op(builder, op, {{"", TensorArg{0}}, {"", std::move(size)}}, {of},
                name.c_str());
}

// y = relu(x w1) w2
inline Graph mlp(const OpLibrary& library) {
  GraphBuilder b("mlp", library);
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
inline Graph linear_training(const OpLibrary& library) {
  GraphBuilder b("linear_training", library);
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

// Blocks x + (x w1)^2 w2 in a row, forward and backward: parameters net.w1_0,
// net.w2_0, ..., results out0, out1, ... of the blocks, gradients of these
// grad0, grad1, ... but for a factor; `gy` is that of the last.
inline Graph residual_training(const OpLibrary& library, int blocks,
                               const std::string& tokens,
                               const std::string& overlapped,
                               const std::string& inner) {
  GraphBuilder b("residual_training", library);
  const std::string stream = "bf16[" + tokens + "," + overlapped + "]";
  const std::string up = "bf16[" + overlapped + "," + inner + "]";
  const std::string down = "bf16[" + inner + "," + overlapped + "]";
  ValueId x = add_input(b, InputKind::kUser, "x", stream.c_str());
  const ValueId input = x;
  ValueId g = add_input(b, InputKind::kUser, "gy", stream.c_str());
  struct Block {
    ValueId w1, w2, x, h, a;
  };
  std::vector<Block> produced;
  for (int i = 0; i < blocks; ++i) {
    const std::string n = std::to_string(i);
    Block block;
    block.w1 = add_input(b, InputKind::kParameter, "w1_" + n, up.c_str());
    block.w2 = add_input(b, InputKind::kParameter, "w2_" + n, down.c_str());
    produced.push_back(block);
  }
  const std::vector<GivenArgument> two = {{"", TensorArg{0}},
                                          {"", TensorArg{1}}};
  const auto mm = [&](ValueId p, ValueId q, const std::string& name) {
    return add_op(b, "aten.mm.default", two, {p, q}, name.c_str());
  };
  const auto mul = [&](ValueId p, ValueId q, const std::string& name) {
    return add_op(b, "aten.mul.Tensor", two, {p, q}, name.c_str());
  };
  const auto add = [&](ValueId p, ValueId q, const std::string& name) {
    return add_op(b, "aten.add.Tensor", two, {p, q}, name.c_str());
  };
  const auto turned = [&](ValueId v, const std::string& name) {
    return add_op(b, "aten.permute.default",
                  {{"", TensorArg{0}}, {"", std::vector<std::int64_t>{1, 0}}},
                  {v}, name.c_str());
  };
  for (int i = 0; i < blocks; ++i) {
    const std::string n = std::to_string(i);
    Block& block = produced[static_cast<std::size_t>(i)];
    block.x = x;
    block.h = mm(x, block.w1, "up" + n);
    block.a = mul(block.h, block.h, "act" + n);
    x = add(x, mm(block.a, block.w2, "down" + n), "out" + n);
  }
  b.add_output({.value = x});
  for (int i = blocks - 1; i >= 0; --i) {
    const std::string n = std::to_string(i);
    const Block& block = produced[static_cast<std::size_t>(i)];
    const ValueId gw2 = mm(turned(block.a, "at" + n), g, "gw2_" + n);
    const ValueId ga = mm(g, turned(block.w2, "w2t" + n), "ga" + n);
    const ValueId gh = mul(ga, block.h, "gh" + n);
    const ValueId gw1 = mm(turned(block.x, "xt" + n), gh, "gw1_" + n);
    const ValueId gx = mm(gh, turned(block.w1, "w1t" + n), "gx" + n);
    g = add(g, gx, "grad" + n);
    b.add_output(
        {.value = gw1, .kind = OutputKind::kGradient, .target = block.w1});
    b.add_output(
        {.value = gw2, .kind = OutputKind::kGradient, .target = block.w2});
  }
  b.add_output({.value = g, .kind = OutputKind::kGradient, .target = input});
  return testing::value_of(std::move(b).build());
}

// Writes a row `what` into `into` at the row `at`.
inline ValueId written(GraphBuilder& b, ValueId into, ValueId at, ValueId what,
                       const char* name) {
  return add_op(b, "aten.index_copy.default",
                {{"", TensorArg{0}},
                 {"dim", std::int64_t{0}},
                 {"index", TensorArg{1}},
                 {"source", TensorArg{2}}},
                {into, at, what}, name);
}

// One token is written into a cache of 16 KiB, which is then read. The cache is
// updated if `is_updated`; an operator reads its old value afterwards if
// `reads_old`.
inline Graph decoding(const OpLibrary& library, bool is_updated,
                      bool reads_old) {
  GraphBuilder b("decoding", library);
  const ValueId cache = add_input(b, InputKind::kBuffer, "cache", "f32[64,64]");
  const ValueId at = add_input(b, InputKind::kUser, "at", "i64[1]");
  const ValueId token = add_input(b, InputKind::kUser, "token", "f32[1,64]");
  const std::vector<GivenArgument> two = {{"", TensorArg{0}},
                                          {"", TensorArg{1}}};
  const ValueId next = written(b, cache, at, token, "next");
  const ValueId read = add_op(b, "aten.mm.default", two, {token, next}, "read");
  const ValueId result =
      reads_old ? add_op(b, "aten.mm.default", two, {read, cache}, "old")
                : read;
  b.add_output({.value = result});
  if (is_updated) {
    b.add_output({.value = next, .kind = OutputKind::kUpdate, .target = cache});
  }
  return testing::value_of(std::move(b).build());
}

}  // namespace shardprop::test
