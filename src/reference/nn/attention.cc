// Evaluates scaled dot-product attention and its gradients, element by element,
// for the kernels of every device. The kernels differ in their additional
// results.

#include "reference/kernels.h"
#include "reference/math/arithmetic.h"
#include "reference/math/pointwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace shardprop::reference {
namespace {

// The operands are queries [batch, heads, queries, width], keys [batch, groups,
// keys, width] and values [batch, groups, keys, depth]. The heads of a group
// share its keys.
struct Attention {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t groups = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t width = 1;
  std::int64_t depth = 1;
  double scale = 1;
  bool causal = false;
  // A causal query sees so many more keys than its own position: the last query of a
  // flash kernel sees all keys.
  std::int64_t more_keys = 0;
  std::vector<double> q, k, v;
  std::vector<double> bias;  // [batch, heads, queries, keys]; may be empty

  std::int64_t rows() const { return batch * heads; }
  // Returns the group whose keys row r uses.
  std::int64_t group_of(std::int64_t row) const {
    return row / heads * groups + row % heads / (heads / groups);
  }
};

// Returns the bias at every point: minus infinity if a bool mask is false.
std::vector<double> bias_of(const Tensor& mask, const Dims& points) {
  std::vector<double> out = broadcast_values<double>(mask, points);
  if (mask.dtype() == DType::kBool) {
    for (double& x : out) x = x != 0 ? 0 : -kInfinity;
  }
  return out;
}

// Returns the dims before the last two.
Dims leading_dims(const Tensor& tensor) {
  Dims dims = tensor.shape();
  dims.pop_back();
  dims.pop_back();
  return dims;
}

// Returns the values of matrices, broadcast along their leading dims.
std::vector<double> spread(const Tensor& matrices, Dims shape) {
  for (const int dim : {-2, -1}) {
    shape.push_back(matrices.size(matrices.rank() + dim));
  }
  return broadcast_values<double>(matrices, shape);
}

Attention attention_of(const Call& call) {
  if (call.number("dropout_p") > 0) throw NoKernel{"it draws random numbers"};
  const Tensor& query = call.value("query");
  const Tensor& key = call.value("key");
  const Tensor& value = call.value("value");
  const int rank = query.rank();
  Attention a;
  const bool by_head = rank == 4 && key.rank() == 4 && value.rank() == 4 &&
                       query.size(0) == key.size(0) &&
                       key.size(0) == value.size(0) &&
                       key.size(1) == value.size(1) && key.size(1) > 0 &&
                       query.size(1) % key.size(1) == 0;
  a.queries = query.size(rank - 2);
  a.keys = key.size(key.rank() - 2);
  a.width = query.size(rank - 1);
  a.depth = value.size(value.rank() - 1);
  Dims points = leading_dims(query);
  if (by_head) {
    a.batch = query.size(0);
    a.heads = query.size(1);
    a.groups = key.size(1);
    a.q = values<double>(query);
    a.k = values<double>(key);
    a.v = values<double>(value);
  } else {
    if (call.boolean_or("enable_gqa", false)) {
      throw NoKernel{"grouped heads whose batches broadcast"};
    }
    points =
        broadcast(points, broadcast(leading_dims(key), leading_dims(value)));
    a.batch = product(points);
    a.q = spread(query, points);
    a.k = spread(key, points);
    a.v = spread(value, points);
  }
  points.push_back(a.queries);
  points.push_back(a.keys);
  a.scale = call.number("scale", 1 / std::sqrt(static_cast<double>(a.width)));
  a.causal = call.boolean_or("is_causal", false);
  for (const char* name : {"attn_mask", "attn_bias"}) {
    const Tensor* mask = call.optional_value(name);
    if (mask == nullptr || mask->numel() == 0) continue;
    a.bias = bias_of(*mask, points);
  }
  return a;
}

double dot(const std::vector<double>& a, std::int64_t i,
           const std::vector<double>& b, std::int64_t j, std::int64_t width) {
  double sum = 0;
  for (std::int64_t e = 0; e < width; ++e) {
    sum += a[index(i * width + e)] * b[index(j * width + e)];
  }
  return sum;
}

// Returns the scores of one query against all keys.
std::vector<double> scores_of(const Attention& a, std::int64_t row,
                              std::int64_t query) {
  std::vector<double> out;
  const std::int64_t from = row * a.queries + query;
  for (std::int64_t t = 0; t < a.keys; ++t) {
    double score =
        a.scale * dot(a.q, from, a.k, a.group_of(row) * a.keys + t, a.width);
    if (!a.bias.empty()) score += a.bias[index(from * a.keys + t)];
    if (a.causal && t > query + a.more_keys) score = -kInfinity;
    out.push_back(score);
  }
  return out;
}

double log_sum(const std::vector<double>& scores) {
  double top = -kInfinity;
  for (const double s : scores) top = std::max(top, s);
  if (top == -kInfinity) return top;
  double sum = 0;
  for (const double s : scores) sum += std::exp(s - top);
  return top + std::log(sum);
}

// Returns the weight of a key. In a row whose keys are all masked, weights are
// zero.
double share(double score, double log) {
  return score == -kInfinity ? 0 : std::exp(score - log);
}

// `Attended` has the output and the log-sum-exp of every query.
struct Attended {
  std::vector<double> out;
  std::vector<double> logs;
};

Attended attended(const Attention& a) {
  std::vector<double> out(index(a.rows() * a.queries * a.depth));
  std::vector<double> logs;
  for (std::int64_t row = 0; row < a.rows(); ++row) {
    for (std::int64_t s = 0; s < a.queries; ++s) {
      const std::vector<double> scores = scores_of(a, row, s);
      logs.push_back(log_sum(scores));
      const std::int64_t to = (row * a.queries + s) * a.depth;
      for (std::int64_t t = 0; t < a.keys; ++t) {
        const double weight = share(scores[index(t)], logs.back());
        const std::int64_t from = (a.group_of(row) * a.keys + t) * a.depth;
        for (std::int64_t e = 0; e < a.depth; ++e) {
          out[index(to + e)] += weight * a.v[index(from + e)];
        }
      }
    }
  }
  return {std::move(out), std::move(logs)};
}

std::vector<Tensor> attention(const Call& call) {
  const Attention a = attention_of(call);
  const auto [out, logs] = attended(a);
  std::vector<Tensor> results = {call.made(out)};
  for (std::size_t o = 1; o < call.outputs(); ++o) {
    const TensorMeta& meta = call.out(o);
    // The log-sum-exp may be padded, or not requested. The other results are
    // states of random generators.
    const bool is_log = o == 1 && is_floating(meta.dtype()) &&
                        meta.rank() >= 3 && meta.size(2) >= a.queries;
    Tensor tensor = Tensor::zeros(meta.shape(), meta.dtype());
    if (is_log) {
      const Dims shape{a.batch, a.heads, a.queries};
      const Dims& steps = tensor.strides();
      write(tensor.seen_as(shape, Dims{steps[0], steps[1], steps[2]}), logs);
    }
    results.push_back(std::move(tensor));
  }
  return results;
}

// Copies rows `begin` to `begin + length` of each head of an operand [tokens, heads, width]
// to a matrix of each head.
std::vector<double> rows_of_heads(const std::vector<double>& from,
                                  std::int64_t heads, std::int64_t width,
                                  std::int64_t begin, std::int64_t length) {
  std::vector<double> out;
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t t = begin; t < begin + length; ++t) {
      const auto at = from.begin() + (t * heads + h) * width;
      out.insert(out.end(), at, at + width);
    }
  }
  return out;
}

