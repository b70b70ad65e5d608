// Evaluates norms over channels and groups, and the gradients of all norms.
// Layer and rms norms run by the programs of their definitions.

#include "reference/groups.h"
#include "reference/kernels.h"

#include <cmath>
#include <utility>

namespace shardprop::reference {
namespace {

// Of each group.
struct Statistics {
  std::vector<double> mean;
  std::vector<double> variance;
};

Statistics statistics_of(const Tensor& x, const Groups& groups) {
  Statistics out;
  groups.visit<double>(x, [&](const std::vector<double>& group) {
    const auto n = static_cast<double>(group.size());
    double mean = 0;
    for (const double v : group) mean += v / n;
    double sum = 0;
    for (const double v : group) sum += (v - mean) * (v - mean);
    out.mean.push_back(mean);
    out.variance.push_back(sum / n);
  });
  return out;
}

std::vector<int> all_but(int rank, int kept) {
  std::vector<int> dims;
  for (int d = 0; d < rank; ++d) {
    if (d != kept) dims.push_back(d);
  }
  return dims;
}

std::optional<std::vector<double>> optional_values(const Call& call,
                                                   std::string_view arg) {
  const Tensor* tensor = call.optional_value(arg);
  if (tensor == nullptr) return std::nullopt;
  return values<double>(*tensor);
}

// Returns the channel (dim 1) of every element, in row-major order.
std::vector<std::size_t> channels_of(const Dims& shape) {
  std::vector<std::size_t> out;
  Dims strides(shape.size(), 0);
  strides[1] = 1;
  for_each_offset(shape, strides,
                  [&](std::int64_t c) { out.push_back(index(c)); });
  return out;
}

bool trains(const Call& call) {
  if (call.base_name() == "_native_batch_norm_legit_no_training") return false;
  return call.boolean_or("training", true);
}

std::vector<double> reciprocal_roots(const std::vector<double>& variance,
                                     double eps) {
  std::vector<double> out;
  for (const double v : variance) out.push_back(1 / std::sqrt(v + eps));
  return out;
}

// Evaluates batch norms, including variants without running statistics and
// variants that only read them.
std::vector<Tensor> batch_norm(const Call& call) {
  const Tensor& input = call.value("input");
  const double eps = call.number("eps");
  const double momentum = call.number("momentum");
  const bool training = trains(call);
  auto running_mean = optional_values(call, "running_mean");
  auto running_var = optional_values(call, "running_var");
  Statistics s;
  if (training) {
    s = statistics_of(input, Groups(input.shape(), all_but(input.rank(), 1)));
  } else {
    require(running_mean && running_var, "running statistics are missing");
    s = {*running_mean, *running_var};
  }
  const std::vector<double> rstd = reciprocal_roots(s.variance, eps);
  const auto weight = optional_values(call, "weight");
  const auto bias = optional_values(call, "bias");
  std::vector<double> out = values<double>(input);
  const std::vector<std::size_t> channels = channels_of(input.shape());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t c = channels[i];
    out[i] = (out[i] - s.mean[c]) * rstd[c];
    if (weight) out[i] *= (*weight)[c];
    if (bias) out[i] += (*bias)[c];
  }
  std::vector<Tensor> results = {call.made(out)};
  if (call.outputs() == 1) return results;
  const std::vector<double> none;
  results.push_back(call.made(training ? s.mean : none, 1));
  results.push_back(call.made(training ? rstd : none, 2));
  if (call.outputs() == 5) {
    const double n =
        static_cast<double>(input.numel()) / static_cast<double>(input.size(1));
    for (std::size_t c = 0; c < running_mean->size() && training; ++c) {
      (*running_mean)[c] += momentum * (s.mean[c] - (*running_mean)[c]);
      (*running_var)[c] +=
          momentum * (s.variance[c] * n / (n - 1) - (*running_var)[c]);
    }
    results.push_back(call.made(*running_mean, 3));
    results.push_back(call.made(*running_var, 4));
  } else if (call.outputs() == 4) {
    results.push_back(Tensor::zeros(call.out(3).shape(), call.out(3).dtype()));
  }
  return results;
}

std::vector<Tensor> instance_norm(const Call& call) {
  const Tensor& input = call.value("input");
  if (!call.boolean("use_input_stats")) {
    throw NoKernel{"running statistics"};
  }
  std::vector<int> space;
  for (int d = 2; d < input.rank(); ++d) space.push_back(d);
  const Groups groups(input.shape(), space);
  const auto weight = optional_values(call, "weight");
  const auto bias = optional_values(call, "bias");
  const double eps = call.number("eps");
  std::vector<std::vector<double>> made;
  std::size_t n = 0;
  groups.visit<double>(input, [&](const std::vector<double>& group) {
    const std::size_t c = n++ % index(input.size(1));
    const auto count = static_cast<double>(group.size());
    double mean = 0;
    for (const double v : group) mean += v / count;
    double variance = 0;
    for (const double v : group) variance += (v - mean) * (v - mean) / count;
    made.push_back(group);
    for (double& v : made.back()) {
      v = (v - mean) / std::sqrt(variance + eps) * (weight ? (*weight)[c] : 1) +
          (bias ? (*bias)[c] : 0);
    }
  });
  return {call.made(groups.scattered(made))};
}

// In row-major order, the elements of a group of channels of one sample are
// consecutive.
std::vector<Tensor> group_norm(const Call& call) {
  const Tensor& input = call.value("input");
  const std::int64_t count =
      call.integer(call.has("num_groups") ? "num_groups" : "group");
  const std::int64_t samples = input.size(0);
  const std::int64_t channels = input.size(1);
  const double eps = call.number("eps");
  const auto weight = optional_values(call, "weight");
  const auto bias = optional_values(call, "bias");
  std::vector<double> x = values<double>(input);
  const std::size_t each = x.empty() ? 0 : x.size() / index(samples * count);
  const std::size_t points =
      x.empty() ? 1 : x.size() / index(samples * channels);
  std::vector<double> means(index(samples * count));
  std::vector<double> rstds(means.size());
  for (std::size_t g = 0; g < means.size(); ++g) {
    double mean = 0;
    double variance = 0;
    const auto n = static_cast<double>(each);
    for (std::size_t i = g * each; i < (g + 1) * each; ++i) mean += x[i] / n;
    for (std::size_t i = g * each; i < (g + 1) * each; ++i) {
      variance += (x[i] - mean) * (x[i] - mean) / n;
    }
    means[g] = mean;
    rstds[g] = 1 / std::sqrt(variance + eps);
    for (std::size_t i = g * each; i < (g + 1) * each; ++i) {
      const std::size_t c = i / points % index(channels);
      x[i] = (x[i] - mean) * rstds[g] * (weight ? (*weight)[c] : 1) +
             (bias ? (*bias)[c] : 0);
    }
  }
  std::vector<Tensor> out = {call.made(x)};
  if (call.outputs() == 3) {
    out.push_back(call.made(means, 1));
    out.push_back(call.made(rstds, 2));
  }
  return out;
}

// --- Gradients ---

// Returns the requested gradients, in order.
std::vector<Tensor> asked(const Call& call,
                          const std::vector<std::vector<double>>& all) {
  const std::vector<bool> mask = call.mask("output_mask", all.size());
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (mask[i] && out.size() < call.outputs()) {
      out.push_back(call.made(all[i], out.size()));
    }
  }
  return out;
}

