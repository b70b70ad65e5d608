#include "ops/shape_context.h"

#include <utility>

namespace shardprop {
namespace {

// query [batch, heads, q, e], key [batch, kv heads, k, e], value [..., k, v].
struct Attention {
  const TensorMeta& query;
  const TensorMeta& key;
  const TensorMeta& value;
};

Attention operands(const ShapeContext& op, bool rank4) {
  const Attention a{op.tensor("query"), op.tensor("key"), op.tensor("value")};
  const int rank = a.query.rank();
  require(rank4 ? rank == 4 : rank >= 2, "the query has another rank");
  require(a.key.rank() == rank && a.value.rank() == rank,
          "query, key and value have different ranks");
  require(
      a.query.dtype() == a.key.dtype() && a.query.dtype() == a.value.dtype(),
      "query, key and value are of different dtypes");
  require(a.query.size(rank - 1) == a.key.size(rank - 1),
          "query and key have different head sizes");
  require(a.key.size(rank - 2) == a.value.size(rank - 2),
          "key and value have different lengths");
  for (int dim = 0; dim + 2 < rank; ++dim) {
    require(a.key.size(dim) == a.value.size(dim),
            "key and value have different batches or heads");
  }
  if (rank == 4) {
    require(a.query.size(0) == a.key.size(0), "the batches differ");
    require(a.key.size(1) > 0 ? a.query.size(1) % a.key.size(1) == 0
                              : a.query.size(1) == 0,
            "the key's heads do not divide the query's");
  }
  return a;
}

Dims output_shape(const Attention& a) {
  Dims shape = a.query.shape();
  shape.back() = a.value.shape().back();
  return shape;
}

// The kernels write [batch, length, heads, size], seen as the query is.
TensorMeta by_length(Dims shape, DType dtype) {
  const TensorMeta rows =
      make_meta(Dims{shape[0], shape[2], shape[1], shape[3]}, dtype);
  Dims strides = rows.strides();
  std::swap(strides[1], strides[2]);
  return make_meta(std::move(shape), std::move(strides), dtype);
}

Results composite(const ShapeContext& op) {
  const Attention a = operands(op, false);
  Dims shape = output_shape(a);
  if (shape.size() == 4) {
    return one(by_length(std::move(shape), a.query.dtype()));
  }
  return one(make_meta(std::move(shape), a.query.dtype()));
}

DType statistics_dtype(DType dtype) {
  return dtype == DType::kF64 ? DType::kF64 : DType::kF32;
}

TensorMeta scalar(DType dtype) { return make_meta(Dims{}, dtype); }

// output, logsumexp, cum_seq_q, cum_seq_k, rng_state, unused, debug_attn_mask.
Results flash(const ShapeContext& op) {
  const Attention a = operands(op, true);
  const DType dtype = a.query.dtype();
  Results results = one(by_length(output_shape(a), dtype));
  results.emplace_back(
      make_meta(Dims{a.query.size(0), a.query.size(1), a.query.size(2)},
                statistics_dtype(dtype)));
  results.emplace_back(std::nullopt);
  results.emplace_back(std::nullopt);
  results.emplace_back(make_meta(Dims{2}, DType::kU64));
  results.emplace_back(scalar(DType::kU64));
  results.emplace_back(make_meta(Dims{0}, dtype));
  return results;
}

Results flash_for_cpu(const ShapeContext& op) {
  const Attention a = operands(op, true);
  Results results = one(by_length(output_shape(a), a.query.dtype()));
  // Written as [batch, length, heads].
  const Dims shape{a.query.size(0), a.query.size(1), a.query.size(2)};
  const TensorMeta rows = make_meta(Dims{shape[0], shape[2], shape[1]},
                                    statistics_dtype(a.query.dtype()));
  results.emplace_back(make_meta(
      shape, Dims{rows.strides()[0], rows.strides()[2], rows.strides()[1]},
      rows.dtype()));
  return results;
}

// output, logsumexp (its length padded to 32, none where it is not wanted),
// philox seed and offset.
Results efficient(const ShapeContext& op) {
  const Attention a = operands(op, true);
  constexpr std::int64_t kAlignment = 32;
  const std::int64_t padded =
      add_sizes(a.query.size(2), kAlignment - 1) / kAlignment * kAlignment;
  const std::int64_t length = op.boolean("compute_log_sumexp") ? padded : 0;
  Results results = one(by_length(output_shape(a), a.query.dtype()));
  results.emplace_back(
      make_meta(Dims{a.query.size(0), a.query.size(1), length}, DType::kF32));
  results.emplace_back(scalar(DType::kI64));
  results.emplace_back(scalar(DType::kI64));
  return results;
}

// output, logsumexp, cum_seq_q, cum_seq_k, philox seed and offset,
// debug_attn_mask.
Results cudnn(const ShapeContext& op) {
  const Attention a = operands(op, true);
  Results results = one(by_length(output_shape(a), a.query.dtype()));
  results.emplace_back(make_meta(
      Dims{a.query.size(0), a.query.size(1), a.query.size(2), 1}, DType::kF32));
  if (!op.boolean("compute_log_sumexp")) results.back() = std::nullopt;
  results.emplace_back(std::nullopt);
  results.emplace_back(std::nullopt);
  results.emplace_back(scalar(DType::kI64));
  results.emplace_back(scalar(DType::kI64));
  results.emplace_back(std::nullopt);
  return results;
}

// The gradient of a bias has rows padded to 16 elements.
TensorMeta bias_gradient(const TensorMeta& bias) {
  require(bias.rank() == 4, "the bias has another rank");
  constexpr std::int64_t kAlignment = 16;
  Dims padded = bias.shape();
  padded.back() =
      add_sizes(padded.back(), kAlignment - 1) / kAlignment * kAlignment;
  const TensorMeta rows = make_meta(padded, bias.dtype());
  return make_meta(bias.shape(), rows.strides(), bias.dtype());
}

// Gradients take the layout that the kernel writes.
TensorMeta gradient(const TensorMeta& of) {
  return by_length(of.shape(), of.dtype());
}

Results backward(const ShapeContext& op) {
  const Attention a = operands(op, true);
  return {gradient(a.query), gradient(a.key), gradient(a.value)};
}

Results masked_backward(const ShapeContext& op) {
  const Attention a = operands(op, true);
  const auto* mask =
      std::get_if<std::vector<bool>>(&op.op().arg("grad_input_mask"));
  require(mask != nullptr && mask->size() == 4,
          "grad_input_mask has four parts");
  Results results(4);
  if ((*mask)[0]) results[0] = gradient(a.query);
  if ((*mask)[1]) results[1] = gradient(a.key);
  if ((*mask)[2]) results[2] = gradient(a.value);
  const TensorMeta* bias = op.optional_tensor("attn_bias");
  if ((*mask)[3] && bias != nullptr) results[3] = bias_gradient(*bias);
  return results;
}

}  // namespace

void add_attention_shapes(ShapeTable& table) {
  table["aten.scaled_dot_product_attention"] = composite;
  table["aten._scaled_dot_product_flash_attention"] = flash;
  table["aten._scaled_dot_product_flash_attention_for_cpu"] = flash_for_cpu;
  table["aten._scaled_dot_product_efficient_attention"] = efficient;
  table["aten._scaled_dot_product_cudnn_attention"] = cudnn;
  for (const char* name :
       {"aten._scaled_dot_product_flash_attention_backward",
        "aten._scaled_dot_product_flash_attention_for_cpu_backward",
        "aten._scaled_dot_product_cudnn_attention_backward"}) {
    table[name] = backward;
  }
  table["aten._scaled_dot_product_efficient_attention_backward"] =
      masked_backward;
}

}  // namespace shardprop
