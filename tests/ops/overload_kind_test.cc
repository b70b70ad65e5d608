// Tests from which overload another one follows.

#include "ops/schema/overload_kind.h"

#include "ops/applied_op.h"

#include <map>
#include <string>

using namespace shardprop;           // NOLINT(google-build-using-namespace)
using namespace shardprop::testing;  // NOLINT(google-build-using-namespace)

namespace {

// Returns "in_place of aten.add.Tensor", for example.
std::string origin(std::string_view name) {
  const OverloadOrigin found = origin_of(*library().find(name), library());
  std::string text(to_string(found.kind));
  if (found.from != nullptr) text += " of " + found.from->name();
  return text;
}

}  // namespace

TEST_CASE("each kind of overload follows from one that it names") {
  CHECK(origin("aten.add.Tensor") == "plain");
  CHECK(origin("aten.add_.Tensor") == "in_place of aten.add.Tensor");
  CHECK(origin("aten.add.out") == "out of aten.add.Tensor");
  CHECK(origin("aten.sum.IntList_out") == "out of aten.sum.dim_IntList");
  CHECK(origin("aten._foreach_add.List") == "foreach of aten.add.Tensor");
  CHECK(origin("aten._foreach_add_.List") == "foreach of aten.add_.Tensor");
  CHECK(origin("aten._foreach_pow.Scalar") ==
        "foreach of aten.pow.Tensor_Scalar");
  CHECK(origin("aten._foreach_pow_.ScalarList") ==
        "foreach of aten.pow_.Scalar");
  CHECK(origin("aten._foreach_pow.ScalarAndTensor") ==
        "foreach of aten.pow.Scalar");
  CHECK(origin("aten.expand_copy") == "view_copy of aten.expand.default");
  CHECK(origin("aten.view_copy.dtype") == "view_copy of aten.view.dtype");
  CHECK(origin("aten.split_copy.Tensor") == "view_copy of aten.split.Tensor");
}

TEST_CASE("a name alone makes no copy of a view") {
  CHECK(origin("aten.index_copy") == "plain");
  CHECK(origin("aten._to_copy") == "plain");
  CHECK(origin("aten.copy") == "plain");
}

TEST_CASE("most overloads of PyTorch follow from others") {
  std::map<OverloadKind, int> counts;
  for (const std::string& name : library().names()) {
    const OverloadOrigin found = origin_of(*library().find(name), library());
    CHECK((found.from == nullptr) == (found.kind == OverloadKind::kPlain));
    // The origin of an origin is functional.
    if (found.from != nullptr) {
      CHECK(origin_of(*found.from, library()).kind != OverloadKind::kForeach);
    }
    ++counts[found.kind];
  }
  CHECK(counts[OverloadKind::kInPlace] > 200);
  CHECK(counts[OverloadKind::kOut] > 600);
  CHECK(counts[OverloadKind::kForeach] > 100);
  CHECK(counts[OverloadKind::kViewCopy] > 25);
}
