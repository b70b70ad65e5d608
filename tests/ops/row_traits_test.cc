// Tests traits of operator definitions: random draws, dependence on the values
// of arguments, and the results that receive those values.
#include <shardprop/ops/row_traits.h>

#include "support/result_checks.h"
#include "support/standard_library.h"

#include <doctest/doctest.h>
#include <shardprop/ops/op_schema.h>

#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::standard_library;
using testing::value_of;

const OpDefinition& row_of(const char* op) {
  const auto function = standard_library().find(op);
  REQUIRE(function != nullptr);
  const OpRow* row = standard_library().row(*function);
  REQUIRE(row != nullptr);
  return row->definition;
}

TEST_CASE("rows say how they draw, in every form of the operator") {
  CHECK(row_of("aten.randn.default").traits().distribution ==
        Distribution::kNormal);
  CHECK(row_of("aten.normal_.default").traits().distribution ==
        Distribution::kNormal);
  CHECK(row_of("aten.bernoulli.p").traits().distribution ==
        Distribution::kBernoulli);
  CHECK(row_of("aten.native_dropout.default").traits().distribution ==
        Distribution::kDropout);
  CHECK(row_of("aten._scaled_dot_product_flash_attention.default")
            .traits()
            .distribution == Distribution::kAttention);
  CHECK(row_of("aten._scaled_dot_product_flash_attention_backward.default")
            .traits()
            .distribution == Distribution::kAttentionBackward);
  CHECK(row_of("aten.mm.default").traits().distribution ==
        Distribution::kNotStated);
  CHECK(row_of("aten.random.default").traits().distribution ==
        Distribution::kNotStated);
}

// Returns the exclusive upper bound of the integers in the operand.
std::int64_t bound(const char* op, std::vector<GivenArgument> arguments,
                   std::vector<const char*> metas, std::string_view argument,
                   std::size_t operand) {
  std::vector<TensorMeta> inputs;
  for (const char* meta : metas) {
    inputs.push_back(value_of(TensorMeta::parse(meta)));
  }
  const OpSchema schema = value_of(make_op_schema(
      standard_library().find(op), std::move(arguments), std::move(inputs)));
  for (const ArgumentDomain& domain : row_of(op).traits().domains) {
    if (domain.argument == argument && domain.below != IndexBound::kNone) {
      return index_bound(domain, schema, operand);
    }
  }
  return 0;
}

TEST_CASE("rows say what integers are places in") {
  const GivenArgument first = {"", TensorArg{0}};
  const GivenArgument second = {"", TensorArg{1}};
  CHECK(bound("aten.embedding.default", {first, second}, {"f32[7,3]", "i64[2]"},
              "indices", 1) == 7);
  CHECK(bound("aten.gather.default",
              {first, {"dim", std::int64_t{-1}}, {"index", TensorArg{1}}},
              {"f32[7,3]", "i64[7,2]"}, "index", 1) == 3);
  CHECK(bound("aten.index.Tensor",
              {first, {"", std::vector<TensorArg>{{TensorArg::kNone}, {1}}}},
              {"f32[7,3]", "i64[2]"}, "indices", 1) == 3);
  CHECK(bound("aten.nll_loss_forward.default",
              {first,
               second,
               {"weight", NoneArg{}},
               {"reduction", std::int64_t{1}},
               {"ignore_index", std::int64_t{-100}}},
              {"f32[4,5]", "i64[4]"}, "target", 1) == 5);
  CHECK(bound("aten.take.default", {first, second}, {"f32[7,3]", "i64[2]"},
              "index", 1) == 21);
}

bool asks(const char* op, std::string_view argument,
          bool ArgumentDomain::* what) {
  for (const ArgumentDomain& domain : row_of(op).traits().domains) {
    if (domain.argument == argument && domain.*what) return true;
  }
  return false;
}

TEST_CASE("rows say what has to be positive, and what may not be zero") {
  CHECK(asks("aten.log.default", "self", &ArgumentDomain::positive));
  CHECK(asks("aten.rsqrt_.default", "self", &ArgumentDomain::positive));
  CHECK_FALSE(asks("aten.exp.default", "self", &ArgumentDomain::positive));
  CHECK(asks("aten.native_batch_norm.default", "running_var",
             &ArgumentDomain::positive));
  CHECK(asks("aten.remainder.Tensor", "other", &ArgumentDomain::nonzero));
  CHECK(asks("aten.div_.Tensor", "other", &ArgumentDomain::nonzero));
  CHECK_FALSE(asks("aten.mul.Tensor", "other", &ArgumentDomain::nonzero));
}

TEST_CASE("rows say whose elements the result has") {
  CHECK(row_of("aten.cat.default").traits().selects_from("tensors"));
  CHECK(row_of("aten.where.self").traits().selects_from("other"));
  CHECK_FALSE(row_of("aten.where.self").traits().selects_from("condition"));
  CHECK(row_of("aten.index_put.default").traits().selects_from("values"));
  CHECK_FALSE(
      row_of("aten.index_put.default").traits().selects_from("indices"));
  CHECK(row_of("aten.topk.default").traits().selects_from("self"));
  CHECK(row_of("aten._to_copy.default").traits().selects_from("self"));
  CHECK_FALSE(row_of("aten.mul.Tensor").traits().selects_from("self"));
}

}  // namespace
}  // namespace shardprop