// Returns where each sequence begins and ends. Dense operands are sequences of one length.
std::vector<std::int64_t> ends_of(const Call& call, std::string_view argument,
                                  const Tensor& operand) {
  std::vector<std::int64_t> ends;
  if (operand.rank() == 4) {
    for (std::int64_t i = 0; i <= operand.size(0); ++i) {
      ends.push_back(i * operand.size(1));
    }
    return ends;
  }
  const Tensor* given = call.optional_value(argument);
  require(given != nullptr, "the ends of the sequences are missing");
  for (const std::int64_t end : values<std::int64_t>(*given)) {
    ends.push_back(std::clamp<std::int64_t>(end, 0, operand.size(0)));
  }
  return ends;
}

// A sequence whose end is before its begin has no tokens. Tokens of no sequence have zeros.
std::vector<Tensor> flash_attention(const Call& call) {
  for (const char* name : {"seqused_k", "alibi_slopes", "block_table"}) {
    if (call.optional_value(name) != nullptr) {
      throw NoKernel{"used lengths, slopes and pages"};
    }
  }
  for (const char* name : {"window_size_left", "window_size_right"}) {
    if (call.number(name, -1) >= 0) throw NoKernel{"windows"};
  }
  if (call.number("dropout_p") > 0) throw NoKernel{"it draws random numbers"};
  const Tensor& query = call.value("query");
  const Tensor& key = call.value("key");
  const int rank = query.rank();
  const bool is_packed = call.optional_value("cum_seq_q") != nullptr;
  if (rank != (is_packed ? 3 : 4) || key.rank() != rank ||
      call.value("value").rank() != rank) {
    throw NoKernel{"operands of these ranks"};
  }
  Attention a;
  a.heads = query.size(rank - 2);
  a.groups = key.size(rank - 2);
  a.width = a.depth = query.size(rank - 1);
  a.scale = call.number("scale", 1 / std::sqrt(static_cast<double>(a.width)));
  a.causal = call.boolean("is_causal");
  const std::vector<double> q = values<double>(query);
  const std::vector<double> k = values<double>(key);
  const std::vector<double> v = values<double>(call.value("value"));
  const std::vector<std::int64_t> q_ends = ends_of(call, "cum_seq_q", query);
  const std::vector<std::int64_t> k_ends = ends_of(call, "cum_seq_k", key);
  require(q_ends.size() == k_ends.size(),
          "queries and keys are of different sequences");
  std::vector<double> out(q.size());
  std::vector<double> logs(index(call.out(1).numel()));
  for (std::size_t i = 0; i + 1 < q_ends.size(); ++i) {
    a.queries = std::max<std::int64_t>(q_ends[i + 1] - q_ends[i], 0);
    a.keys = std::max<std::int64_t>(k_ends[i + 1] - k_ends[i], 0);
    a.more_keys = a.keys - a.queries;
    a.q = rows_of_heads(q, a.heads, a.width, q_ends[i], a.queries);
    a.k = rows_of_heads(k, a.groups, a.width, k_ends[i], a.keys);
    a.v = rows_of_heads(v, a.groups, a.width, k_ends[i], a.keys);
    const Attended one = attended(a);
    for (std::int64_t h = 0; h < a.heads; ++h) {
      for (std::int64_t s = 0; s < a.queries; ++s) {
        const std::int64_t from = h * a.queries + s;
        const std::int64_t token = q_ends[i] + s;
        std::copy_n(one.out.begin() + from * a.width, a.width,
                    out.begin() + (token * a.heads + h) * a.width);
        const std::int64_t to =
            is_packed
                ? h * query.size(0) + token
                : (static_cast<std::int64_t>(i) * a.heads + h) * a.queries + s;
        require(to < std::ssize(logs), "the log-sum-exp is too short");
        logs[index(to)] = one.logs[index(from)];
      }
    }
  }
  std::vector<Tensor> results = {call.made(out), call.made(logs, 1)};
  for (std::size_t o = 2; o < call.outputs(); ++o) {
    results.push_back(Tensor::zeros(call.out(o).shape(), call.out(o).dtype()));
  }
  return results;
}

