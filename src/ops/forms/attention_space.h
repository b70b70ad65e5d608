// `AttentionSpace` is the index space of attention; this file also describes
// the dims of its operands and results. With grouped queries, the heads of the
// query are (groups, heads of a group). Keys and values have only the groups.
// More ranks than groups share the query heads by a joined factor
// (Factor::joins); the program then selects the key heads of a rank.
#pragma once

#include "ops/forms/forms.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::attention {

enum FactorOf : std::uint8_t {
  kBatch,
  kGroup,
  kHead,
  kQuery,
  kTile,
  kKey,
  kWidth,
  kValueWidth,
  kFactors
};
using DimsOfFactors = std::vector<std::vector<FactorOf>>;

inline const DimsOfFactors kQueryDims = {
    {kBatch}, {kGroup, kHead}, {kQuery, kTile}, {kWidth}};
inline const DimsOfFactors kKeyDims = {{kBatch}, {kGroup}, {kKey}, {kWidth}};
inline const DimsOfFactors kValueDims = {
    {kBatch}, {kGroup}, {kKey}, {kValueWidth}};
inline const DimsOfFactors kOutDims = {
    {kBatch}, {kGroup, kHead}, {kQuery, kTile}, {kValueWidth}};
inline const DimsOfFactors kBiasDims = {
    {kBatch}, {kGroup, kHead}, {kQuery, kTile}, {kKey}};
inline const DimsOfFactors kLogSumDims = {
    {kBatch}, {kGroup, kHead}, {kQuery, kTile}};

// cuDNN returns the log-sum-exp as a column.
inline const DimsOfFactors kLogSumColumn = {
    {kBatch}, {kGroup, kHead}, {kQuery, kTile}, {}};

// `Attention` holds query [batch, heads, q, e], key [batch, groups, k, e] and
// value [batch, groups, k, v].
struct Attention {
  const TensorMeta& query;
  const TensorMeta& key;
  const TensorMeta& value;
};

inline Attention operands(const OpCall& call) {
  const Attention a{call.tensor("query"), call.tensor("key"),
                    call.tensor("value")};
  require(a.query.rank() == 4, "the query has another rank");
  require(a.key.rank() == 4 && a.value.rank() == 4,
          "query, key and value have different ranks");
  require(
      a.query.dtype() == a.key.dtype() && a.query.dtype() == a.value.dtype(),
      "query, key and value are of different dtypes");
  require(a.query.size(3) == a.key.size(3),
          "query and key have different head sizes");
  require(a.key.size(2) == a.value.size(2),
          "key and value have different lengths");
  for (const int dim : {0, 1}) {
    require(a.key.size(dim) == a.value.size(dim),
            "key and value have different batches or heads");
  }
  require(a.query.size(0) == a.key.size(0), "the batches differ");
  require(a.key.size(1) > 0 ? a.query.size(1) % a.key.size(1) == 0
                            : a.query.size(1) == 0,
          "the key's heads do not divide the query's");
  return a;
}

// Returns the strides of a result that kernels write as [batch, length, heads,
// size] and that the call sees as [batch, heads, length, size].
inline Dims by_length(const Dims& shape, DType dtype) {
  const TensorMeta rows =
      make_meta(Dims{shape[0], shape[2], shape[1], shape[3]}, dtype);
  Dims strides = rows.strides();
  std::swap(strides[1], strides[2]);
  return strides;
}

// `AttentionSpace` gives the dims of an operand their factors from the list
// above. A dim whose size does not match is broadcast or padded, and is
// unsharded.
class AttentionSpace {
 public:
  // `tile` is the number of queries in a tile; a tile is not sharded.
  AttentionSpace(SpaceBuilder& builder, const Attention& a,
                 std::int64_t tile = 1)
      : b_(builder),
        sizes_{a.query.size(0),
               a.key.size(1),
               a.key.size(1) == 0 ? 1 : a.query.size(1) / a.key.size(1),
               a.query.size(2) / tile,
               tile,
               a.key.size(2),
               a.query.size(3),
               a.value.size(3)} {
    static constexpr char kLetters[] = {'b', 'g', 'r', 's', 'i', 't', 'd', 'v'};
    // The width of the values has the factor of the query width if both are
    // equal, so that points count a product once.
    for (std::size_t i = 0; i < kFactors; ++i) {
      if (i == kValueWidth || (i == kTile && tile == 1)) continue;
      ids_[i] = b_.factor(sizes_[i], kLetters[i]);
      b_.space.factor(ids_[i]).least = 1;  // kernels reject empty tensors
    }
    block(kWidth, "queries and keys are contracted over it");
    if (tile > 1) block(kTile, "kernels pad a log-sum-exp to it");
  }

