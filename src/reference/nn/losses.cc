// Evaluates losses of classes and of elements, and their gradients.

#include "reference/kernels.h"
#include "reference/math/arithmetic.h"
#include "reference/math/pointwise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace shardprop::reference {
namespace {

enum Reduction : std::int64_t { kNone = 0, kMean = 1, kSum = 2 };

// --- Of classes: dim 1, or dim 0 of a lone sample ---

struct Classes {
  std::int64_t outer = 1;  // samples
  std::int64_t count = 1;
  std::int64_t inner = 1;  // places of a sample
  std::size_t at(std::int64_t sample, std::int64_t c,
                 std::int64_t place) const {
    return index((sample * count + c) * inner + place);
  }
};

Classes classes_of(const Dims& shape) {
  Classes out;
  const std::size_t dim = shape.size() == 1 ? 0 : 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    (d < dim ? out.outer : d == dim ? out.count : out.inner) *= shape[d];
  }
  return out;
}

struct ClassWeights {
  std::vector<double> by_class;
  std::int64_t ignored;
  // Returns 0 for the ignored target.
  double of(std::int64_t target) const {
    if (target == ignored) return 0;
    require(target >= 0 && index(target) < by_class.size(),
            "a target is not a class");
    return by_class[index(target)];
  }
};

ClassWeights weights_of(const Call& call, const Classes& classes) {
  ClassWeights out{std::vector<double>(index(classes.count), 1.0),
                   call.integer_or("ignore_index", -100)};
  if (const Tensor* weight = call.optional_value("weight")) {
    out.by_class = values<double>(*weight);
  }
  return out;
}

// Computes the loss of each position from the log-probabilities of its classes.
struct ClassLoss {
  std::vector<double> losses;
  double weight = 0;
};

ClassLoss class_loss(const std::vector<double>& logs,
                     const std::vector<std::int64_t>& targets,
                     const Classes& classes, const ClassWeights& weights) {
  ClassLoss out;
  for (std::int64_t s = 0; s < classes.outer; ++s) {
    for (std::int64_t p = 0; p < classes.inner; ++p) {
      const std::int64_t target = targets[index(s * classes.inner + p)];
      const double weight = weights.of(target);
      out.losses.push_back(weight == 0 && target == weights.ignored
                               ? 0
                               : -weight * logs[classes.at(s, target, p)]);
      out.weight += weight;
    }
  }
  return out;
}

std::vector<Tensor> reduced_classes(const Call& call, const ClassLoss& loss,
                                    bool with_weight) {
  const std::int64_t reduction = call.integer("reduction");
  std::vector<double> out = loss.losses;
  if (reduction != kNone) {
    double sum = std::accumulate(out.begin(), out.end(), 0.0);
    if (reduction == kMean) sum /= loss.weight;
    out = {sum};
  }
  std::vector<Tensor> results = {call.made(out)};
  if (with_weight) {
    // PyTorch sums the weights if it reduces the losses, or if there is one
    // sample.
    const bool adds_up =
        reduction != kNone || call.value("self").shape().size() == 1;
    results.push_back(
        call.made(std::vector<double>{adds_up ? loss.weight : 0}, 1));
  }
  return results;
}

std::vector<Tensor> nll_loss(const Call& call) {
  const Tensor& self = call.value("self");
  const Classes classes = classes_of(self.shape());
  const ClassLoss loss = class_loss(values<double>(self),
                                    values<std::int64_t>(call.value("target")),
                                    classes, weights_of(call, classes));
  return reduced_classes(call, loss, call.outputs() == 2);
}

std::vector<double> log_softmax(const Tensor& self, const Classes& classes) {
  std::vector<double> x = values<double>(self);
  for (std::int64_t s = 0; s < classes.outer; ++s) {
    for (std::int64_t p = 0; p < classes.inner; ++p) {
      double top = -INFINITY;
      double sum = 0;
      for (std::int64_t c = 0; c < classes.count; ++c) {
        top = maximum(top, x[classes.at(s, c, p)]);
      }
      for (std::int64_t c = 0; c < classes.count; ++c) {
        sum += std::exp(x[classes.at(s, c, p)] - top);
      }
      for (std::int64_t c = 0; c < classes.count; ++c) {
        x[classes.at(s, c, p)] -= top + std::log(sum);
      }
    }
  }
  return x;
}

