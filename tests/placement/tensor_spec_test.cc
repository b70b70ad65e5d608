#include <shardprop/placement/tensor_spec.h>

#include "support/placement_gen.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace shardprop {
namespace {

using testing::property;
using testing::some_layout;
using testing::some_mesh;
using testing::some_shape;
using testing::value_of;

DeviceMesh mesh_of(std::string_view text) {
  return value_of(DeviceMesh::parse(text));
}

TEST_CASE("specs as they are written, in canonical form") {
  const DeviceMesh mesh = mesh_of("dp=2,tp=4");
  const TensorSpec spec =
      value_of(TensorSpec::parse("bf16[8,2048,4096] S(0),R", mesh));
  CHECK(to_string(spec) == "bf16[8,2048,4096] S(0),R");
  CHECK(spec.placement(0) == Placement::shard(0));
  CHECK(spec.meta().size(2) == 4096);
  CHECK(spec.mesh() == mesh);
  const TensorSpec strided =
      value_of(TensorSpec::parse("f32[16,8] SS(0,4),S(0)", mesh));
  CHECK(to_string(strided) == "f32[16,8] S(0)@1,S(0)@0");
  CHECK(strided ==
        value_of(TensorSpec::parse("f32[16,8] S(0)@1,S(0)@0", mesh)));
  CHECK(to_string(TensorSpec()) == "f32[] R");
}

TEST_CASE("layouts that do not fit the mesh or the tensor") {
  const DeviceMesh mesh = mesh_of("dp=2,tp=4");
  const auto parse = [&](std::string_view text) {
    return TensorSpec::parse(text, mesh);
  };
  CHECK_CODE(parse("f32[8]"), ErrorCode::kPlacementSyntax);
  CHECK_CODE(parse("f32[8] "), ErrorCode::kPlacementSyntax);
  CHECK_CODE(parse("f32[8]  R,R"), ErrorCode::kPlacementSyntax);
  CHECK_CODE(parse("f32[8 R,R"), ErrorCode::kTensorMeta);
  CHECK_CODE(parse("f31[8] R,R"), ErrorCode::kDTypeSyntax);
  CHECK_CODE(parse("f32[8] R"), ErrorCode::kPlacementCount);
  CHECK_CODE(parse("f32[8] R,R,R"), ErrorCode::kPlacementCount);
  CHECK_CODE(parse("f32[8] S(1),R"), ErrorCode::kShardDimOutOfRange);
  CHECK_CODE(parse("f32[] S(0),R"), ErrorCode::kShardDimOutOfRange);
  CHECK_CODE(parse("f32[8] P(bor),R"), ErrorCode::kPartialDType);
  CHECK_CODE(parse("c64[8] P(max),R"), ErrorCode::kPartialDType);
  CHECK_CODE(parse("i64[8] P(avg),R"), ErrorCode::kPartialDType);
  CHECK_CODE(parse("f32[8] P(sum),P(max)"), ErrorCode::kMixedPartials);
  CHECK(parse("i64[8] P(avg,f32),R").has_value());
  CHECK(parse("f32[8] S(1),R").error().help == "name a dim between 0 and 0");
  CHECK(parse("f32[] S(0),R").error().help ==
        "a scalar is replicated or partial");
}

TEST_CASE("a split factor beyond those that can be listed") {
  const auto meta = value_of(TensorMeta::contiguous({64}, DType::kF32));
  const auto layout =
      value_of(Layout::create({Placement::strided_shard(0, 2'000'000'000)}));
  CHECK_CODE(check_layout(layout, value_of(DeviceMesh::parse("2")), meta),
             ErrorCode::kSplitFactor);
}

TEST_CASE("a spec reads back what it prints") {
  property(30000, [] {
    const DeviceMesh mesh = some_mesh();
    const int rank = *rc::gen::inRange(0, 4);
    const Layout layout = some_layout(mesh.ndim(), rank, {.partial = false});
    const auto meta = TensorMeta::contiguous(some_shape(rank), DType::kBF16);
    const auto spec = TensorSpec::create(mesh, layout, *meta);
    RC_ASSERT(spec.has_value());
    const auto read = TensorSpec::parse(to_string(*spec), mesh);
    RC_ASSERT(read.has_value());
    RC_ASSERT(*read == *spec);
    RC_ASSERT(std::hash<TensorSpec>{}(*read) == std::hash<TensorSpec>{}(*spec));
    RC_ASSERT(spec->layout() == canonical(layout, mesh, meta->shape()));
  });
}

TEST_CASE("mesh, layout, shape and dtype all make a spec") {
  const DeviceMesh mesh = mesh_of("2,2");
  std::unordered_set<TensorSpec> seen;
  for (const char* text :
       {"f32[8,8] S(0),R", "f32[8,8] R,S(0)", "f64[8,8] S(0),R",
        "f32[8,4] S(0),R", "f32[8,8]{1,8} S(0),R"}) {
    seen.insert(value_of(TensorSpec::parse(text, mesh)));
  }
  seen.insert(value_of(TensorSpec::parse("f32[8,8] S(0),R", mesh_of("4,1"))));
  seen.insert(value_of(TensorSpec::parse("f32[8,8] S(0),R", mesh)));
  CHECK(seen.size() == 6);
}

}  // namespace
}  // namespace shardprop
