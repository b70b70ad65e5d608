// Attention over batch and heads; over queries where no mask ties them to
// their place. Grouped queries: query heads are (groups, heads of a group),
// keys and values have the groups.

#include "strategy/rules/families.h"

#include <array>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

constexpr std::string_view kQueryLike[] = {"query", "grad_out", "grad_out_",
                                           "out"};
constexpr std::string_view kKeyLike[] = {"key", "value"};
constexpr std::string_view kBiasLike[] = {"attn_mask", "attn_bias"};

enum FactorOf { kBatch, kGroup, kHead, kQuery, kKey, kWidth, kFactors };

// Dims of an operand written with the factors above; a dim whose size does not
// match is broadcast or padded, and stays whole.
class AttentionDims {
 public:
  AttentionDims(FactorMap& map, const std::array<std::int64_t, kFactors>& sizes)
      : sizes_(sizes) {
    static constexpr char kLetters[] = {'b', 'g', 'r', 's', 't', 'd'};
    for (std::size_t i = 0; i < kFactors; ++i) {
      factors_[i] = map.add_factor(sizes[i], kLetters[i]);
    }
  }

  Operand operand(const TensorMeta& meta,
                  const std::vector<std::vector<FactorOf>>& dims) const {
    Operand out;
    out.dims.resize(static_cast<std::size_t>(meta.rank()));
    if (meta.rank() > static_cast<int>(dims.size())) return out;
    const std::size_t skipped = dims.size() - out.dims.size();
    for (std::size_t d = 0; d < out.dims.size(); ++d) {
      std::int64_t size = 1;
      for (const FactorOf f : dims[d + skipped]) size *= sizes_[f];
      if (size != meta.size(static_cast<int>(d))) continue;
      for (const FactorOf f : dims[d + skipped]) {
        if (sizes_[f] > 1) {
          out.dims[d].push_back(static_cast<std::int8_t>(factors_[f]));
        }
      }
    }
    return out;
  }

 private:
  std::array<std::int64_t, kFactors> sizes_;
  std::array<int, kFactors> factors_{};
};

template <std::size_t N>
bool any_of(const std::string_view (&names)[N], std::string_view name) {
  for (const std::string_view known : names) {
    if (known == name) return true;
  }
  return false;
}

const std::vector<std::vector<FactorOf>> kQueryDims = {
    {kBatch}, {kGroup, kHead}, {kQuery}, {kWidth}};
const std::vector<std::vector<FactorOf>> kKeyDims = {
    {kBatch}, {kGroup}, {kKey}, {kWidth}};
const std::vector<std::vector<FactorOf>> kBiasDims = {
    {kBatch}, {kGroup, kHead}, {kQuery}, {kKey}};
const std::vector<std::vector<FactorOf>> kLogSumDims = {
    {kBatch}, {kGroup, kHead}, {kQuery}};

