#include <shardprop/kernels/c_api.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <system_error>
#include <vector>

#include <shardprop/kernels/cpu.h>
#if defined(SHARDPROP_KERNELS_CUDA)
#include <shardprop/kernels/cuda.h>
#endif

struct shardprop_kernels_pool {
  shardprop::kernels::ThreadPool threads;
};

namespace {

// This file wraps the entire namespace for C.
using namespace shardprop::kernels;  // NOLINT(google-build-using-namespace)

template <class View>
View view_of(const shardprop_kernels_tensor& tensor) {
  // The kernels refuse too many dims, and thus also a negative number.
  const std::int32_t ndim = tensor.ndim < 0 ? kMaxDims + 1 : tensor.ndim;
  const auto rank = static_cast<std::size_t>(ndim);
  View view;
  view.data = tensor.data;
  view.dtype = static_cast<DType>(tensor.dtype);
  view.sizes = {tensor.sizes, rank};
  if (tensor.strides != nullptr) view.strides = {tensor.strides, rank};
  return view;
}

template <class View>
std::vector<View> views_of(const shardprop_kernels_tensor* tensors,
                           std::int64_t count) {
  std::vector<View> views(
      static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
  std::transform(tensors, tensors + views.size(), views.begin(), view_of<View>);
  return views;
}

std::span<const std::int64_t> list_of(const int64_t* values,
                                      std::int64_t count) {
  if (values == nullptr || count <= 0) return {};
  return {values, static_cast<std::size_t>(count)};
}

// Runs a call on the requested device. cpu:: and cuda:: have the same
// functions, and argument-dependent lookup selects by the type of the options.
template <class Call>
std::int32_t run(const shardprop_kernels_where* where, char* error,
                 std::size_t error_size, const Call& call) {
  const auto report = [&](const Status& status) {
    if (error != nullptr && error_size > 0) {
      const std::string& text = status.message();
      const std::size_t length = std::min(text.size(), error_size - 1);
      std::memcpy(error, text.data(), length);
      error[length] = '\0';
    }
    return static_cast<std::int32_t>(status.code());
  };
  try {
    if (where == nullptr || where->cuda == 0) {
      cpu::CpuOptions options;
      if (where != nullptr && where->pool != nullptr) {
        options.pool = &where->pool->threads;
      }
      return report(call(options));
    }
#if defined(SHARDPROP_KERNELS_CUDA)
    return report(call(cuda::CudaOptions{where->stream}));
#else
    return report({StatusCode::kUnsupported, "built without CUDA"});
#endif
  } catch (const std::bad_alloc&) {
    return report({StatusCode::kOutOfMemory, "out of host memory"});
  }
}

}  // namespace

extern "C" {

shardprop_kernels_pool* shardprop_kernels_pool_create(int32_t threads) {
  try {
    return new shardprop_kernels_pool{ThreadPool(threads)};
  } catch (const std::system_error&) {
    return nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void shardprop_kernels_pool_destroy(shardprop_kernels_pool* pool) {
  delete pool;
}

int32_t shardprop_kernels_chunk_cat(const shardprop_kernels_tensor* tensors,
                                    int64_t count, int64_t dim,
                                    int64_t num_chunks,
                                    const shardprop_kernels_tensor* out,
                                    const int64_t* shard_dims, double scale,
                                    const shardprop_kernels_where* where,
                                    char* error, size_t error_size) {
  return run(where, error, error_size, [&](const auto& options) {
    const auto views = views_of<TensorView>(tensors, count);
    const ChunkCatArgs args{.tensors = views,
                            .dim = dim,
                            .num_chunks = num_chunks,
                            .out = view_of<MutableTensorView>(*out),
                            .shard_dims = list_of(shard_dims, count),
                            .scale = scale};
    return chunk_cat(args, options);
  });
}

int32_t shardprop_kernels_split_with_sizes_copy(
    const shardprop_kernels_tensor* in, const int64_t* sizes, int64_t count,
    int64_t dim, const shardprop_kernels_tensor* outs,
    const int64_t* shard_dims, double scale,
    const shardprop_kernels_where* where, char* error, size_t error_size) {
  return run(where, error, error_size, [&](const auto& options) {
    const auto views = views_of<MutableTensorView>(outs, count);
    const SplitWithSizesCopyArgs args{.in = view_of<TensorView>(*in),
                                      .sizes = list_of(sizes, count),
                                      .dim = dim,
                                      .outs = views,
                                      .shard_dims = list_of(shard_dims, count),
                                      .scale = scale};
    return split_with_sizes_copy(args, options);
  });
}

int32_t shardprop_kernels_strided_copy(const shardprop_kernels_tensor* in,
                                       const shardprop_kernels_tensor* out,
                                       double scale,
                                       const shardprop_kernels_where* where,
                                       char* error, size_t error_size) {
  return run(where, error, error_size, [&](const auto& options) {
    const StridedCopyArgs args{.in = view_of<TensorView>(*in),
                               .out = view_of<MutableTensorView>(*out),
                               .scale = scale};
    return strided_copy(args, options);
  });
}

int32_t shardprop_kernels_reduce_into(
    int32_t op, const shardprop_kernels_tensor* inputs, int64_t count,
    const shardprop_kernels_tensor* out, double scale,
    const shardprop_kernels_where* where, char* error, size_t error_size) {
  return run(where, error, error_size, [&](const auto& options) {
    const auto views = views_of<TensorView>(inputs, count);
    const ReduceIntoArgs args{.op = static_cast<ReduceOp>(op),
                              .inputs = views,
                              .out = view_of<MutableTensorView>(*out),
                              .scale = scale};
    return reduce_into(args, options);
  });
}

int32_t shardprop_kernels_fill(const shardprop_kernels_tensor* out,
                               const void* value,
                               const shardprop_kernels_where* where,
                               char* error, size_t error_size) {
  return run(where, error, error_size, [&](const auto& options) {
    const FillArgs args{.out = view_of<MutableTensorView>(*out),
                        .value = value};
    return fill(args, options);
  });
}

}  // extern "C"
