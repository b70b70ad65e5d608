// Some redistributions let their tensors share a flat buffer, others do not.
#include "redistribute/flat_move.h"

#include "support/result_checks.h"

#include <shardprop/placement/tensor_spec.h>
#include <shardprop/redistribute/planner.h>

#include <doctest/doctest.h>

#include <optional>

namespace shardprop {
namespace {

using testing::value_of;

std::optional<FlatMove> move_of(const char* mesh_text, const char* meta_text,
                                const char* src, const char* dst) {
  const DeviceMesh mesh = value_of(DeviceMesh::parse(mesh_text));
  const TensorMeta meta = value_of(TensorMeta::parse(meta_text));
  const auto spec = [&](const char* layout) {
    return value_of(
        TensorSpec::create(mesh, value_of(Layout::parse(layout)), meta));
  };
  const RedistributePlan plan = value_of(plan_redistribution(
      spec(src), spec(dst), default_topology(), RedistributeOptions()));
  return flat_move(mesh, meta, plan.steps);
}

TEST_CASE("even gathers and reductions are flat moves") {
  auto move = move_of("dp=4", "f32[8,6]", "S(0)", "R");
  REQUIRE(move);
  CHECK(move->tensor_dim == 0);
  CHECK(move->ranks == 4);
  CHECK(move->source == Dims{2, 6});
  CHECK(move->result == Dims{8, 6});
  move = move_of("dp=4", "f32[6,8]", "P(sum)", "S(1)");
  REQUIRE(move);
  CHECK(move->tensor_dim == 1);
  CHECK(move->source == Dims{6, 8});
  CHECK(move->result == Dims{6, 2});
  move = move_of("dp=4", "f32[7]", "P(sum)", "R");
  REQUIRE(move);
  CHECK_FALSE(move->tensor_dim);
}

TEST_CASE("another mesh dim may shard another tensor dim") {
  const auto move = move_of("dp=2,tp=2", "f32[8,6]", "S(0),S(1)", "R,S(1)");
  REQUIRE(move);
  CHECK(move->ranks == 2);
  CHECK(move->source == Dims{4, 3});
  CHECK(move->result == Dims{8, 3});
  CHECK_FALSE(move_of("dp=2,tp=2", "f32[8,6]", "S(0),S(0)", "S(0),R"));
}

TEST_CASE("a gather over two mesh dims is one flat move") {
  const auto move = move_of("dp=2,cp=2", "f32[8,6]", "S(0),S(0)", "R,R");
  REQUIRE(move);
  CHECK(move->ranks == 4);
}

TEST_CASE("a reduction over two mesh dims may be two flat moves") {
  CHECK(move_of("pod=2,dp=2", "f32[4098,4096]", "P(sum),P(sum)", "R,S(0)"));
}

TEST_CASE("uneven shards, other reductions and other kinds are no flat moves") {
  CHECK_FALSE(move_of("dp=4", "f32[6,8]", "S(0)", "R"));
  CHECK_FALSE(move_of("dp=4", "f32[8,8]", "P(max)", "R"));
  CHECK_FALSE(move_of("dp=4", "f32[8,8]", "P(avg)", "S(0)"));
  CHECK_FALSE(move_of("dp=4", "f32[8,8]", "S(0)", "S(1)"));
  CHECK_FALSE(move_of("dp=4", "f32[8,8]", "R", "S(0)"));
}

TEST_CASE("collectives of one buffer have equal kind, groups and dtype") {
  CollectiveStep a;
  a.kind = CollectiveKind::kAllGather;
  a.mesh_dims = {0};
  CollectiveStep b = a;
  b.nanoseconds = 7;
  CHECK(share_buffer(a, b));
  b.mesh_dims = {1};
  CHECK_FALSE(share_buffer(a, b));
  b = a;
  b.dtype = DType::kBF16;
  CHECK_FALSE(share_buffer(a, b));
  b = a;
  b.kind = CollectiveKind::kAllReduce;
  CHECK_FALSE(share_buffer(a, b));
  a.kind = b.kind = CollectiveKind::kReduceScatter;
  a.reduce_op = ReduceOp::kSum;
  b.reduce_op = ReduceOp::kMax;
  CHECK_FALSE(share_buffer(a, b));
}

}  // namespace
}  // namespace shardprop