// The gradient of an input that is normalised in groups: rstd (g - mean(g) - y
// mean(g y)).
struct Normalised {
  std::vector<double> y;      // (x - mean) rstd
  std::vector<double> slope;  // gradient of y
};

void to_input(Normalised& n, std::size_t begin, std::size_t end, double rstd,
              bool centred) {
  const auto count = static_cast<double>(end - begin);
  double mean = 0;
  double along = 0;
  for (std::size_t i = begin; i < end; ++i) {
    mean += n.slope[i] / count;
    along += n.slope[i] * n.y[i] / count;
  }
  for (std::size_t i = begin; i < end; ++i) {
    n.slope[i] = rstd * (n.slope[i] - (centred ? mean : 0) - n.y[i] * along);
  }
}

std::vector<Tensor> layer_norm_backward(const Call& call) {
  const bool rms = call.base_name().find("rms") != std::string_view::npos;
  const Tensor& input = call.value("input");
  const std::vector<double> g = values<double>(call.value("grad_out"));
  const std::vector<double> x = values<double>(input);
  const std::vector<double> rstd = values<double>(call.value("rstd"));
  const std::vector<double> mean = rms ? std::vector<double>(rstd.size())
                                       : values<double>(call.value("mean"));
  const auto weight = optional_values(call, "weight");
  std::size_t width = 1;
  for (const std::int64_t s : call.integers("normalized_shape"))
    width *= index(s);
  Normalised n{x, g};
  std::vector<double> of_weight(width);
  std::vector<double> of_bias(width);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t row = i / width;
    const std::size_t column = i % width;
    n.y[i] = (x[i] - mean[row]) * rstd[row];
    of_weight[column] += g[i] * n.y[i];
    of_bias[column] += g[i];
    if (weight) n.slope[i] *= (*weight)[column];
  }
  for (std::size_t row = 0; row < rstd.size(); ++row) {
    to_input(n, row * width, (row + 1) * width, rstd[row], !rms);
  }
  if (rms) return asked(call, {n.slope, of_weight});
  return asked(call, {n.slope, of_weight, of_bias});
}