const Tensor& gradient_of_result(const Call& call) {
  return call.value(call.has("grad_out_") ? "grad_out_" : "grad_out");
}

// Returns the log-sum-exp that the forward stored, without its padding.
std::vector<double> kept_logs(const Call& call, const Attention& a) {
  const Tensor& logs = call.value("logsumexp");
  require(logs.rank() >= 3 && logs.size(2) >= a.queries,
          "the log-sum-exp is too short");
  const Dims& steps = logs.strides();
  return values<double>(logs.seen_as(Dims{a.batch, a.heads, a.queries},
                                     Dims{steps[0], steps[1], steps[2]}));
}

// Sums a gradient by point over the dims along which the bias is broadcast.
std::vector<double> summed_to(const std::vector<double>& points,
                              const Dims& shape, const Dims& bias) {
  const Dims steps = contiguous_strides(bias);
  Dims strides(shape.size(), 0);
  const std::size_t lead = shape.size() - bias.size();
  for (std::size_t d = 0; d < bias.size(); ++d) {
    if (bias[d] != 1) strides[lead + d] = steps[d];
  }
  std::vector<double> out(
      index(product(std::span<const std::int64_t>(bias.begin(), bias.end()))));
  std::size_t n = 0;
  for_each_offset(shape, strides,
                  [&](std::int64_t at) { out[index(at)] += points[n++]; });
  return out;
}

