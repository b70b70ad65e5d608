#ifndef SHARDPROP_KERNELS_C_API_H
#define SHARDPROP_KERNELS_C_API_H

#include <stddef.h>
#include <stdint.h>

/* The kernels for C and for foreign function interfaces. What a call does, what
 * it checks and what its arguments mean stands in the C++ header of its name;
 * numbers of types, ops and codes in dtype.h, reduce_into.h and status.h.
 *
 * Each call returns 0 or the number of a StatusCode, and writes a message of at
 * most error_size bytes, zero-terminated, to `error`, which may be null. */

#if defined(_WIN32)
#define SHARDPROP_KERNELS_API __declspec(dllexport)
#else
#define SHARDPROP_KERNELS_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shardprop_kernels_tensor {
  void* data; /* not written where the tensor is an input */
  int32_t dtype;
  int32_t ndim;
  const int64_t* sizes;
  const int64_t* strides; /* in elements; null: row-major contiguous */
} shardprop_kernels_tensor;

/* Where a call runs. Host: `pool` or null for the calling thread. CUDA: the
 * current device, in order on `stream` (a cudaStream_t, null for the default),
 * returning before the work is done; the library must have been built with
 * CUDA, else the call returns 2. */
typedef struct shardprop_kernels_pool shardprop_kernels_pool;
typedef struct shardprop_kernels_where {
  int32_t cuda; /* 0: host, 1: CUDA */
  shardprop_kernels_pool* pool;
  void* stream;
} shardprop_kernels_where;

/* Threads for host calls, the caller's among them; less than 1: one per
 * hardware thread. Null if they cannot be started. */
SHARDPROP_KERNELS_API shardprop_kernels_pool* shardprop_kernels_pool_create(
    int32_t threads);
SHARDPROP_KERNELS_API void shardprop_kernels_pool_destroy(
    shardprop_kernels_pool* pool);

/* shard_dims: null, or one for each tensor. */
SHARDPROP_KERNELS_API int32_t shardprop_kernels_chunk_cat(
    const shardprop_kernels_tensor* tensors, int64_t count, int64_t dim,
    int64_t num_chunks, const shardprop_kernels_tensor* out,
    const int64_t* shard_dims, double scale,
    const shardprop_kernels_where* where, char* error, size_t error_size);

/* `count` sizes and outs. shard_dims: null, or one for each out. */
SHARDPROP_KERNELS_API int32_t shardprop_kernels_split_with_sizes_copy(
    const shardprop_kernels_tensor* in, const int64_t* sizes, int64_t count,
    int64_t dim, const shardprop_kernels_tensor* outs,
    const int64_t* shard_dims, double scale,
    const shardprop_kernels_where* where, char* error, size_t error_size);

SHARDPROP_KERNELS_API int32_t shardprop_kernels_strided_copy(
    const shardprop_kernels_tensor* in, const shardprop_kernels_tensor* out,
    double scale, const shardprop_kernels_where* where, char* error,
    size_t error_size);

SHARDPROP_KERNELS_API int32_t shardprop_kernels_reduce_into(
    int32_t op, const shardprop_kernels_tensor* inputs, int64_t count,
    const shardprop_kernels_tensor* out, double scale,
    const shardprop_kernels_where* where, char* error, size_t error_size);

SHARDPROP_KERNELS_API int32_t shardprop_kernels_fill(
    const shardprop_kernels_tensor* out, const void* value,
    const shardprop_kernels_where* where, char* error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif /* SHARDPROP_KERNELS_C_API_H */
