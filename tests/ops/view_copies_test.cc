// Tests when a view is free and when it copies, and operators that copy the
// elements of a view.

#include "ops/applied_op.h"

#include <shardprop/ops/op_library.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace shardprop;           // NOLINT(google-build-using-namespace)
using namespace shardprop::testing;  // NOLINT(google-build-using-namespace)

namespace {

Argument ints(std::vector<std::int64_t> list) { return list; }

bool is_free(std::string_view name, std::string_view tensor,
             const std::vector<GivenArgument>& rest = {}) {
  return space_of(applied(name, {tensor}, rest)).is_free;
}

}  // namespace

TEST_CASE("a reshape is free where strides allow a view, and else a copy") {
  CHECK(is_free("aten.ravel", "f32[6,8]"));
  CHECK_FALSE(is_free("aten.ravel", "f32[6,8]{1,6}"));
  CHECK(is_free("aten.flatten.using_ints", "f32[6,8]"));
  CHECK_FALSE(is_free("aten.flatten.using_ints", "f32[6,8]{1,6}"));
  CHECK(is_free("aten.reshape", "f32[6,8]{1,6}", {{"shape", ints({6, 2, 4})}}));
  CHECK_FALSE(
      is_free("aten.reshape", "f32[6,8]{1,6}", {{"shape", ints({8, 6})}}));
  CHECK(is_free("aten.view", "f32[6,8]", {{"size", ints({48})}}));
  CHECK_FALSE(is_free("aten.view_copy", "f32[6,8]", {{"size", ints({48})}}));
}

TEST_CASE("a view without a copy needs strides that allow it") {
  for (const char* name : {"aten.view", "aten._unsafe_view"}) {
    CAPTURE(name);
    CHECK(is_free(name, "f32[6,8]", {{"size", ints({48})}}));
    const auto op = value_of(make_op_schema(
        library().find(name), {{"", TensorArg{0}}, {"size", ints({48})}},
        {value_of(TensorMeta::parse("f32[6,8]{1,6}"))}));
    const auto results = library().infer_results(op);
    REQUIRE_FALSE(results);
    CHECK(results.error().code == ErrorCode::kShapeMismatch);
  }
}

TEST_CASE("what changes nothing is free") {
  CHECK(is_free("aten.contiguous", "f32[6,8]"));
  CHECK_FALSE(is_free("aten.contiguous", "f32[6,8]{1,6}"));
  CHECK(is_free("aten.to.dtype", "f32[6,8]", {{"dtype", DType::kF32}}));
  CHECK_FALSE(is_free("aten.to.dtype", "f32[6,8]", {{"dtype", DType::kF64}}));
  CHECK_FALSE(is_free("aten.to.dtype", "f32[6,8]",
                      {{"dtype", DType::kF32}, {"copy", true}}));
  CHECK_FALSE(is_free("aten._to_copy", "f32[6,8]", {{"dtype", DType::kF32}}));
}

TEST_CASE("a copy of a view has all that the view has, and costs a copy") {
  struct Case {
    std::string_view view;
    std::string_view copy;
    std::vector<GivenArgument> rest;
  };
  const std::vector<Case> cases = {
      {"aten.squeeze", "aten.squeeze_copy", {}},
      {"aten.squeeze.dim", "aten.squeeze_copy.dim", {{"dim", std::int64_t{1}}}},
      {"aten.view", "aten.view_copy", {{"size", ints({8})}}},
      {"aten.view.dtype", "aten.view_copy.dtype", {{"dtype", DType::kI32}}},
      {"aten.detach", "aten.detach_copy", {}},
      {"aten.alias", "aten.alias_copy", {}},
      {"aten._conj", "aten._conj_copy", {}},
      {"aten.permute", "aten.permute_copy", {{"dims", ints({2, 1, 0})}}},
      {"aten.diagonal", "aten.diagonal_copy", {}}};
  for (const Case& one : cases) {
    CAPTURE(one.copy);
    const OpSchema view = applied(one.view, {"f32[2,1,4]"}, one.rest);
    const OpSchema copy = applied(one.copy, {"f32[2,1,4]"}, one.rest);
    CHECK(copy.outputs[0].dtype() == view.outputs[0].dtype());
    CHECK(copy.outputs[0].shape() == view.outputs[0].shape());
    const IndexSpace of_view = space_of(view);
    const IndexSpace of_copy = space_of(copy);
    CHECK(to_string(of_copy) == to_string(of_view));
    CHECK((of_copy.program != nullptr) == (of_view.program != nullptr));
    CHECK(of_view.is_free);
    CHECK_FALSE(of_copy.is_free);
  }
  CHECK(applied("aten.t_copy", {"f32[2,4]"}).outputs[0].strides() ==
        Dims{2, 1});
}