std::vector<Tensor> group_norm_backward(const Call& call) {
  const Tensor& input = call.value("input");
  const std::vector<double> g = values<double>(call.value("grad_out"));
  const std::vector<double> x = values<double>(input);
  const std::vector<double> rstd = values<double>(call.value("rstd"));
  const std::vector<double> mean = values<double>(call.value("mean"));
  const auto weight = optional_values(call, "weight");
  const std::size_t channels = index(call.integer("C"));
  const std::size_t points = index(call.integer("HxW"));
  const std::size_t each = rstd.empty() ? 1 : x.size() / rstd.size();
  Normalised n{x, g};
  std::vector<double> of_weight(channels);
  std::vector<double> of_bias(channels);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i / points % channels;
    n.y[i] = (x[i] - mean[i / each]) * rstd[i / each];
    of_weight[c] += g[i] * n.y[i];
    of_bias[c] += g[i];
    if (weight) n.slope[i] *= (*weight)[c];
  }
  for (std::size_t group = 0; group < rstd.size(); ++group) {
    to_input(n, group * each, (group + 1) * each, rstd[group], true);
  }
  return asked(call, {n.slope, of_weight, of_bias});
}

std::vector<Tensor> batch_norm_backward(const Call& call) {
  const Tensor& input = call.value("input");
  const bool training =
      call.boolean_or("train", call.boolean_or("update", true));
  const std::vector<double> g = values<double>(call.value("grad_out"));
  const std::vector<double> x = values<double>(input);
  const auto weight = optional_values(call, "weight");
  const std::size_t channels = index(input.size(1));
  const char* saved = call.has("save_invstd") ? "save_invstd" : "save_var";
  std::vector<double> mean;
  std::vector<double> rstd;
  if (training) {
    const auto saved_mean = optional_values(call, "save_mean");
    const auto saved_rstd = optional_values(call, saved);
    require(saved_mean && saved_rstd, "saved statistics are missing");
    mean = *saved_mean;
    rstd = *saved_rstd;
  } else {
    const auto variance = optional_values(call, "running_var");
    const auto running = optional_values(call, "running_mean");
    require(variance && running, "running statistics are missing");
    mean = *running;
    rstd = reciprocal_roots(*variance, call.number("eps"));
  }
  require(mean.size() == channels && rstd.size() == channels,
          "the statistics are not by channel");
  const std::vector<std::size_t> channel = channels_of(input.shape());
  const double count =
      static_cast<double>(x.size()) / static_cast<double>(channels);
  std::vector<double> of_weight(channels);
  std::vector<double> of_bias(channels);
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel[i];
    y[i] = (x[i] - mean[c]) * rstd[c];
    of_weight[c] += g[i] * y[i];
    of_bias[c] += g[i];
  }
  std::vector<double> of_input(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel[i];
    const double scale = rstd[c] * (weight ? (*weight)[c] : 1);
    of_input[i] =
        training
            ? scale * (g[i] - of_bias[c] / count - y[i] * of_weight[c] / count)
            : scale * g[i];
  }
  return asked(call, {of_input, of_weight, of_bias});
}

}  // namespace

void add_norms(Kernels& k) {
  k.add({"native_batch_norm", "_native_batch_norm_legit.no_stats",
         "_native_batch_norm_legit_no_training",
         "_native_batch_norm_legit_functional", "batch_norm"},
        batch_norm);
  k.add({"instance_norm"}, instance_norm);
  k.add({"group_norm", "native_group_norm"}, group_norm);
  k.add({"native_layer_norm_backward"}, layer_norm_backward);
  k.add({"_fused_rms_norm_backward"}, layer_norm_backward);
  k.add({"native_group_norm_backward"}, group_norm_backward);
  k.add({"native_batch_norm_backward", "batch_norm_backward"},
        batch_norm_backward);
}

}  // namespace shardprop::reference