std::vector<Tensor> cross_entropy(const Call& call) {
  const Tensor& self = call.value("self");
  const Tensor& target = call.value("target");
  const double smoothing = std::max(call.number("label_smoothing", 0), 0.0);
  const Classes classes = classes_of(self.shape());
  const ClassWeights weights = weights_of(call, classes);
  const std::vector<double> logs = log_softmax(self, classes);
  if (is_floating(target.dtype())) {
    // The target has probabilities, so the mean is over positions.
    const std::vector<double> wanted = values<double>(target);
    ClassLoss loss;
    for (std::int64_t s = 0; s < classes.outer; ++s) {
      for (std::int64_t p = 0; p < classes.inner; ++p) {
        double sum = 0;
        for (std::int64_t c = 0; c < classes.count; ++c) {
          const std::size_t at = classes.at(s, c, p);
          const double share = wanted[at] * (1 - smoothing) +
                               smoothing / static_cast<double>(classes.count);
          sum -= weights.by_class[index(c)] * share * logs[at];
        }
        loss.losses.push_back(sum);
        if (classes.count > 0) loss.weight += 1;
      }
    }
    return reduced_classes(call, loss, false);
  }
  const auto targets = values<std::int64_t>(target);
  ClassLoss loss = class_loss(logs, targets, classes, weights);
  if (smoothing > 0) {
    std::size_t n = 0;
    for (std::int64_t s = 0; s < classes.outer; ++s) {
      for (std::int64_t p = 0; p < classes.inner; ++p, ++n) {
        double all = 0;
        for (std::int64_t c = 0; c < classes.count; ++c) {
          all -= weights.by_class[index(c)] * logs[classes.at(s, c, p)];
        }
        if (targets[n] == weights.ignored) all = 0;
        loss.losses[n] = (1 - smoothing) * loss.losses[n] +
                         smoothing / static_cast<double>(classes.count) * all;
      }
    }
  }
  return reduced_classes(call, loss, false);
}

std::vector<Tensor> nll_loss_backward(const Call& call) {
  const Tensor& self = call.value("self");
  const Classes classes = classes_of(self.shape());
  const ClassWeights weights = weights_of(call, classes);
  const auto targets = values<std::int64_t>(call.value("target"));
  const std::vector<double> grad = values<double>(call.value("grad_output"));
  const Tensor& total_weight = call.value("total_weight");
  require(total_weight.numel() == 1, "the total weight is not one number");
  const double total = values<double>(total_weight).front();
  const std::int64_t reduction = call.integer("reduction");
  std::vector<double> out(index(self.numel()));
  std::size_t n = 0;
  for (std::int64_t s = 0; s < classes.outer; ++s) {
    for (std::int64_t p = 0; p < classes.inner; ++p, ++n) {
      if (targets[n] == weights.ignored) continue;
      const double slope = reduction == kNone   ? grad[n]
                           : reduction == kMean ? grad[0] / total
                                                : grad[0];
      out[classes.at(s, targets[n], p)] = -weights.of(targets[n]) * slope;
    }
  }
  return {call.made(out)};
}

// --- Of elements ---

// Evaluates f(x, target, weight, pos_weight) and reduces over all elements.
using ElementLoss = std::function<double(double, double, double, double)>;

std::vector<Tensor> element_loss(const Call& call, const ElementLoss& f) {
  Dims shape;
  for (const Tensor& input : call.inputs()) {
    shape = broadcast(shape, input.shape());
  }
  const auto read = [&](std::string_view arg, double fallback) {
    const Tensor* tensor = call.optional_value(arg);
    if (tensor != nullptr) return broadcast_values<double>(*tensor, shape);
    const auto n =
        product(std::span<const std::int64_t>(shape.begin(), shape.end()));
    return std::vector<double>(index(n), fallback);
  };
  const std::vector<double> x = read("self", 0);
  const std::vector<double> y = read("target", 0);
  const std::vector<double> w = read("weight", 1);
  const std::vector<double> p = read("pos_weight", 1);
  std::vector<double> out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    out.push_back(f(x[i], y[i], w[i], p[i]));
  }
  const std::int64_t reduction = call.integer("reduction");
  if (reduction == kNone) return {call.made(out)};
  const double sum = std::accumulate(out.begin(), out.end(), 0.0);
  return {call.made(std::vector<double>{
      reduction == kMean ? sum / static_cast<double>(out.size()) : sum})};
}

