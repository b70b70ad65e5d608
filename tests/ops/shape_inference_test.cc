#include <doctest/doctest.h>
#include <shardprop/ops/op_library.h>

#include "ops/applied_op.h"
#include "support/standard_library.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

using testing::library;

using Ints = std::vector<std::int64_t>;

// Tensors by position, the rest by name.
Result<OpSchema> apply(const char* name, const std::vector<const char*>& inputs,
                       std::vector<GivenArgument> rest = {}) {
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> metas;
  for (const char* text : inputs) {
    given.push_back({"", TensorArg{static_cast<std::int32_t>(metas.size())}});
    metas.push_back(TensorMeta::parse(text).value());
  }
  for (GivenArgument& argument : rest) given.push_back(std::move(argument));
  return make_op_schema(library().find(name), std::move(given),
                        std::move(metas));
}

// Results in one line, "-" for one that is not produced.
std::string results(const char* name, const std::vector<const char*>& inputs,
                    std::vector<GivenArgument> rest = {}) {
  const auto op = apply(name, inputs, std::move(rest));
  if (!op) return to_string(op.error());
  const auto inferred = library().infer_results(*op);
  if (!inferred)
    return "SP" + std::to_string(static_cast<int>(inferred.error().code));
  std::string out;
  for (const auto& result : *inferred) {
    if (!out.empty()) out += ' ';
    out += result ? to_string(*result) : "-";
  }
  return out;
}

const std::string kMismatch = "SP507";

}  // namespace

TEST_CASE("pointwise: shapes broadcast, dtypes promote, strides are kept") {
  CHECK(results("aten.add.Tensor", {"f32[4,1]", "f32[3]"}) == "f32[4,3]");
  CHECK(results("aten.add.Tensor", {"bf16[4]", "f32[]"}) == "bf16[4]");
  CHECK(results("aten.add.Tensor", {"bf16[4]", "f32[1]"}) == "f32[4]");
  CHECK(results("aten.mul.Tensor", {"i64[4]"}, {{"other", 2.5}}) == "f32[4]");
  CHECK(results("aten.mul.Tensor", {"bool[4]"}, {{"other", std::int64_t{2}}}) ==
        "i64[4]");
  CHECK(results("aten.exp.default", {"i32[4]"}) == "f32[4]");
  CHECK(results("aten.div.Tensor", {"i32[4]", "i32[4]"}) == "f32[4]");
  CHECK(results("aten.div.Tensor_mode", {"i32[4]", "i32[4]"},
                {{"rounding_mode", std::string("floor")}}) == "i32[4]");
  CHECK(results("aten.lt.Tensor", {"f32[4]", "f64[2,1]"}) == "bool[2,4]");
  CHECK(results("aten.relu.default", {"f32[4,6]{1,4}"}) == "f32[4,6]{1,4}");
  CHECK(results("aten.add.Tensor", {"f32[4,6]{1,4}", "f32[6]"}) ==
        "f32[4,6]{1,4}");
  CHECK(results("aten.where.self", {"bool[4]", "f32[3,1]", "i64[]"}) ==
        "f32[3,4]");
  CHECK(results("aten.abs.default", {"c64[4]"}) == "f32[4]");
  CHECK(results("aten.add.Tensor", {"f32[4]", "f32[3]"}) == kMismatch);
}

TEST_CASE("dtypes promote as PyTorch's do") {
  CHECK(promote_types(DType::kBF16, DType::kF16) == DType::kF32);
  CHECK(promote_types(DType::kU8, DType::kI8) == DType::kI16);
  CHECK(promote_types(DType::kI64, DType::kF16) == DType::kF16);
  CHECK(promote_types(DType::kBool, DType::kU8) == DType::kU8);
  CHECK(promote_types(DType::kF64, DType::kC64) == DType::kC128);
  CHECK(promote_types(DType::kI64, DType::kC64) == DType::kC64);
  for (const DType a : all_dtypes()) {
    CHECK(promote_types(a, a) == a);
    for (const DType b : all_dtypes()) {
      CHECK(promote_types(a, b) == promote_types(b, a));
    }
  }
}

