// Operators that copy what a view shows.

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

}  // namespace

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
