// Evaluates pooling and resampling: each element of the result reads a window
// of the image, and its gradient is added to this window.

#include "ops/space/windows.h"
#include "reference/kernels.h"
#include "reference/math/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace shardprop::reference {
namespace {

// The elements of the image that a window reads, and their weights.
struct Window {
  std::vector<std::int64_t> places;
  std::vector<double> weights;
};

// The elements along one dim that an element of the result reads.
struct Span {
  std::vector<std::int64_t> places;
  std::vector<double> weights;
  std::int64_t counted = 0;  // with padding
};

struct Images {
  std::int64_t count = 1;  // batch and channels
  Dims from;
  Dims to;
};

Images images_of(const Dims& self, const Dims& result, int spatial) {
  Images out;
  for (std::size_t d = 0; d < self.size(); ++d) {
    if (d + index(spatial) < self.size()) {
      out.count *= self[d];
    } else {
      out.from.push_back(self[d]);
      out.to.push_back(result[d]);
    }
  }
  return out;
}

std::int64_t window_points(const Dims& sizes) {
  return product(std::span<const std::int64_t>(sizes.begin(), sizes.end()));
}

using Spans = std::vector<std::vector<Span>>;  // by dim and element

// Returns the windows of all elements of one image of the result. They are the
// products of the windows along each dim, and their weights multiply.
std::vector<Window> windows_of(const Images& images, const Spans& spans) {
  const Dims to_steps = contiguous_strides(images.to);
  const Dims from_steps = contiguous_strides(images.from);
  std::vector<Window> out;
  for_each_offset(images.to, to_steps, [&](std::int64_t at) {
    Window window{{0}, {1.0}};
    for (std::size_t d = 0; d < images.to.size(); ++d) {
      const Span& span = spans[d][index(at / to_steps[d] % images.to[d])];
      Window wider;
      for (std::size_t i = 0; i < window.places.size(); ++i) {
        for (std::size_t j = 0; j < span.places.size(); ++j) {
          wider.places.push_back(window.places[i] +
                                 span.places[j] * from_steps[d]);
          wider.weights.push_back(window.weights[i] * span.weights[j]);
        }
      }
      window = std::move(wider);
    }
    out.push_back(std::move(window));
  });
  return out;
}

// --- Windows that slide ---

Spans sliding(const Call& call, const Images& images) {
  const auto kernel = call.integers("kernel_size");
  auto stride = call.integers("stride");
  if (stride.empty()) stride = kernel;
  const auto padding = call.integers("padding");
  const auto dilation = call.has("dilation") ? call.integers("dilation")
                                             : std::vector<std::int64_t>{};
  Spans spans;
  for (std::size_t d = 0; d < images.to.size(); ++d) {
    spans.emplace_back();
    const std::int64_t pad = per_dim(padding, d, 0);
    const std::int64_t size = images.from[d];
    for (std::int64_t o = 0; o < images.to[d]; ++o) {
      Span span;
      const std::int64_t begin = o * per_dim(stride, d, 1) - pad;
      const std::int64_t reach = per_dim(kernel, d, 1);
      for (std::int64_t i = 0; i < reach; ++i) {
        const std::int64_t at = begin + i * per_dim(dilation, d, 1);
        if (at < 0 || at >= size) continue;
        span.places.push_back(at);
        span.weights.push_back(1);
      }
      span.counted = std::min(begin + reach, size + pad) - begin;
      spans.back().push_back(std::move(span));
    }
  }
  return spans;
}

// Returns windows for a mean, whose weights are one divided by the number of
// counted elements.
std::vector<Window> mean_windows(const Call& call, const Images& images) {
  const Spans spans = sliding(call, images);
  std::vector<Window> windows = windows_of(images, spans);
  const bool with_padding = call.boolean_or("count_include_pad", true);
  const auto fixed = call.has("divisor_override")
                         ? call.op().int_arg("divisor_override")
                         : std::nullopt;
  const Dims steps = contiguous_strides(images.to);
  for (std::size_t w = 0; w < windows.size(); ++w) {
    auto count = static_cast<double>(windows[w].places.size());
    if (with_padding) {
      count = 1;
      for (std::size_t d = 0; d < images.to.size(); ++d) {
        const auto at =
            index(static_cast<std::int64_t>(w) / steps[d] % images.to[d]);
        count *= static_cast<double>(spans[d][at].counted);
      }
    }
    if (fixed) count = static_cast<double>(*fixed);
    for (double& weight : windows[w].weights) weight = 1 / count;
  }
  return windows;
}

// --- Windows that cover the image evenly ---

std::vector<Window> adaptive_windows(const Call&, const Images& images) {
  Spans spans;
  for (std::size_t d = 0; d < images.to.size(); ++d) {
    spans.emplace_back();
    const std::int64_t from = images.from[d];
    const std::int64_t to = images.to[d];
    for (std::int64_t o = 0; o < to; ++o) {
      const std::int64_t begin = o * from / to;
      const std::int64_t end = ((o + 1) * from + to - 1) / to;
      Span span;
      for (std::int64_t i = begin; i < end; ++i) {
        span.places.push_back(i);
        span.weights.push_back(1 / static_cast<double>(end - begin));
      }
      spans.back().push_back(std::move(span));
    }
  }
  return windows_of(images, spans);
}

// --- Resampling ---

double scale_of(const Call& call, const Images& images, std::size_t d) {
  const char* name = d + 1 == images.to.size() ? "scales_w" : "scales_h";
  const auto given = call.optional_number(name);
  if (given && *given > 0) return 1 / *given;
  return static_cast<double>(images.from[d]) /
         static_cast<double>(images.to[d]);
}

Span nearest_span(double scale, std::int64_t o, std::int64_t size) {
  const auto at = static_cast<std::int64_t>(
      std::floor(static_cast<float>(o) * static_cast<float>(scale)));
  return {{std::min(at, size - 1)}, {1.0}};
}

Span linear_span(double at, std::int64_t size) {
  at = std::max(at, 0.0);
  const auto low = std::min(static_cast<std::int64_t>(at), size - 1);
  const std::int64_t high = std::min(low + 1, size - 1);
  const double weight = std::clamp(at - static_cast<double>(low), 0.0, 1.0);
  return {{low, high}, {1 - weight, weight}};
}

Span cubic_span(double at, std::int64_t size) {
  constexpr double kA = -0.75;
  const double floor = std::floor(at);
  const double t = at - floor;
  const auto near = [&](double x) {
    return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  };
  const auto far = [&](double x) {
    return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA;
  };
  Span span{{}, {far(t + 1), near(t), near(1 - t), far(2 - t)}};
  for (std::int64_t i = -1; i <= 2; ++i) {
    span.places.push_back(std::clamp<std::int64_t>(
        static_cast<std::int64_t>(floor) + i, 0, size - 1));
  }
  return span;
}

std::vector<Window> resampled_windows(const Call& call, const Images& images) {
  const bool corners = call.boolean_or("align_corners", false);
  const std::string_view name = call.base_name();
  Spans spans;
  for (std::size_t d = 0; d < images.to.size(); ++d) {
    spans.emplace_back();
    const std::int64_t size = images.from[d];
    const double scale = !corners ? scale_of(call, images, d)
                         : images.to[d] > 1
                             ? static_cast<double>(size - 1) /
                                   static_cast<double>(images.to[d] - 1)
                             : 0;
    for (std::int64_t o = 0; o < images.to[d]; ++o) {
      const double x = corners ? scale * static_cast<double>(o)
                               : scale * (static_cast<double>(o) + 0.5) - 0.5;
      spans.back().push_back(name.find("nearest") != std::string_view::npos
                                 ? nearest_span(scale, o, size)
                             : name.find("bilinear") != std::string_view::npos
                                 ? linear_span(x, size)
                                 : cubic_span(x, size));
    }
  }
  return windows_of(images, spans);
}

// --- What is done with windows ---

using WindowsOf = std::vector<Window> (*)(const Call&, const Images&);

Kernel weighted(WindowsOf windows_by) {
  return [windows_by](const Call& call) -> std::vector<Tensor> {
    const Tensor& self = call.first_value();
    const int spatial = spatial_dims(call.base_name());
    const Images images = images_of(self.shape(), call.out().shape(), spatial);
    const std::vector<Window> windows = windows_by(call, images);
    const std::vector<double> x = values<double>(self);
    std::vector<double> out;
    const std::int64_t points = window_points(images.from);
    for (std::int64_t n = 0; n < images.count; ++n) {
      for (const Window& window : windows) {
        double sum = 0;
        for (std::size_t i = 0; i < window.places.size(); ++i) {
          sum += window.weights[i] * x[index(n * points + window.places[i])];
        }
        out.push_back(sum);
      }
    }
    return {call.made(out)};
  };
}

Kernel weighted_backward(WindowsOf windows_by) {
  return [windows_by](const Call& call) -> std::vector<Tensor> {
    const Tensor& self = call.value("self");
    const Tensor& grad = call.value("grad_output");
    const int spatial = spatial_dims(call.base_name());
    const Images images = images_of(self.shape(), grad.shape(), spatial);
    const std::vector<Window> windows = windows_by(call, images);
    const std::vector<double> g = values<double>(grad);
    std::vector<double> out(index(self.numel()));
    const std::int64_t points = window_points(images.from);
    for (std::int64_t n = 0; n < images.count; ++n) {
      for (std::size_t w = 0; w < windows.size(); ++w) {
        const double slope = g[index(n) * windows.size() + w];
        for (std::size_t i = 0; i < windows[w].places.size(); ++i) {
          out[index(n * points + windows[w].places[i])] +=
              slope * windows[w].weights[i];
        }
      }
    }
    return {call.made(out)};
  };
}

std::vector<Tensor> max_pool(const Call& call) {
  const Tensor& self = call.first_value();
  const int spatial = spatial_dims(call.base_name());
  const Images images = images_of(self.shape(), call.out().shape(), spatial);
  const std::vector<Window> windows = windows_of(images, sliding(call, images));
  const std::vector<double> x = values<double>(self);
  std::vector<double> found;
  std::vector<std::int64_t> places;
  const std::int64_t points = window_points(images.from);
  for (std::int64_t n = 0; n < images.count; ++n) {
    for (const Window& window : windows) {
      double best = -std::numeric_limits<double>::infinity();
      std::int64_t where = window.places.empty() ? 0 : window.places.front();
      for (const std::int64_t place : window.places) {
        const double value = x[index(n * points + place)];
        if (value > best || std::isnan(value)) {
          best = value;
          where = place;
        }
      }
      found.push_back(best);
      places.push_back(where);
    }
  }
  std::vector<Tensor> out = {call.made(found)};
  if (call.outputs() == 2) out.push_back(call.made(places, 1));
  return out;
}

std::vector<Tensor> max_pool_backward(const Call& call) {
  const Tensor& self = call.value("self");
  const Tensor& grad = call.value("grad_output");
  const int spatial = spatial_dims(call.base_name());
  const Images images = images_of(self.shape(), grad.shape(), spatial);
  const std::vector<double> g = values<double>(grad);
  const auto places = values<std::int64_t>(call.value("indices"));
  std::vector<double> out(index(self.numel()));
  const std::int64_t points = window_points(images.from);
  const auto each = index(window_points(images.to));
  for (std::size_t i = 0; i < g.size(); ++i) {
    require(places[i] >= 0 && places[i] < points, "an index is out of range");
    out[i / each * index(points) + index(places[i])] += g[i];
  }
  return {call.made(out)};
}

}  // namespace

void add_pools(Kernels& k) {
  k.add({"max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices",
         "max_pool3d_with_indices"},
        max_pool);
  k.add({"max_pool2d_with_indices_backward"}, max_pool_backward);
  k.add({"max_pool3d_with_indices_backward"}, max_pool_backward);
  k.add({"avg_pool1d", "avg_pool2d", "avg_pool3d"}, weighted(mean_windows));
  k.add({"avg_pool2d_backward"}, weighted_backward(mean_windows));
  k.add({"avg_pool3d_backward"}, weighted_backward(mean_windows));
  k.add({"adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d",
         "adaptive_avg_pool3d", "_adaptive_avg_pool3d"},
        weighted(adaptive_windows));
  k.add({"_adaptive_avg_pool2d_backward"}, weighted_backward(adaptive_windows));
  k.add({"_adaptive_avg_pool3d_backward"}, weighted_backward(adaptive_windows));
  k.add({"upsample_nearest2d", "upsample_nearest2d.vec", "upsample_bilinear2d",
         "upsample_bilinear2d.vec", "upsample_bicubic2d",
         "upsample_bicubic2d.vec"},
        weighted(resampled_windows));
}

}  // namespace shardprop::reference