TEST_CASE("views") {
  CHECK(results("aten.view.default", {"f32[4,6]"}, {{"size", Ints{2, -1}}}) ==
        "f32[2,12]");
  CHECK(results("aten.view.default", {"f32[4,6]{1,4}"},
                {{"size", Ints{4, 2, 3}}}) == "f32[4,2,3]{1,12,4}");
  CHECK(results("aten.view.default", {"f32[4,6]"}, {{"size", Ints{5, -1}}}) ==
        kMismatch);
  CHECK(results("aten.flatten.using_ints", {"f32[2,3,4]"},
                {{"start_dim", std::int64_t{1}}}) == "f32[2,12]");
  CHECK(results("aten.unflatten.int", {"f32[2,12]"},
                {{"dim", std::int64_t{-1}}, {"sizes", Ints{3, -1}}}) ==
        "f32[2,3,4]");
  CHECK(results("aten.transpose.int", {"f32[2,3,4]"},
                {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{-1}}}) ==
        "f32[4,3,2]{1,4,12}");
  CHECK(results("aten.permute.default", {"f32[2,3]"}, {{"dims", Ints{0, 0}}}) ==
        kMismatch);
  CHECK(results("aten.squeeze.dims", {"f32[1,3,1]"}, {{"dim", Ints{0, 1}}}) ==
        "f32[3,1]");
  CHECK(results("aten.expand.default", {"f32[3,1]"},
                {{"size", Ints{2, -1, 4}}}) == "f32[2,3,4]{0,1,0}");
  CHECK(results("aten.slice.Tensor", {"f32[10]"},
                {{"start", std::int64_t{-7}},
                 {"end", std::int64_t{9}},
                 {"step", std::int64_t{4}}}) == "f32[2]{4}");
  CHECK(results("aten.select.int", {"f32[2,3]"},
                {{"dim", std::int64_t{1}}, {"index", std::int64_t{3}}}) ==
        kMismatch);
  CHECK(results("aten.chunk.default", {"f32[7]"},
                {{"chunks", std::int64_t{3}}}) == "f32[3] f32[3] f32[1]");
  CHECK(results("aten.split.Tensor", {"f32[4]"},
                {{"split_size", std::int64_t{3}}}) == "f32[3] f32[1]");
  CHECK(results("aten.unbind.int", {"f32[2,3]"}) == "f32[3] f32[3]");
  CHECK(results("aten.diagonal.default", {"f32[3,4]"},
                {{"offset", std::int64_t{1}}}) == "f32[3]{5}");
}

TEST_CASE("reductions") {
  CHECK(results("aten.sum.dim_IntList", {"bf16[2,3,4]"},
                {{"dim", Ints{-1, 0}}}) == "bf16[3]");
  CHECK(results("aten.sum.default", {"i32[2,3]"}) == "i64[]");
  CHECK(results("aten.mean.dim", {"f32[2,3]"},
                {{"dim", Ints{1}}, {"keepdim", true}}) == "f32[2,1]");
  CHECK(results("aten.max.dim", {"f32[2,3]"}, {{"dim", std::int64_t{0}}}) ==
        "f32[3] i64[3]");
  CHECK(results("aten.argmax.default", {"f32[2,3]"}) == "i64[]");
  CHECK(results("aten.var_mean.correction", {"f32[2,3]"}, {{"dim", Ints{1}}}) ==
        "f32[2] f32[2]");
  CHECK(results("aten.cumsum.default", {"i32[2,3]"},
                {{"dim", std::int64_t{1}}}) == "i64[2,3]");
  CHECK(results("aten.topk.default", {"f32[2,8]"}, {{"k", std::int64_t{3}}}) ==
        "f32[2,3] i64[2,3]");
  CHECK(results("aten.any.dim", {"f32[2,3]"}, {{"dim", std::int64_t{1}}}) ==
        "bool[2]");
  CHECK(results("aten.sum.dim_IntList", {"f32[2]"}, {{"dim", Ints{2}}}) ==
        kMismatch);
}

