#include "ops/shape_context.h"

#include <utility>

namespace shardprop {
namespace {

// Statistics of half precision inputs are kept in f32.
DType statistics_dtype(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 ? DType::kF32 : dtype;
}

// The input's shape with its last `count` dims, which are `normalized`, made 1.
Dims outer_dims(const TensorMeta& input,
                std::span<const std::int64_t> normalized) {
  require(!normalized.empty() && normalized.size() <= input.shape().size(),
          "the normalized shape does not match the rank");
  Dims shape = input.shape();
  const std::size_t first = shape.size() - normalized.size();
  for (std::size_t i = 0; i < normalized.size(); ++i) {
    require(shape[first + i] == normalized[i],
            "the input does not end in the normalized shape");
    shape[first + i] = 1;
  }
  return shape;
}

TensorMeta like(const TensorMeta& meta) {
  return dense_like(meta, meta.shape(), meta.dtype());
}

Results layer_norm(const ShapeContext& op) {
  const TensorMeta& input = op.tensor("input");
  outer_dims(input, op.integers("normalized_shape"));
  return one(make_meta(input.shape(), input.dtype()));
}

Results native_layer_norm(const ShapeContext& op) {
  const TensorMeta& input = op.tensor("input");
  const TensorMeta statistics =
      make_meta(outer_dims(input, op.integers("normalized_shape")),
                statistics_dtype(input.dtype()));
  Results results = one(make_meta(input.shape(), input.dtype()));
  results.emplace_back(statistics);
  if (op.base_name() == "native_layer_norm") results.emplace_back(statistics);
  return results;
}

// Gradients of input, weight and bias that output_mask asks for.
Results masked_gradients(const ShapeContext& op,
                         std::initializer_list<std::string_view> of) {
  const auto* mask =
      std::get_if<std::vector<bool>>(&op.op().arg("output_mask"));
  require(mask != nullptr && mask->size() == of.size(),
          "output_mask has not one part per gradient");
  Results results;
  for (const std::string_view arg : of) {
    const bool wanted = (*mask)[results.size()];
    const TensorMeta* meta = op.has(arg) ? op.optional_tensor(arg) : nullptr;
    // The bias has the weight's shape, and is no argument of every backward.
    if (meta == nullptr && arg == "bias") meta = op.optional_tensor("weight");
    if (wanted && meta != nullptr) {
      results.emplace_back(like(*meta));
    } else {
      results.emplace_back(std::nullopt);
    }
  }
  return results;
}

Results norm_backward(const ShapeContext& op) {
  return masked_gradients(op, {"input", "weight", "bias"});
}

// The channels may go without a weight; their gradients have their size still.
Results batch_norm_backward(const ShapeContext& op) {
  const auto* mask =
      std::get_if<std::vector<bool>>(&op.op().arg("output_mask"));
  require(mask != nullptr && mask->size() == 3, "output_mask has three parts");
  const TensorMeta& input = op.tensor("input");
  require(input.rank() >= 2, "the input has no channels");
  const TensorMeta* weight = op.optional_tensor("weight");
  const TensorMeta channels = make_meta(
      Dims{input.size(1)},
      weight != nullptr ? weight->dtype() : statistics_dtype(input.dtype()));
  Results results(3);
  if ((*mask)[0]) results[0] = like(input);
  if ((*mask)[1]) results[1] = channels;
  if ((*mask)[2]) results[2] = channels;
  return results;
}

Results rms_norm_backward(const ShapeContext& op) {
  return masked_gradients(op, {"input", "weight"});
}

Results same_as_input(const ShapeContext& op) {
  return one(like(op.tensor("input")));
}

Results native_group_norm(const ShapeContext& op) {
  const TensorMeta& input = op.tensor("input");
  const TensorMeta statistics =
      make_meta(Dims{op.integer("N"), op.integer("group")},
                statistics_dtype(input.dtype()));
  return {make_meta(input.shape(), input.dtype()), statistics, statistics};
}

bool is_training(const ShapeContext& op) {
  return op.boolean_or("training", op.base_name() == "_batch_norm_with_update");
}

// Saved statistics are empty where the running ones are used.
Results native_batch_norm(const ShapeContext& op) {
  const TensorMeta& input = op.tensor("input");
  require(input.rank() >= 2, "the input has no channels");
  const TensorMeta statistics =
      make_meta(Dims{is_training(op) ? input.size(1) : 0},
                statistics_dtype(input.dtype()));
  Results results = one(like(input));
  results.emplace_back(statistics);
  results.emplace_back(statistics);
  if (op.base_name() == "_native_batch_norm_legit_functional") {
    for (const char* running : {"running_mean", "running_var"}) {
      results.emplace_back(like(op.tensor(running)));
    }
  }
  return results;
}

// The batch norms that also return space reserved for the backward.
Results batch_norm_with_reserve(const ShapeContext& op) {
  Results results = native_batch_norm(op);
  results.emplace_back(make_meta(Dims{0}, DType::kU8));
  return results;
}

Results softmax(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  wrap_dim(op.integer("dim"), self.rank());
  const bool widen = op.boolean_or("half_to_float", false);
  const DType dtype = widen ? DType::kF32 : op.dtype_or("dtype", self.dtype());
  return one(dense_like(self, self.shape(), dtype));
}

Results softmax_backward(const ShapeContext& op) {
  const TensorMeta& grad = op.tensor("grad_output");
  require(grad.shape() == op.tensor("output").shape(),
          "gradient and output have different shapes");
  wrap_dim(op.integer("dim"), grad.rank());
  return one(
      dense_like(grad, grad.shape(), op.dtype_or("input_dtype", grad.dtype())));
}

enum Reduction : std::int64_t { kNone = 0 };

// Classes in dim 1 (dim 0 of a lone sample), one target per sample.
Dims per_sample_shape(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  const TensorMeta& target = op.tensor("target");
  require(self.rank() >= 1, "the input has no classes");
  Dims shape = self.shape();
  shape.erase(shape.begin() + (self.rank() == 1 ? 0 : 1));
  const bool probabilities =
      target.shape() == self.shape() && op.base_name() == "cross_entropy_loss";
  require(probabilities || target.shape() == shape,
          "the targets do not match the samples");
  return shape;
}

Results class_loss(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  Dims shape = per_sample_shape(op);
  if (op.integer("reduction") != kNone) shape.clear();
  return one(make_meta(std::move(shape), self.dtype()));
}

Results class_loss_forward(const ShapeContext& op) {
  Results results = class_loss(op);
  results.emplace_back(make_meta(Dims{}, op.tensor("self").dtype()));
  return results;
}

Results gradient_of_self(const ShapeContext& op) {
  return one(make_meta(op.tensor("self").shape(), op.tensor("self").dtype()));
}

Results elementwise_loss(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  const TensorMeta& target = op.tensor("target");
  const Dims shape = broadcast(self.shape(), target.shape());
  const DType dtype = promote_types(self.dtype(), target.dtype());
  if (op.integer("reduction") != kNone) return one(make_meta(Dims{}, dtype));
  return one(make_meta(shape, dtype));
}

Results elementwise_loss_backward(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  return one(make_meta(broadcast(self.shape(), op.tensor("target").shape()),
                       self.dtype()));
}

}  // namespace

void add_normalization_shapes(ShapeTable& table) {
  table["aten.layer_norm"] = layer_norm;
  table["aten.rms_norm"] = layer_norm;
  table["aten.native_layer_norm"] = native_layer_norm;
  table["aten._fused_rms_norm"] = native_layer_norm;
  table["aten.native_layer_norm_backward"] = norm_backward;
  table["aten.native_group_norm_backward"] = norm_backward;
  table["aten._fused_rms_norm_backward"] = rms_norm_backward;
  table["aten.native_batch_norm_backward"] = batch_norm_backward;
  table["aten.batch_norm_backward"] = batch_norm_backward;
  for (const char* name :
       {"aten.batch_norm", "aten.group_norm", "aten.instance_norm"}) {
    table[name] = same_as_input;
  }
  table["aten.native_group_norm"] = native_group_norm;
  for (const char* name :
       {"aten.native_batch_norm", "aten._native_batch_norm_legit",
        "aten._native_batch_norm_legit_functional",
        "aten._native_batch_norm_legit_no_training"}) {
    table[name] = native_batch_norm;
  }
  table["aten._batch_norm_with_update"] = batch_norm_with_reserve;
  for (const char* name : {"aten._softmax", "aten._log_softmax", "aten.softmax",
                           "aten.log_softmax", "aten._safe_softmax"}) {
    table[name] = softmax;
  }
  table["aten._softmax_backward_data"] = softmax_backward;
  table["aten._log_softmax_backward_data"] = softmax_backward;
  for (const char* name : {"aten.cross_entropy_loss", "aten.nll_loss",
                           "aten.nll_loss_nd", "aten.nll_loss2d"}) {
    table[name] = class_loss;
  }
  table["aten.nll_loss_forward"] = class_loss_forward;
  table["aten.nll_loss2d_forward"] = class_loss_forward;
  table["aten.nll_loss_backward"] = gradient_of_self;
  table["aten.nll_loss2d_backward"] = gradient_of_self;
  for (const char* name :
       {"aten.mse_loss", "aten.l1_loss", "aten.smooth_l1_loss",
        "aten.huber_loss", "aten.binary_cross_entropy",
        "aten.binary_cross_entropy_with_logits"}) {
    table[name] = elementwise_loss;
  }
  for (const char* name :
       {"aten.mse_loss_backward", "aten.smooth_l1_loss_backward",
        "aten.huber_loss_backward", "aten.binary_cross_entropy_backward"}) {
    table[name] = elementwise_loss_backward;
  }
}

}  // namespace shardprop
