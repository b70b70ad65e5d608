// Tests the table of kernels: which names it refuses, and overloads that follow from
// others.

#include "reference/kernels.h"
#include "reference/evaluated.h"

#include <shardprop/base/error.h>
#include <shardprop/ops/rule_text.h>

#include <complex>
#include <string>
#include <utility>

namespace shardprop {
namespace {

using reference::Call;
using reference::Kernels;
using reference::Tensor;
using testing::check_near;
using testing::evaluated;
using testing::library;
using testing::value_of;
using Ints = std::vector<std::int64_t>;

std::vector<Tensor> nothing(const Call&) { return {}; }

std::string error_of(reference::Names names) {
  Kernels kernels;
  try {
    kernels.add(names, nothing);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// Evaluates a call with lists of tensors [2] of these values.
std::vector<Tensor> evaluated_lists(
    std::string_view name,
    const std::vector<std::pair<std::string, std::vector<testing::Numbers>>>&
        lists,
    std::vector<GivenArgument> given = {},
    std::vector<Tensor>* operands = nullptr) {
  std::vector<TensorMeta> metas;
  std::vector<Tensor> inputs;
  for (const auto& [argument, list] : lists) {
    std::vector<TensorArg> tensors;
    for (const testing::Numbers& values : list) {
      tensors.push_back({static_cast<std::int32_t>(metas.size())});
      metas.push_back(value_of(TensorMeta::parse("f64[2]")));
      inputs.push_back(reference::tensor_of(Dims{2}, DType::kF64, values));
    }
    given.push_back({argument, std::move(tensors)});
  }
  OpSchema op = value_of(
      make_op_schema(library().find(name), std::move(given), std::move(metas)));
  set_results(op, value_of(library().infer_results(op)));
  auto made = value_of(reference::evaluate(library(), op, inputs));
  if (operands != nullptr) *operands = inputs;
  return made;
}

TEST_CASE("a kernel has the name of a declared functional overload, once") {
  CHECK(error_of({"mm", "add.Tensor", "prims::add"}).empty());
  CHECK(contains(error_of({"nosuch"}), "`nosuch` is of no declared overload"));
  CHECK(contains(error_of({"add"}), "`add` is of no declared overload"));
  CHECK(contains(error_of({"mm.Tensor"}), "is of no declared overload"));
  CHECK(contains(error_of({"add_.Tensor"}), "writes an argument"));
  CHECK(contains(error_of({"mm.out"}), "writes an argument"));
  CHECK(contains(error_of({"mm", "bmm", "mm"}), "`mm` is there twice"));
  CHECK(contains(error_of({"mm", "mm.default"}), "is there twice"));
}

TEST_CASE("a kernel is found by its overload only") {
  Kernels kernels;
  kernels.add({"add.Tensor", "prims::mul"}, nothing);
  const auto has = [&](const char* name) {
    return kernels.find(*library().find(name)) != nullptr;
  };
  CHECK(has("aten.add.Tensor"));
  CHECK(has("prims.mul"));
  CHECK_FALSE(has("aten.add.Scalar"));
  CHECK_FALSE(has("aten.add_.Tensor"));
  CHECK_FALSE(has("aten.mul.Tensor"));
}

TEST_CASE("the copy of a view has the elements of the view") {
  const testing::Given x = {"f64[2,3]", {1, 2, 3, 4, 5, 6}};
  check_near(
      evaluated("aten.permute_copy.default", {x}, {{"dims", Ints{1, 0}}}),
      {1, 4, 2, 5, 3, 6});
  check_near(evaluated("aten.view_copy.default", {x}, {{"size", Ints{3, 2}}}),
             {1, 2, 3, 4, 5, 6});
  check_near(evaluated("aten.select_copy.int", {x},
                       {{"dim", std::int64_t{1}}, {"index", std::int64_t{2}}}),
             {3, 6});
  check_near(
      evaluated("aten.split_with_sizes_copy.default", {x},
                {{"split_sizes", Ints{1, 2}}, {"dim", std::int64_t{1}}}, 1),
      {2, 3, 5, 6});
  check_near(evaluated("aten.lift_fresh_copy.default", {x}),
             {1, 2, 3, 4, 5, 6});
}

TEST_CASE("the copy of a view has memory of its own") {
  const auto op = testing::applied("aten.alias_copy", {"f64[2]"});
  const Tensor x =
      reference::tensor_of(Dims{2}, DType::kF64, testing::Numbers{1, 2});
  const auto made = value_of(reference::evaluate(library(), op, {{x}}));
  CHECK(made[0].data() != x.data());
}

TEST_CASE("the copy of a view that has only a program is evaluated") {
  const auto viewing = value_of(library().with(
      {.declaration = "mylib::turned(Tensor(a) self) -> Tensor(a)",
       .tags = "view",
       .definition = value_of(parse_definition(
           "ab->ba.decomposed(\"return transpose(self, 0, 1)\")"))}));
  const auto both = value_of(
      viewing->with({.declaration = "mylib::turned_copy(Tensor self) -> Tensor",
                     .definition = value_of(parse_definition("ab->ba"))}));
  const auto copy = both->find("mylib.turned_copy.default");
  REQUIRE(reference::evaluates(*both, *copy));
  OpSchema op =
      value_of(make_op_schema(copy, {{"self", TensorArg{0}}},
                              {value_of(TensorMeta::parse("f64[2,3]"))}));
  set_results(op, value_of(both->infer_results(op)));
  const Tensor x = reference::tensor_of(Dims{2, 3}, DType::kF64,
                                        testing::Numbers{1, 2, 3, 4, 5, 6});
  const auto made = value_of(reference::evaluate(*both, op, {{x}}));
  check_near(reference::values<double>(made.at(0)), {1, 4, 2, 5, 3, 6});
}

TEST_CASE("a list operator evaluates each element") {
  const auto sums = evaluated_lists(
      "aten._foreach_add.List",
      {{"self", {{1, 2}, {3, 4}}}, {"other", {{10, 20}, {30, 40}}}},
      {{"alpha", 2.0}});
  REQUIRE(sums.size() == 2);
  check_near(reference::values<double>(sums[0]), {21, 42});
  check_near(reference::values<double>(sums[1]), {63, 84});
}

TEST_CASE("a list operator writes each element in place") {
  std::vector<Tensor> operands;
  const auto made =
      evaluated_lists("aten._foreach_mul_.Scalar", {{"self", {{1, 2}, {3, 4}}}},
                      {{"scalar", 3.0}}, &operands);
  CHECK(made.empty());
  check_near(reference::values<double>(operands[0]), {3, 6});
  check_near(reference::values<double>(operands[1]), {9, 12});
}

TEST_CASE("a list operator takes complex numbers of elements from one tensor") {
  using Complexes = std::vector<std::complex<double>>;
  const TensorMeta meta = value_of(TensorMeta::parse("c128[1]"));
  const auto tensor = [](const Complexes& values) {
    return reference::tensor_of(Dims{std::ssize(values)}, DType::kC128, values);
  };
  OpSchema op =
      value_of(make_op_schema(library().find("aten._foreach_addcmul.Tensor"),
                              {{"self", std::vector<TensorArg>{{0}, {1}}},
                               {"tensor1", std::vector<TensorArg>{{2}, {3}}},
                               {"tensor2", std::vector<TensorArg>{{4}, {5}}},
                               {"scalars", TensorArg{6}}},
                              {meta, meta, meta, meta, meta, meta,
                               value_of(TensorMeta::parse("c128[2]"))}));
  set_results(op, value_of(library().infer_results(op)));
  const std::vector<Tensor> inputs = {tensor({1}),
                                      tensor({2}),
                                      tensor({3}),
                                      tensor({4}),
                                      tensor({5}),
                                      tensor({6}),
                                      tensor({{0, 1}, {1, 2}})};
  const auto made = value_of(reference::evaluate(library(), op, inputs));
  REQUIRE(made.size() == 2);
  CHECK(reference::values<std::complex<double>>(made[0]) == Complexes{{1, 15}});
  CHECK(reference::values<std::complex<double>>(made[1]) ==
        Complexes{{26, 48}});
}

}  // namespace
}  // namespace shardprop
