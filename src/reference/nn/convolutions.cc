// Evaluates convolutions and their gradients from one list of taps. A tap
// multiplies an element of the image and an element of the kernel for an
// element of the result.

#include "ops/space/windows.h"
#include "reference/kernels.h"

#include <utility>

namespace shardprop::reference {
namespace {

// The row-major positions of one product, in the spatial dims of each tensor.
struct Tap {
  std::int64_t image;
  std::int64_t kernel;
  std::int64_t result;
};

struct Convolution {
  std::int64_t batch = 1;
  std::int64_t groups = 1;
  std::int64_t in = 1;   // channels of a group
  std::int64_t out = 1;  // channels of a group
  std::int64_t image_points = 1;
  std::int64_t kernel_points = 1;
  std::int64_t result_points = 1;
  bool transposed = false;
  std::vector<Tap> taps;
};

std::vector<std::int64_t> padding_of(
    const Call& call, const Dims& kernel,
    const std::vector<std::int64_t>& dilation) {
  if (!call.op().string_arg("padding")) return call.integers("padding");
  std::vector<std::int64_t> padding;
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    // The smaller half of the padding comes first.
    padding.push_back(call.text("padding") == "same"
                          ? per_dim(dilation, d, 1) * (kernel[d] - 1) / 2
                          : 0);
  }
  return padding;
}

// Returns the last `count` dims of a shape.
Dims space_of(const Dims& shape, std::size_t count) {
  return Dims(shape.end() - static_cast<std::ptrdiff_t>(count), shape.end());
}

std::int64_t points_of(const Dims& sizes) {
  return product(std::span<const std::int64_t>(sizes.begin(), sizes.end()));
}

// `small` has one element per window: the result, or the image of a transposed
// convolution. `large` is the tensor that the windows cover.
std::vector<Tap> taps_of(const Call& call, const Dims& large,
                         const Dims& kernel, const Dims& small,
                         bool transposed) {
  const auto stride = call.integers("stride");
  const auto dilation = call.integers("dilation");
  const auto padding = padding_of(call, kernel, dilation);
  const Dims large_steps = contiguous_strides(large);
  const Dims small_steps = contiguous_strides(small);
  const Dims kernel_steps = contiguous_strides(kernel);
  std::vector<Tap> taps;
  for_each_offset(small, small_steps, [&](std::int64_t s) {
    for_each_offset(kernel, kernel_steps, [&](std::int64_t k) {
      std::int64_t at = 0;
      for (std::size_t d = 0; d < kernel.size(); ++d) {
        const std::int64_t x =
            s / small_steps[d] % small[d] * per_dim(stride, d, 1) -
            per_dim(padding, d, 0) +
            k / kernel_steps[d] % kernel[d] * per_dim(dilation, d, 1);
        if (x < 0 || x >= large[d]) return;
        at += x * large_steps[d];
      }
      taps.push_back(transposed ? Tap{s, k, at} : Tap{at, k, s});
    });
  });
  return taps;
}

Convolution convolution_of(const Call& call, const Tensor& input,
                           const Tensor& weight, const Dims& result) {
  const auto spatial = weight.shape().size() - 2;
  Convolution c;
  c.transposed =
      call.boolean_or("transposed", call.base_name().find("transpose") !=
                                        std::string_view::npos);
  c.groups = call.integer("groups");
  const bool batched = input.shape().size() == spatial + 2;
  c.batch = batched ? input.size(0) : 1;
  c.in = input.size(batched ? 1 : 0) / c.groups;
  c.out = c.transposed ? weight.size(1) : weight.size(0) / c.groups;
  const Dims image = space_of(input.shape(), spatial);
  const Dims kernel = space_of(weight.shape(), spatial);
  const Dims made = space_of(result, spatial);
  c.image_points = points_of(image);
  c.kernel_points = points_of(kernel);
  c.result_points = points_of(made);
  c.taps = c.transposed ? taps_of(call, made, kernel, image, true)
                        : taps_of(call, image, kernel, made, false);
  return c;
}

// Calls f(image, kernel, result) with the start of each channel.
template <class F>
void for_each_channel(const Convolution& c, F&& f) {
  for (std::int64_t n = 0; n < c.batch; ++n) {
    for (std::int64_t g = 0; g < c.groups; ++g) {
      for (std::int64_t o = 0; o < c.out; ++o) {
        for (std::int64_t i = 0; i < c.in; ++i) {
          const std::int64_t whole =
              c.transposed ? g * c.in + i : g * c.out + o;
          const std::int64_t part = c.transposed ? o : i;
          const std::int64_t parts = c.transposed ? c.out : c.in;
          f(((n * c.groups + g) * c.in + i) * c.image_points,
            (whole * parts + part) * c.kernel_points,
            ((n * c.groups + g) * c.out + o) * c.result_points);
        }
      }
    }
  }
}

template <class T>
std::vector<Tensor> convolved(const Call& call) {
  const Tensor& input = call.value("input");
  const Tensor& weight = call.value("weight");
  const Convolution c = convolution_of(call, input, weight, call.out().shape());
  const std::vector<T> x = values<T>(input);
  const std::vector<T> w = values<T>(weight);
  std::vector<T> out(index(call.out().numel()));
  if (const Tensor* bias = call.optional_value("bias")) {
    const std::vector<T> b = values<T>(*bias);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = b[i / index(c.result_points) % b.size()];
    }
  }
  for_each_channel(
      c, [&](std::int64_t image, std::int64_t kernel, std::int64_t result) {
        for (const Tap& tap : c.taps) {
          out[index(result + tap.result)] +=
              x[index(image + tap.image)] * w[index(kernel + tap.kernel)];
        }
      });
  return {call.made(out)};
}

