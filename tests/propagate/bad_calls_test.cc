// Calls that cannot be: the same error from the propagator, from its cache and
// from the cache again, with what to do about it.
#include "propagate/fixtures.h"

#include <shardprop/propagate/caching_propagator.h>

#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::call;
using testing::layouts;
using testing::propagator_on;
using testing::shared_library;
using testing::value_of;

template <class T>
void check_error(const Result<T>& refused, ErrorCode code) {
  REQUIRE(!refused);
  CHECK(refused.error().code == code);
  CHECK(!refused.error().message.empty());
  CHECK(!refused.error().help.empty());
}

template <class Given>
void check_refused(std::string_view mesh, const OpSchema& op,
                   const std::vector<Given>& given, ErrorCode code) {
  CAPTURE(static_cast<int>(code));
  const ShardingPropagator plain = propagator_on(mesh);
  check_error(plain.propagate(op, given), code);
  const CachingPropagator cache = testing::cache_of(plain);
  auto reader = value_of(cache.reader());
  for (int i = 0; i < 2; ++i) {
    check_error(reader.propagate(op, given), code);
    check_error(cache.propagate(op, given), code);
  }
  CHECK(cache.statistics().entries == 0);
}

OpSchema plain_mm() {
  return call("aten.mm.default", {"f32[16,8]", "f32[8,4]"});
}

TEST_CASE("layouts that are too few, too many or do not fit") {
  check_refused("2", plain_mm(), layouts({"R"}), ErrorCode::kInvalidArgument);
  check_refused("2", plain_mm(), layouts({"R", "R", "R"}),
                ErrorCode::kInvalidArgument);
  check_refused("2", plain_mm(), layouts({"R", "S(2)"}),
                ErrorCode::kShardDimOutOfRange);
  check_refused("2", plain_mm(), layouts({"R,R", "R,R"}),
                ErrorCode::kPlacementCount);
}

TEST_CASE("specs on other meshes, or of other tensors") {
  const auto spec = [](const char* text, const char* mesh) {
    return value_of(TensorSpec::parse(text, value_of(DeviceMesh::parse(mesh))));
  };
  check_refused("2", plain_mm(),
                std::vector<TensorSpec>{spec("f32[16,8] S(0)", "2"),
                                        spec("f32[8,4] R", "4")},
                ErrorCode::kRedistributeMeshes);
  check_refused("2", plain_mm(),
                std::vector<TensorSpec>{spec("f32[16,8] S(0)", "2"),
                                        spec("f32[8,5] R", "2")},
                ErrorCode::kShapeMismatch);
}

TEST_CASE("no operator, and operands that it does not take") {
  check_refused("2", OpSchema{}, std::vector<Layout>{},
                ErrorCode::kInvalidArgument);
  check_refused("2", call("aten.mm.default", {"f32[16,8]", "f32[9,4]"}),
                layouts({"R", "R"}), ErrorCode::kShapeMismatch);
  CHECK(shared_library()->find("aten.mmm.default") == nullptr);
  const auto metas = [] {
    return std::vector<TensorMeta>{value_of(TensorMeta::parse("f32[16,8]"))};
  };
  const auto function = shared_library()->find("aten.mm.default");
  check_error(make_op_schema(function, {{"", TensorArg{0}}}, metas()),
              ErrorCode::kMissingArgument);
}

TEST_CASE("an in-place target may not be partial") {
  check_refused("2", call("aten.relu_.default", {"f32[4,8]"}),
                layouts({"P(sum)"}), ErrorCode::kNoStrategy);
  // The largest terms would become the smallest.
  check_refused("2,2", call("aten.neg_.default", {"f32[4,8]"}),
                layouts({"S(0),P(max)"}), ErrorCode::kNoStrategy);
}

}  // namespace
}  // namespace shardprop