  // Lets a program shard all query heads as one, with keys and values on every
  // rank. Precondition: no operand is bound yet.
  void join_heads() {
    if (sizes_[kGroup] <= 1 || sizes_[kHead] <= 1) return;
    const FactorId heads = b_.factor(sizes_[kGroup] * sizes_[kHead], 'h');
    Factor& joined = b_.space.factor(heads);
    joined.joins = {ids_[kGroup], ids_[kHead]};
    joined.program = ProgramUse::kWhenSharded;
    joined.least = 1;
  }

  // Returns the factor of the keys, which the program or the operator alone
  // shards.
  FactorId key_id() const { return ids_[kKey]; }
  Factor& key() { return b_.space.factor(ids_[kKey]); }
  Factor& query() { return b_.space.factor(ids_[kQuery]); }

  void block(FactorOf f, std::string reason) {
    b_.block({ids_[f]}, std::move(reason));
  }

  Operand operand(const Dims& shape, const DimsOfFactors& dims) const {
    Operand out;
    out.dims.resize(shape.size());
    if (shape.size() > dims.size()) return out;
    const std::size_t skipped = dims.size() - shape.size();
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::int64_t size = 1;
      bool has_factors = true;
      for (const FactorOf f : dims[d + skipped]) {
        size *= sizes_[f];
        has_factors = has_factors && f != kValueWidth;
      }
      if (size != shape[d] || !has_factors) continue;
      for (const FactorOf f : dims[d + skipped]) {
        if (sizes_[f] > 1) out.dims[d].push_back(ids_[f]);
      }
    }
    return out;
  }

 private:
  SpaceBuilder& b_;
  std::array<std::int64_t, kFactors> sizes_;
  std::array<FactorId, kFactors> ids_{};
};

// Returns the dims of a tensor argument by its name; null for others, such as
// seeds.
inline const DimsOfFactors* dims_of_argument(std::string_view name) {
  if (name == "query") return &kQueryDims;
  if (name == "key") return &kKeyDims;
  if (name == "value") return &kValueDims;
  if (name == "out" || name == "grad_out" || name == "grad_out_") {
    return &kOutDims;
  }
  if (name == "attn_mask" || name == "attn_bias") return &kBiasDims;
  if (name == "logsumexp") return &kLogSumDims;
  return nullptr;
}

inline void bind_operands(SpaceBuilder& b, AttentionSpace& space,
                          const OpCall& call, const Attention& a) {
  const OpSchema& op = call.op();
  b.space.inputs.resize(op.inputs.size());
  const auto& arguments = op.function->arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* tensor = std::get_if<TensorArg>(&op.args[i]);
    if (tensor == nullptr || tensor->operand == TensorArg::kNone) continue;
    const std::size_t operand = index(tensor->operand);
    const TensorMeta& meta = op.inputs[operand];
    const DimsOfFactors* dims = dims_of_argument(arguments[i].name);
    if (dims == &kLogSumDims && meta.rank() == 4) dims = &kLogSumColumn;
    if (dims == &kOutDims) {
      Dims result = a.query.shape();
      result.back() = a.value.shape().back();
      require(meta.shape() == result,
              "the result or its gradient is of another shape");
    }
    if (dims == &kBiasDims) {
      const Dims scores{a.query.size(0), a.query.size(1), a.query.size(2),
                        a.key.size(2)};
      require(broadcast(scores, meta.shape()) == scores,
              "the mask does not broadcast to queries by keys");
    }
    b.space.inputs[operand] = dims == nullptr
                                  ? SpaceBuilder::whole(meta.rank())
                                  : space.operand(meta.shape(), *dims);
    // A padded log-sum-exp cannot be sharded along the queries.
    if (arguments[i].name == "logsumexp" &&
        (meta.rank() < 3 || meta.size(2) != a.query.size(2))) {
      space.block(kQuery, "its log-sum-exp is padded");
    }
  }
}

// `AttentionResult` is one result: its shape, the factors of its dims, and its
// strides and dtype.
struct AttentionResult {
  Dims shape;
  const DimsOfFactors* dims = nullptr;  // null: the same on every rank
  std::optional<Dims> strides;
  std::optional<DType> dtype;
};

inline void add_result(SpaceBuilder& b, const AttentionSpace& space,
                       AttentionResult result, Without lacking) {
  Operand operand = SpaceBuilder::whole(static_cast<int>(result.shape.size()));
  std::int64_t elements = 1;
  for (const std::int64_t size : result.shape) elements *= size;
  if (result.dims != nullptr)
    operand = space.operand(result.shape, *result.dims);
  const auto o = static_cast<int>(b.space.outputs.size());
  b.output(std::move(operand), {.shape = result.shape,
                                .strides = result.strides,
                                .dtype = result.dtype});
  b.space.seal();
  if (result.dims == nullptr || elements == 0) lacking = Without::same();
  for (std::size_t f = 0; f < b.space.factors.size(); ++f) {
    b.space.outputs_without[index(o)][f] = lacking;
  }
}

}  // namespace shardprop::attention