std::vector<Tensor> convolution(const Call& call) {
  switch (domain_of(call.out().dtype())) {
    case Domain::kReal:
      return convolved<double>(call);
    case Domain::kInteger:
      return convolved<std::int64_t>(call);
    case Domain::kComplex:
      break;
  }
  return convolved<Complex>(call);
}

std::vector<Tensor> convolution_backward(const Call& call) {
  if (domain_of(call.value("input").dtype()) != Domain::kReal) {
    throw NoKernel{"gradients of anything but floats"};
  }
  const Tensor& grad = call.value("grad_output");
  const Tensor& input = call.value("input");
  const Tensor& weight = call.value("weight");
  const Convolution c = convolution_of(call, input, weight, grad.shape());
  const std::vector<double> g = values<double>(grad);
  const std::vector<double> x = values<double>(input);
  const std::vector<double> w = values<double>(weight);
  std::vector<double> of_input(x.size());
  std::vector<double> of_weight(w.size());
  for_each_channel(
      c, [&](std::int64_t image, std::int64_t kernel, std::int64_t result) {
        for (const Tap& tap : c.taps) {
          const double slope = g[index(result + tap.result)];
          of_input[index(image + tap.image)] +=
              slope * w[index(kernel + tap.kernel)];
          of_weight[index(kernel + tap.kernel)] +=
              slope * x[index(image + tap.image)];
        }
      });
  std::vector<double> of_bias(index(c.groups * c.out));
  for (std::size_t i = 0; i < g.size(); ++i) {
    of_bias[i / index(c.result_points) % of_bias.size()] += g[i];
  }
  const std::vector<bool> mask = call.mask("output_mask", 3);
  std::vector<Tensor> out;
  if (mask[0]) out.push_back(call.made(of_input, out.size()));
  if (mask[1]) out.push_back(call.made(of_weight, out.size()));
  if (mask[2]) out.push_back(call.made(of_bias, out.size()));
  return out;
}

}  // namespace

void add_convolutions(Kernels& k) {
  k.add(
      {"convolution", "_convolution", "_convolution.deprecated", "conv1d",
       "conv1d.padding", "conv2d", "conv2d.padding", "conv3d", "conv3d.padding",
       "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input"},
      convolution);
  k.add({"convolution_backward"}, convolution_backward);
}

}  // namespace shardprop::reference