Result<FactorMap> instantiate_attention(const OpSchema& op, bool backward) {
  const auto query = op.tensor_arg("query");
  const auto key = op.tensor_arg("key");
  if (!query || !key || op.inputs[*query].rank() != 4 ||
      op.inputs[*key].rank() != 4 || op.inputs[*key].size(1) == 0 ||
      op.inputs[*query].size(1) % op.inputs[*key].size(1) != 0) {
    return fail(ErrorCode::kNoStrategy,
                op.name() +
                    " takes queries [batch, heads, length, width] and "
                    "keys whose heads divide theirs");
  }
  const TensorMeta& q = op.inputs[*query];
  const TensorMeta& k = op.inputs[*key];
  FactorMap map;
  const AttentionDims dims(map, {q.size(0), k.size(1), q.size(1) / k.size(1),
                                 q.size(2), k.size(2), q.size(3)});
  const bool causal = op.bool_arg("is_causal").value_or(false);
  if (causal) {
    map.factors[kQuery].blocked = "a causal mask ties queries to their place";
  }
  map.factors[kKey].blocked = "the softmax runs over it";
  map.factors[kWidth].blocked = "queries and keys are contracted over it";
  // Kernels of attention do not take an empty tensor.
  for (Factor& factor : map.factors) factor.nonempty = true;

  const auto& arguments = op.function->arguments();
  map.inputs.resize(op.inputs.size());
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    const auto* tensor = std::get_if<TensorArg>(&op.args[a]);
    if (tensor == nullptr || tensor->operand == TensorArg::kNone) continue;
    const auto i = static_cast<std::size_t>(tensor->operand);
    const std::string_view name = arguments[a].name;
    const TensorMeta& meta = op.inputs[i];
    if (any_of(kQueryLike, name)) {
      map.inputs[i] = dims.operand(meta, kQueryDims);
    } else if (any_of(kKeyLike, name)) {
      map.inputs[i] = dims.operand(meta, kKeyDims);
    } else if (any_of(kBiasLike, name)) {
      map.inputs[i] = dims.operand(meta, kBiasDims);
    } else if (name == "logsumexp") {
      map.inputs[i] = dims.operand(meta, kLogSumDims);
      // A padded one cannot be cut where the queries are.
      if (meta.size(2) != q.size(2)) {
        map.factors[kQuery].blocked = "its log-sum-exp is padded";
      }
    } else {
      map.inputs[i].dims.resize(static_cast<std::size_t>(meta.rank()));
    }
  }
  const std::vector<std::vector<FactorOf>>* forward_dims[] = {&kQueryDims,
                                                              &kLogSumDims};
  const std::vector<std::vector<FactorOf>>* backward_dims[] = {
      &kQueryDims, &kKeyDims, &kKeyDims, &kBiasDims};
  for (std::size_t o = 0; o < op.outputs.size(); ++o) {
    const TensorMeta& meta = op.outputs[o];
    const std::vector<std::vector<FactorOf>>* shape = nullptr;
    if (backward && o < std::size(backward_dims)) shape = backward_dims[o];
    if (!backward && o < std::size(forward_dims)) shape = forward_dims[o];
    if (shape != nullptr && meta.rank() == static_cast<int>(shape->size())) {
      map.outputs.push_back(dims.operand(meta, *shape));
      // Also a padded one: an output that neither holds the queries nor sums
      // over them keeps them whole.
    } else {
      map.outputs.emplace_back().dims.resize(
          static_cast<std::size_t>(meta.rank()));
      shape = nullptr;
    }
    map.seal();
    for (std::size_t f = 0; f < map.factors.size(); ++f) {
      if (shape != nullptr && backward) {
        // Gradients sum over what they are broadcast along.
        map.outputs_without[o][f] = Placement::partial(ReduceOp::kSum);
      } else if (shape == nullptr || meta.numel() == 0) {
        // Seeds and such: the same on every rank.
        map.outputs_without[o][f] = Placement::replicate();
      }
    }
  }
  map.seal();
  map.is_random =
      op.has_arg("dropout_p") && op.float_arg("dropout_p").value_or(0) > 0;
  // Two products forward, five backward; a causal mask skips half of each.
  map.flops_per_point = (backward ? 10.0 : 4.0) * (causal ? 0.5 : 1.0);
  return map;
}

}  // namespace

void add_attention_rules(RuleBook& book) {
  const auto attention = [](bool backward) {
    return custom(backward ? "attention_backward(b(gr)sd,bgtd)"
                           : "attention(b(gr)sd,bgtd)",
                  [backward](const OpSchema& op) {
                    return instantiate_attention(op, backward);
                  });
  };
  for (const char* name :
       {"aten._scaled_dot_product_efficient_attention.default",
        "aten._scaled_dot_product_flash_attention.default",
        "aten._scaled_dot_product_flash_attention_for_cpu.default",
        "aten.scaled_dot_product_attention.default"}) {
    book.add("attention", name, attention(false));
  }
  for (const char* name :
       {"aten._scaled_dot_product_efficient_attention_backward.default",
        "aten._scaled_dot_product_flash_attention_backward.default",
        "aten._scaled_dot_product_flash_attention_for_cpu_backward.default"}) {
    book.add("attention", name, attention(true));
  }
}

}  // namespace shardprop
