// Evaluates activation functions and the gradients of pointwise functions.

#include "reference/kernels.h"
#include "reference/math/arithmetic.h"
#include "reference/math/pointwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace shardprop::reference {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Returns a kernel of f, applied to self and the named numbers.
template <class F>
Kernel of_self(std::vector<std::string_view> numbers, F f) {
  return [=](const Call& call) {
    std::vector<std::string_view> operands = {
        call.op().function->arguments().front().name};
    operands.insert(operands.end(), numbers.begin(), numbers.end());
    return pointwise(call, {operands, f});
  };
}

// Returns a kernel of f, applied to the named operands.
template <class F>
Kernel of(std::vector<std::string_view> operands, F f) {
  return [=](const Call& call) { return pointwise(call, {operands, f}); };
}

bool by_tanh(const Call& call) { return call.text("approximate") == "tanh"; }

double clamped(double x, double low, double high) {
  return std::isnan(x) ? x : std::min(std::max(x, low), high);
}

// The interval to which logit clamps its operand: from eps to 1 - eps, rounded
// to the dtype.
struct Cut {
  double low;
  double high;
};

std::optional<Cut> cut_of(const Call& call) {
  const auto eps = call.optional_number("eps");
  if (!eps) return std::nullopt;
  const DType dtype = call.out().dtype();
  const double low = rounded(*eps, dtype);
  return Cut{low, rounded(1 - low, dtype)};
}

std::vector<Tensor> logit(const Call& call) {
  const auto cut = cut_of(call);
  return pointwise(call, {{"self"}, [=](const double* x) {
                            const double p =
                                cut ? clamped(x[0], cut->low, cut->high) : x[0];
                            return std::log(p / (1 - p));
                          }});
}

std::vector<Tensor> logit_backward(const Call& call) {
  const auto cut = cut_of(call);
  const Cut inside = cut.value_or(Cut{0, 1});
  const double outside = cut ? 0 : kNaN;
  return pointwise(call, {{"grad_output", "self"}, [=](const double* x) {
                            if (x[1] < inside.low || x[1] > inside.high) {
                              return outside;
                            }
                            if (x[1] == 0 || x[1] == 1) return x[0] * kInfinity;
                            return x[0] / (x[1] * (1 - x[1]));
                          }});
}

double largest(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.FEp127;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

std::vector<Tensor> nan_to_num(const Call& call) {
  const double nan = call.number("nan", 0);
  const double most = largest(call.out().dtype());
  const double above = call.number("posinf", most);
  const double below = call.number("neginf", -most);
  return pointwise(call, {{"self"},
                          [=](const double* x) {
                            if (std::isnan(x[0])) return nan;
                            if (std::isinf(x[0]))
                              return x[0] > 0 ? above : below;
                            return x[0];
                          },
                          [](const std::int64_t* x) { return x[0]; }});
}

// Clamps the operand. Integers stay integers.
std::vector<Tensor> limited(const Call& call, std::string_view low,
                            std::string_view high) {
  return pointwise(call,
                   {{"self", low, high},
                    [](const double* x) { return clamped(x[0], x[1], x[2]); },
                    [](const std::int64_t* x) {
                      return std::min(std::max(x[0], x[1]), x[2]);
                    }});
}

std::vector<Tensor> elu_backward(const Call& call) {
  const bool of_result = call.boolean("is_result");
  return pointwise(
      call, {{"grad_output", "alpha", "scale", "input_scale", "self_or_result"},
             [=](const double* x) {
               const double negative = x[1] * x[2];
               const double positive = x[2];
               const double inner = x[3];
               if (x[4] > 0) return x[0] * positive;
               return of_result
                          ? x[0] * inner * (x[4] + negative)
                          : x[0] * inner * negative * std::exp(x[4] * inner);
             }});
}

// `buffer` has z = exp(-|x|) from the forward call; on a GPU it is empty.
std::vector<Tensor> log_sigmoid_backward(const Call& call) {
  const auto slope = [](double x, double z) {
    return x < 0 ? 1 - z / (1 + z) : z / (1 + z);
  };
  if (call.value("buffer").numel() > 0) {
    return pointwise(
        call, {{"grad_output", "self", "buffer"},
               [=](const double* x) { return x[0] * slope(x[1], x[2]); }});
  }
  return pointwise(call, {{"grad_output", "self"}, [=](const double* x) {
                            return x[0] *
                                   slope(x[1], std::exp(-std::fabs(x[1])));
                          }});
}

void add_activations(Kernels& k) {
  k.add({"relu"}, [](const Call& call) {
    return pointwise(call, {{"self"},
                            [](const double* x) { return maximum(x[0], 0); },
                            [](const std::int64_t* x) {
                              return std::max<std::int64_t>(x[0], 0);
                            }});
  });
  k.add({"relu6"}, [](const Call& call) {
    return pointwise(call, {{"self"},
                            [](const double* x) { return clamped(x[0], 0, 6); },
                            [](const std::int64_t* x) {
                              return std::clamp<std::int64_t>(x[0], 0, 6);
                            }});
  });
  k.add({"hardtanh"},
        [](const Call& call) { return limited(call, "min_val", "max_val"); });
  k.add({"hardsigmoid"}, of_self({}, [](const double* x) {
          return clamped(x[0] + 3, 0, 6) / 6;
        }));
  k.add({"hardswish"}, of_self({}, [](const double* x) {
          return x[0] * clamped(x[0] + 3, 0, 6) / 6;
        }));
  k.add({"silu"},
        of_self({}, [](const double* x) { return x[0] * sigmoid(x[0]); }));
  k.add({"mish"}, of_self({}, [](const double* x) {
          return x[0] * std::tanh(std::log1p(std::exp(x[0])));
        }));
  k.add({"gelu"}, [](const Call& call) {
    const bool tanh = by_tanh(call);
    return pointwise(
        call, {{"self"}, [=](const double* x) { return gelu(x[0], tanh); }});
  });
  k.add(
      {"elu"}, of_self({"alpha", "scale", "input_scale"}, [](const double* x) {
        return x[0] <= 0 ? std::expm1(x[0] * x[3]) * x[1] * x[2] : x[0] * x[2];
      }));
  k.add({"selu"}, of_self({}, [](const double* x) {
          constexpr double kAlpha = 1.6732632423543772848170429916717;
          constexpr double kScale = 1.0507009873554804934193349852946;
          return kScale * (x[0] <= 0 ? kAlpha * std::expm1(x[0]) : x[0]);
        }));
  k.add({"celu"}, of_self({"alpha"}, [](const double* x) {
          return x[0] <= 0 ? x[1] * std::expm1(x[0] / x[1]) : x[0];
        }));
  k.add({"leaky_relu"}, of_self({"negative_slope"}, [](const double* x) {
          return x[0] > 0 ? x[0] : x[0] * x[1];
        }));
  k.add({"threshold"}, [](const Call& call) {
    return pointwise(
        call,
        {{"self", "threshold", "value"},
         [](const double* x) { return x[0] <= x[1] ? x[2] : x[0]; },
         [](const std::int64_t* x) { return x[0] <= x[1] ? x[2] : x[0]; }});
  });
  k.add({"softplus"}, of_self({"beta", "threshold"}, [](const double* x) {
          return softplus(x[0], x[1], x[2]);
        }));
  k.add({"softshrink"}, of_self({"lambd"}, [](const double* x) {
          if (std::isnan(x[0])) return x[0];
          return x[0] > x[1] ? x[0] - x[1] : x[0] < -x[1] ? x[0] + x[1] : 0.0;
        }));
  k.add({"hardshrink"}, of_self({"lambd"}, [](const double* x) {
          return x[0] >= -x[1] && x[0] <= x[1] ? 0.0 : x[0];
        }));
  k.add({"log_sigmoid"}, of_self({}, [](const double* x) {
          return minimum(x[0], 0) - std::log1p(std::exp(-std::fabs(x[0])));
        }));
  k.add({"logit"}, logit);
  k.add({"nan_to_num"}, nan_to_num);
}

}  // namespace