TEST_CASE("products") {
  CHECK(results("aten.mm.default", {"f32[2,3]", "f32[3,4]"}) == "f32[2,4]");
  CHECK(results("aten.mm.default", {"f32[2,3]", "f32[4,3]"}) == kMismatch);
  CHECK(results("aten.mm.default", {"f32[2,3]", "bf16[3,4]"}) == kMismatch);
  CHECK(results("aten.bmm.default", {"f32[5,2,3]", "f32[5,3,4]"}) ==
        "f32[5,2,4]");
  CHECK(results("aten.matmul.default", {"f32[3]", "f32[5,3,4]"}) == "f32[5,4]");
  CHECK(results("aten.matmul.default", {"f32[7,1,2,3]", "f32[5,3,4]"}) ==
        "f32[7,5,2,4]");
  CHECK(results("aten.linear.default", {"f32[5,2,3]", "f32[4,3]", "f32[4]"}) ==
        "f32[5,2,4]");
}

TEST_CASE("creation") {
  CHECK(results("aten.full.default", {},
                {{"size", Ints{2, 3}}, {"fill_value", std::int64_t{1}}}) ==
        "i64[2,3]");
  CHECK(results("aten.arange.start_step", {},
                {{"start", std::int64_t{1}},
                 {"end", std::int64_t{10}},
                 {"step", std::int64_t{4}}}) == "i64[3]");
  CHECK(results("aten.arange.default", {}, {{"end", 2.5}}) == "f32[3]");
  CHECK(results("aten.ones_like.default", {"f32[2,3]{1,2}"}) ==
        "f32[2,3]{1,2}");
  CHECK(results("aten.empty.memory_format", {}, {{"size", Ints{-1}}}) ==
        kMismatch);
}

TEST_CASE("indexing") {
  CHECK(results("aten.embedding.default", {"f32[100,8]", "i64[4,6]"}) ==
        "f32[4,6,8]");
  CHECK(results("aten.gather.default", {"f32[4,6]"},
                {{"dim", std::int64_t{1}}, {"index", NoneArg{}}}) == kMismatch);
  const auto index = [](std::vector<TensorArg> indices) {
    const auto op =
        make_op_schema(library().find("aten.index.Tensor"),
                       {{"", TensorArg{0}}, {"", std::move(indices)}},
                       {TensorMeta::parse("f32[4,5,6]").value(),
                        TensorMeta::parse("i64[2,1]").value(),
                        TensorMeta::parse("i64[3]").value()});
    REQUIRE(op);
    return to_string(library().infer_outputs(*op).value().front());
  };
  CHECK(index({{TensorArg::kNone}, {1}, {2}}) == "f32[4,2,3]");
  CHECK(index({{1}, {TensorArg::kNone}, {2}}) == "f32[2,3,5]");
}

TEST_CASE("convolutions keep channels last, but for volumes of doubles") {
  const std::vector<GivenArgument> conv = {
      {"stride", Ints{1, 1, 1}},         {"padding", Ints{0, 0, 0}},
      {"dilation", Ints{1, 1, 1}},       {"transposed", false},
      {"output_padding", Ints{0, 0, 0}}, {"groups", std::int64_t{1}}};
  CHECK(results("aten.convolution.default",
                {"f32[2,4,3,3,5]{180,1,60,20,4}", "f32[4,4,2,2,2]", "f32[4]"},
                conv) == "f32[2,4,2,2,4]{64,1,32,16,4}");
  CHECK(results("aten.convolution.default",
                {"f64[2,4,3,3,5]{180,1,60,20,4}", "f64[4,4,2,2,2]", "f64[4]"},
                conv) == "f64[2,4,2,2,4]");
  std::vector<GivenArgument> gradients = conv;
  gradients.push_back({"bias_sizes", Ints{4}});
  gradients.push_back({"output_mask", std::vector<bool>{true, false, false}});
  CHECK(results("aten.convolution_backward.default",
                {"f32[2,4,2,2,4]", "f32[2,4,3,3,5]{180,1,60,20,4}",
                 "f32[4,4,2,2,2]"},
                gradients) == "f32[2,4,3,3,5]{180,1,60,20,4} - -");
  CHECK(results("aten.convolution_backward.default",
                {"f64[2,4,2,2,4]", "f64[2,4,3,3,5]{180,1,60,20,4}",
                 "f64[4,4,2,2,2]"},
                gradients) == "f64[2,4,3,3,5] - -");
}