std::vector<Tensor> attention_backward(const Call& call) {
  const Attention a = attention_of(call);
  const std::vector<double> g = values<double>(gradient_of_result(call));
  const std::vector<double> out = values<double>(call.value("out"));
  const std::vector<double> logs = kept_logs(call, a);
  std::vector<double> dq(a.q.size());
  std::vector<double> dk(a.k.size());
  std::vector<double> dv(a.v.size());
  std::vector<double> dbias;
  for (std::int64_t row = 0; row < a.rows(); ++row) {
    for (std::int64_t s = 0; s < a.queries; ++s) {
      const std::int64_t at = row * a.queries + s;
      const std::vector<double> scores = scores_of(a, row, s);
      const double mean = dot(g, at, out, at, a.depth);
      for (std::int64_t t = 0; t < a.keys; ++t) {
        const std::int64_t key = a.group_of(row) * a.keys + t;
        const double weight = share(scores[index(t)], logs[index(at)]);
        const double slope = weight * (dot(g, at, a.v, key, a.depth) - mean);
        dbias.push_back(slope);
        for (std::int64_t e = 0; e < a.depth; ++e) {
          dv[index(key * a.depth + e)] += weight * g[index(at * a.depth + e)];
        }
        for (std::int64_t e = 0; e < a.width; ++e) {
          dq[index(at * a.width + e)] +=
              a.scale * slope * a.k[index(key * a.width + e)];
          dk[index(key * a.width + e)] +=
              a.scale * slope * a.q[index(at * a.width + e)];
        }
      }
    }
  }
  const std::vector<bool> mask =
      call.has("grad_input_mask") ? call.mask("grad_input_mask", 4)
                                  : std::vector<bool>{true, true, true, false};
  std::vector<Tensor> results;
  const std::vector<double>* gradients[] = {&dq, &dk, &dv};
  for (std::size_t i = 0; i < 3; ++i) {
    if (mask[i]) results.push_back(call.made(*gradients[i], results.size()));
  }
  if (mask[3] && results.size() < call.outputs()) {
    Dims points = call.value("query").shape();
    points.back() = a.keys;
    results.push_back(
        call.made(summed_to(dbias, points, call.out(results.size()).shape()),
                  results.size()));
  }
  return results;
}

}  // namespace

void add_attention(Kernels& k) {
  k.add({"scaled_dot_product_attention", "_scaled_dot_product_flash_attention",
         "_scaled_dot_product_flash_attention_for_cpu",
         "_scaled_dot_product_efficient_attention",
         "_scaled_dot_product_cudnn_attention"},
        attention);
  k.add({"_flash_attention_forward"}, flash_attention);
  k.add({"_scaled_dot_product_flash_attention_backward",
         "_scaled_dot_product_flash_attention_for_cpu_backward",
         "_scaled_dot_product_efficient_attention_backward",
         "_scaled_dot_product_cudnn_attention_backward"},
        attention_backward);
}

}  // namespace shardprop::reference