void add_gradients(Kernels& k) {
  add_activations(k);
  k.add({"tanh_backward"}, of({"grad_output", "output"}, [](const double* x) {
          return x[0] * (1 - x[1] * x[1]);
        }));
  k.add({"sigmoid_backward"},
        of({"grad_output", "output"},
           [](const double* x) { return x[0] * (1 - x[1]) * x[1]; }));
  k.add({"gelu_backward"}, [](const Call& call) {
    const bool tanh = by_tanh(call);
    return pointwise(call, {{"grad_output", "self"}, [=](const double* x) {
                              return x[0] * gelu_slope(x[1], tanh);
                            }});
  });
  k.add({"silu_backward"}, of({"grad_output", "self"}, [](const double* x) {
          const double s = sigmoid(x[1]);
          return x[0] * s * (1 + x[1] * (1 - s));
        }));
  k.add({"mish_backward"}, of({"grad_output", "self"}, [](const double* x) {
          const double t = std::tanh(std::log1p(std::exp(x[1])));
          return x[0] * (t + x[1] * sigmoid(x[1]) * (1 - t * t));
        }));
  k.add({"threshold_backward"}, [](const Call& call) {
    return pointwise(
        call, {{"grad_output", "self", "threshold"},
               [](const double* x) { return x[1] <= x[2] ? 0 : x[0]; },
               [](const std::int64_t* x) { return x[1] <= x[2] ? 0 : x[0]; }});
  });
  k.add({"elu_backward"}, elu_backward);
  k.add({"leaky_relu_backward"},
        of({"grad_output", "self", "negative_slope"},
           [](const double* x) { return x[1] > 0 ? x[0] : x[0] * x[2]; }));
  k.add({"hardtanh_backward"},
        of({"grad_output", "self", "min_val", "max_val"}, [](const double* x) {
          return x[1] <= x[2] || x[1] >= x[3] ? 0.0 : x[0];
        }));
  k.add({"hardsigmoid_backward"},
        of({"grad_output", "self"}, [](const double* x) {
          return x[1] > -3 && x[1] < 3 ? x[0] / 6 : 0.0;
        }));
  k.add({"hardswish_backward"},
        of({"grad_output", "self"}, [](const double* x) {
          if (x[1] <= -3) return 0.0;
          return x[1] < 3 ? x[0] * (x[1] / 3 + 0.5) : x[0];
        }));
  k.add({"softplus_backward"},
        of({"grad_output", "self", "beta", "threshold"}, [](const double* x) {
          const double z = std::exp(x[1] * x[2]);
          return x[1] * x[2] > x[3] ? x[0] : x[0] * z / (z + 1);
        }));
  k.add({"softshrink_backward"},
        of({"grad_output", "self", "lambd"}, [](const double* x) {
          return x[1] >= -x[2] && x[1] <= x[2] ? 0.0 : x[0];
        }));
  k.add({"hardshrink_backward"},
        of({"grad_out", "self", "lambd"}, [](const double* x) {
          return x[1] >= -x[2] && x[1] <= x[2] ? 0.0 : x[0];
        }));
  k.add({"log_sigmoid_backward"}, log_sigmoid_backward);
  k.add({"logit_backward"}, logit_backward);
  k.add({"native_dropout_backward"},
        of({"grad_output", "mask", "scale"},
           [](const double* x) { return x[0] * x[1] * x[2]; }));
}

}  // namespace shardprop::reference