TEST_CASE("tolerances widen a batch of matrices, but for empty ones") {
  const auto of = [](const char* op, const char* matrices) {
    return results(op, {matrices, "f32[3,1]"}, {{"hermitian", false}});
  };
  const char* inverse = "aten.linalg_pinv.rcond_tensor";
  CHECK(of(inverse, "f32[2,4,5]") == "f32[3,2,5,4]");
  CHECK(of(inverse, "f32[2,0,5]") == "f32[2,5,0]");
  CHECK(of(inverse, "f32[0,0]") == "f32[0,0]");
  const char* rank = "aten.linalg_matrix_rank.tol_tensor";
  CHECK(of(rank, "f32[2,4,5]") == "i64[3,2]");
  CHECK(of(rank, "f32[2,0,5]") == "i64[2]");
}

TEST_CASE("images and norms") {
  const std::vector<GivenArgument> conv = {
      {"stride", Ints{2, 2}},         {"padding", Ints{1, 1}},
      {"dilation", Ints{1, 1}},       {"transposed", false},
      {"output_padding", Ints{0, 0}}, {"groups", std::int64_t{1}}};
  CHECK(results("aten.convolution.default",
                {"f32[2,3,8,8]", "f32[6,3,3,3]", "f32[6]"},
                conv) == "f32[2,6,4,4]");
  CHECK(results("aten.convolution.default",
                {"f32[2,4,8,8]", "f32[6,3,3,3]", "f32[6]"}, conv) == kMismatch);
  CHECK(results("aten.convolution_backward.default",
                {"f32[2,6,4,4]", "f32[2,3,8,8]", "f32[6,3,3,3]"},
                {{"bias_sizes", Ints{6}},
                 {"stride", Ints{2, 2}},
                 {"padding", Ints{1, 1}},
                 {"dilation", Ints{1, 1}},
                 {"transposed", false},
                 {"output_padding", Ints{0, 0}},
                 {"groups", std::int64_t{1}},
                 {"output_mask", std::vector<bool>{false, true, true}}}) ==
        "- f32[6,3,3,3] f32[6]");
  CHECK(results("aten.max_pool2d_with_indices.default", {"f32[1,3,7,7]"},
                {{"kernel_size", Ints{3, 3}},
                 {"stride", Ints{2, 2}},
                 {"ceil_mode", true}}) == "f32[1,3,3,3] i64[1,3,3,3]");
  CHECK(results("aten.native_layer_norm.default", {"bf16[2,5,8]"},
                {{"normalized_shape", Ints{8}},
                 {"weight", NoneArg{}},
                 {"bias", NoneArg{}},
                 {"eps", 1e-5}}) == "bf16[2,5,8] f32[2,5,1] f32[2,5,1]");
  CHECK(results("aten.cross_entropy_loss.default", {"f32[8,10]", "i64[8]"}) ==
        "f32[]");
  CHECK(results("aten.nll_loss_forward.default", {"f32[8,10]", "i64[8]"},
                {{"weight", NoneArg{}},
                 {"reduction", std::int64_t{0}},
                 {"ignore_index", std::int64_t{-100}}}) == "f32[8] f32[]");
}

TEST_CASE("gradients of losses grow where another operand is wider") {
  // As PyTorch 2.13 lays them out.
  for (const char* name : {"aten.mse_loss_backward", "aten.huber_loss_backward",
                           "aten.smooth_l1_loss_backward"}) {
    CAPTURE(name);
    const auto gradient = [name](const char* grad, const char* self,
                                 const char* target) {
      std::vector<GivenArgument> rest = {{"reduction", std::int64_t{0}}};
      if (std::string_view(name) == "aten.huber_loss_backward") {
        rest.push_back({"delta", 1.0});
      } else if (std::string_view(name) == "aten.smooth_l1_loss_backward") {
        rest.push_back({"beta", 1.0});
      }
      return results(name, {grad, self, target}, std::move(rest));
    };
    CHECK(gradient("f32[3,4]", "f32[4]", "f32[3,4]{1,3}") == "f32[3,4]{1,3}");
    CHECK(gradient("f32[3,4]{1,3}", "f32[4]", "f32[3,4]") == "f32[3,4]");
    CHECK(gradient("f32[2,3,4]{12,1,3}", "f32[4]", "f32[3,4]") == "f32[2,3,4]");
    CHECK(gradient("f32[3,4]{1,3}", "f32[3,4]{1,3}", "f32[3,4]{1,3}") ==
          "f32[3,4]");
  }
}