// Evaluates a gradient; f(x, target) is the derivative of the loss at x.
std::vector<Tensor> element_loss_backward(
    const Call& call, const std::function<double(double, double)>& f) {
  Dims shape =
      broadcast(call.value("self").shape(), call.value("target").shape());
  shape = broadcast(shape, call.value("grad_output").shape());
  if (shape != call.out().shape()) throw NoKernel{"operands that broadcast"};
  const std::vector<double> g =
      broadcast_values<double>(call.value("grad_output"), shape);
  const std::vector<double> x =
      broadcast_values<double>(call.value("self"), shape);
  const std::vector<double> y =
      broadcast_values<double>(call.value("target"), shape);
  std::vector<double> w(x.size(), 1.0);
  if (const Tensor* weight = call.optional_value("weight")) {
    w = broadcast_values<double>(*weight, shape);
  }
  // A mean divides by the elements of `self`, even if `self` is broadcast.
  const double count = call.integer("reduction") == kMean
                           ? static_cast<double>(call.value("self").numel())
                           : 1;
  std::vector<double> out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    out.push_back(g[i] * w[i] * f(x[i], y[i]) / count);
  }
  return {call.made(out)};
}

double huber(double x, double y, double delta) {
  const double d = std::fabs(x - y);
  return d <= delta ? 0.5 * d * d : delta * (d - 0.5 * delta);
}

double smooth(double x, double y, double beta) {
  const double d = std::fabs(x - y);
  return d < beta ? 0.5 * d * d / beta : d - 0.5 * beta;
}

// Logarithms of probabilities are clamped at -100.
double cross_entropy_of(double x, double y) {
  return (y - 1) * std::max(std::log1p(-x), -100.0) -
         y * std::max(std::log(x), -100.0);
}

void add_element_losses(Kernels& k) {
  k.add({"mse_loss"}, [](const Call& call) {
    return element_loss(call, [](double x, double y, double, double) {
      return (x - y) * (x - y);
    });
  });
  k.add({"l1_loss"}, [](const Call& call) {
    return element_loss(call, [](double x, double y, double, double) {
      return std::fabs(x - y);
    });
  });
  k.add({"smooth_l1_loss"}, [](const Call& call) {
    const double beta = call.number("beta", 1);
    return element_loss(call, [beta](double x, double y, double, double) {
      return beta == 0 ? std::fabs(x - y) : smooth(x, y, beta);
    });
  });
  k.add({"huber_loss"}, [](const Call& call) {
    const double delta = call.number("delta", 1);
    return element_loss(call, [delta](double x, double y, double, double) {
      return huber(x, y, delta);
    });
  });
  k.add({"binary_cross_entropy"}, [](const Call& call) {
    return element_loss(call, [](double x, double y, double w, double) {
      require(!(x < 0 || x > 1), "a probability lies outside 0 and 1");
      return w * cross_entropy_of(x, y);
    });
  });
  k.add({"binary_cross_entropy_with_logits"}, [](const Call& call) {
    return element_loss(call, [](double x, double y, double w, double p) {
      const double log_weight = (p - 1) * y + 1;
      return w * ((1 - y) * x + log_weight * softplus(-x, 1, 700));
    });
  });
  k.add({"mse_loss_backward"}, [](const Call& call) {
    return element_loss_backward(
        call, [](double x, double y) { return 2 * (x - y); });
  });
  k.add({"smooth_l1_loss_backward"}, [](const Call& call) {
    const double beta = call.number("beta", 1);
    return element_loss_backward(call, [beta](double x, double y) {
      const double d = x - y;
      // With beta 0, an equal target gives -1, as in PyTorch.
      return d <= -beta ? -1 : d >= beta ? 1 : d / beta;
    });
  });
  k.add({"huber_loss_backward"}, [](const Call& call) {
    const double delta = call.number("delta", 1);
    return element_loss_backward(call, [delta](double x, double y) {
      const double d = x - y;
      return d <= -delta ? -delta : d >= delta ? delta : d;
    });
  });
  k.add({"binary_cross_entropy_backward"}, [](const Call& call) {
    return element_loss_backward(call, [](double x, double y) {
      return (x - y) / std::max((1 - x) * x, 1e-12);
    });
  });
}

}  // namespace

void add_losses(Kernels& k) {
  k.add({"nll_loss", "nll_loss_nd", "nll_loss2d", "nll_loss_forward",
         "nll_loss2d_forward"},
        nll_loss);
  k.add({"nll_loss_backward", "nll_loss2d_backward"}, nll_loss_backward);
  k.add({"cross_entropy_loss"}, cross_entropy);
  add_element_losses(k);
}

}  // namespace shardprop::reference