TEST_CASE("results that lie, or are typed, as one of their operands") {
  // As PyTorch 2.13 gives them: those of its own kernel are made like the input.
  CHECK(results("aten.mish_backward.default", {"f64[7,2]", "f32[7,2]"}) ==
        "f32[7,2]");
  CHECK(results("aten.mish_backward.default", {"bf16[7,2]", "f64[7,2]"}) ==
        "f64[7,2]");
  CHECK(results("aten.silu_backward.default", {"f64[7,2]", "f32[7,2]"}) ==
        "f64[7,2]");
  CHECK(results("aten.bernoulli.Tensor", {"f32[3,4]{1,3}", "f64[3,4]"}) ==
        "f32[3,4]{1,3}");
  CHECK(results("aten.bernoulli.Tensor", {"f32[3,4]", "f64[3,4]{1,3}"}) ==
        "f32[3,4]");
  CHECK(results("aten.bernoulli.default", {"f32[3,4]{1,3}"}) == "f32[3,4]");
  const auto cumprod = [](const char* grad, const char* input, const char* out,
                          std::int64_t dim) {
    auto op = library().find("aten.cumprod_backward.default");
    std::vector<GivenArgument> given = {{"grad", TensorArg{0}},
                                        {"input", TensorArg{1}},
                                        {"dim", dim},
                                        {"output", TensorArg{2}}};
    std::vector<TensorMeta> metas;
    for (const char* text : {grad, input, out}) {
      metas.push_back(TensorMeta::parse(text).value());
    }
    const auto call = make_op_schema(op, std::move(given), std::move(metas));
    REQUIRE(call.has_value());
    return to_string(*library().infer_results(*call)->front());
  };
  CHECK(cumprod("f64[1,6,7]{6,1,6}", "f64[1,6,7]", "f64[1,6,7]", -3) ==
        "f64[1,6,7]{6,1,6}");
  CHECK(cumprod("f64[1,6,7]", "f64[1,6,7]{6,1,6}", "f64[1,6,7]", 0) ==
        "f64[1,6,7]");
  CHECK(cumprod("f64[1,6,7]{6,1,6}", "f64[1,6,7]", "f64[1,6,7]", 1) ==
        "f64[1,6,7]");
}

TEST_CASE("a sequence with its batch first is computed with time first") {
  // As PyTorch 2.13 lays it; the hidden state may have the same shape.
  const auto gru = [](const char* input, const char* hx, bool batch_first) {
    const TensorMeta state = TensorMeta::parse(hx).value();
    const TensorMeta weight =
        TensorMeta::contiguous(Dims{3 * state.size(2), state.size(2)},
                               state.dtype())
            .value();
    const auto call = make_op_schema(
        library().find("aten.gru.input"),
        {{"input", TensorArg{0}},
         {"hx", TensorArg{1}},
         {"params", std::vector<TensorArg>{{2}, {3}, {2}, {3}}},
         {"has_biases", false},
         {"num_layers", std::int64_t{2}},
         {"dropout", 0.0},
         {"train", false},
         {"bidirectional", false},
         {"batch_first", batch_first}},
        {TensorMeta::parse(input).value(), state, weight, weight});
    REQUIRE(call.has_value());
    const auto made = library().infer_results(*call);
    REQUIRE(made.has_value());
    return to_string(*made->at(0)) + " " + to_string(*made->at(1));
  };
  CHECK(gru("f64[2,2,1]", "f64[2,2,1]", true) ==
        "f64[2,2,1]{1,2,1} f64[2,2,1]");
  CHECK(gru("f64[2,2,1]", "f64[2,2,1]", false) == "f64[2,2,1] f64[2,2,1]");
  CHECK(gru("f32[4,3,2]", "f32[2,4,2]", true) ==
        "f32[4,3,2]{2,8,1} f32[2,4,2]");
  CHECK(gru("f32[3,2,0]", "f32[2,3,0]", true) ==
        "f32[3,2,0]{1,3,1} f32[2,3,0]");
}

TEST_CASE("the huber loss is one of floats, whatever the target is") {
  CHECK(results("aten.huber_loss.default", {"f32[3]", "u8[3]"}) == "f32[]");
  CHECK(results("aten.huber_loss.default", {"u8[3]", "f32[3]"}) == kMismatch);
  CHECK(results("aten.mse_loss.default", {"u8[3]", "f32[3]"}) == "f32[]");
}

TEST_CASE("sizes that a file may choose at will do not overflow") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  CHECK(results("aten.constant_pad_nd.default", {"f32[4]"},
                {{"pad", Ints{kHuge, kHuge}}}) == kMismatch);
  CHECK(results("aten.repeat.default", {"f32[4]"},
                {{"repeats", Ints{kHuge}}}) == kMismatch);
  CHECK(results("aten.slice.Tensor", {"f32[4]{8}"},
                {{"step", std::int64_t{kHuge}}}) == kMismatch);
  CHECK(results("aten.avg_pool2d.default", {"f32[1,3,7,7]"},
                {{"kernel_size", Ints{3, 3}},
                 {"padding", Ints{kHuge, kHuge}}}) == kMismatch);
}

TEST_CASE("overloads that write return what they write") {
  CHECK(results("aten.add_.Tensor", {"bf16[4]", "f32[4]"}) == "bf16[4]");
  CHECK(library().infers(*library().find("aten.exponential_.default")));
}

TEST_CASE("what is not covered says so") {
  CHECK(results("aten._saturate_weight_to_fp16.default", {"f32[4,4]"}) ==
        "SP506");
  const auto op = apply("aten._saturate_weight_to_fp16.default", {"f32[4,4]"});
  REQUIRE(op);
  CHECK(library().infer_outputs(*op).error().code ==
        ErrorCode::kNoShapeInference);
  CHECK(library()
            .infer_outputs(*apply("aten.mm.default", {"f32[4,4]", "f32[3,4]"}))
            .error()
            .code == ErrorCode::kShapeMismatch);
  CHECK_FALSE(library().infers(
      *library().find("aten._saturate_weight_to_fp16.default")));
}

TEST_CASE("every row is of an operator that is declared, and says what it is") {
  const auto rows = library().rows();
  CHECK(rows.size() > 400);
  for (const OpRow* row : rows) {
    CAPTURE(row->name);
    // Operators that libraries on top of PyTorch register are only in exported
    // files.
    const bool elsewhere = row->name.starts_with("transformers.");
    CHECK((elsewhere || library().find(row->name) != nullptr ||
           !library().overloads(row->name).empty()));
    CHECK_FALSE(row->family.empty());
    CHECK_FALSE(row->definition.text().empty());
  }
}

TEST_CASE("results without end are refused before they take memory") {
  const std::vector<double> range = {0, 1};
  for (const char* name :
       {"aten.histogramdd.int_bins", "aten._histogramdd_bin_edges.default",
        "aten._histogramdd_from_bin_cts.default"}) {
    CAPTURE(name);
    const Argument bins = std::string_view(name).ends_with("int_bins")
                              ? Argument(std::int64_t{1})
                              : Argument(Ints{1});
    CHECK(results(name, {"f32[0,1000000000000]"}, {{"bins", bins}}) ==
          kMismatch);
  }
  CHECK(results("aten.histogramdd.int_bins", {"f32[5,2]"},
                {{"bins", std::int64_t{3}}}) == "f32[3,3] f32[4] f32[4]");
  const std::int64_t many = std::int64_t{1} << 50;
  CHECK(results("aten.unbind.int", {"f32[0,1125899906842624]"},
                {{"dim", std::int64_t{1}}}) == kMismatch);
  CHECK(results("aten.split.Tensor", {"f32[1125899906842624]"},
                {{"split_size", std::int64_t{1}}}) == kMismatch);
  CHECK(results("aten.chunk.default", {"f32[0]"}, {{"chunks", many}}) ==
        kMismatch);
  CHECK(results("aten.tensor_split.sections", {"f32[4]"},
                {{"sections", many}}) == kMismatch);
}

TEST_CASE("numbers at the ends of their range") {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  CHECK(results("aten.diff.default", {"f32[4]"}, {{"n", kLeast}}) == kMismatch);
  CHECK(results("aten.convolution.default", {"f32[1,1,8]", "f32[1,1,3]"},
                {{"bias", NoneArg{}},
                 {"stride", Ints{1}},
                 {"padding", Ints{kLeast}},
                 {"dilation", Ints{1}},
                 {"transposed", false},
                 {"output_padding", Ints{0}},
                 {"groups", std::int64_t{1}}}) == kMismatch);
}
