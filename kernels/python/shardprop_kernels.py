"""Calls the C API of the kernels (shardprop/kernels/c_api.h) on torch tensors.

    lib = Kernels("build/libshardprop_kernels_c.so", threads=2)
    lib.chunk_cat(grads, dim=0, num_chunks=8, out=out, scale=1 / 8)

Tensors on a CUDA device run on torch's current stream. With `emulate`, tensors on the
host also use the CUDA ops, for the library that emulates a device.
"""

import ctypes

import torch

DTYPES = {
    torch.float32: 0,
    torch.float16: 1,
    torch.bfloat16: 2,
    torch.float8_e4m3fn: 3,
    torch.float8_e5m2: 4,
    torch.float64: 5,
    torch.int64: 6,
    torch.int32: 7,
    torch.int16: 8,
    torch.int8: 9,
    torch.uint8: 10,
    torch.bool: 11,
    torch.complex64: 12,
    torch.complex128: 13,
}

REDUCE_OPS = {
    "sum": 0,
    "product": 1,
    "min": 2,
    "max": 3,
    "and": 4,
    "or": 5,
    "xor": 6,
}

INVALID_ARGUMENT, UNSUPPORTED, OVERLAP, CUDA = 1, 2, 3, 4


class KernelError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]


class _Where(ctypes.Structure):
    _fields_ = [
        ("cuda", ctypes.c_int32),
        ("pool", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


def _ints(values):
    return (ctypes.c_int64 * len(values))(*values)


def _tensors(tensors):
    array = (_Tensor * max(len(tensors), 1))()
    for view, tensor in zip(array, tensors):
        view.data = tensor.data_ptr()
        view.dtype = DTYPES[tensor.dtype]
        view.ndim = tensor.dim()
        view.sizes = _ints(tensor.shape)
        view.strides = _ints(tensor.stride())
    return array


class Kernels:
    def __init__(self, path, threads=1, emulate=False):
        self._emulate = emulate
        self._lib = ctypes.CDLL(path)
        self._lib.shardprop_kernels_pool_create.restype = ctypes.c_void_p
        self._pool = ctypes.c_void_p(self._lib.shardprop_kernels_pool_create(threads))
        if not self._pool:
            raise RuntimeError("no threads")

    def close(self):
        self._lib.shardprop_kernels_pool_destroy(self._pool)
        self._pool = None

    def _where(self, tensor):
        if tensor.is_cuda:
            stream = torch.cuda.current_stream(tensor.device).cuda_stream
            return _Where(1, None, stream)
        return _Where(int(self._emulate), self._pool, None)

    def bind(self, function, tensor, *arguments):
        """Returns a callable that makes this call with arguments converted once."""
        error = ctypes.create_string_buffer(512)
        call = getattr(self._lib, function)
        where = self._where(tensor)
        arguments = (*arguments, ctypes.byref(where), error, ctypes.c_size_t(512))

        def run():
            code = call(*arguments)
            if code != 0:
                raise KernelError(code, error.value.decode())

        run.keep = where
        return run

    def bind_chunk_cat(
        self, tensors, dim, num_chunks, out, shard_dims=None, scale=1.0
    ):
        return self.bind(
            "shardprop_kernels_chunk_cat",
            out,
            _tensors(tensors),
            ctypes.c_int64(len(tensors)),
            ctypes.c_int64(dim),
            ctypes.c_int64(num_chunks),
            _tensors([out]),
            None if shard_dims is None else _ints(shard_dims),
            ctypes.c_double(scale),
        )

    def bind_split_with_sizes_copy(
        self, input, sizes, dim, outs, shard_dims=None, scale=1.0
    ):
        return self.bind(
            "shardprop_kernels_split_with_sizes_copy",
            input,
            _tensors([input]),
            _ints(sizes),
            ctypes.c_int64(len(sizes)),
            ctypes.c_int64(dim),
            _tensors(outs),
            None if shard_dims is None else _ints(shard_dims),
            ctypes.c_double(scale),
        )

    def bind_strided_copy(self, input, out, scale=1.0):
        return self.bind(
            "shardprop_kernels_strided_copy",
            out,
            _tensors([input]),
            _tensors([out]),
            ctypes.c_double(scale),
        )

    def bind_reduce_into(self, op, inputs, out, scale=1.0):
        return self.bind(
            "shardprop_kernels_reduce_into",
            out,
            ctypes.c_int32(REDUCE_OPS[op]),
            _tensors(inputs),
            ctypes.c_int64(len(inputs)),
            _tensors([out]),
            ctypes.c_double(scale),
        )

    def bind_fill(self, out, value):
        """`value` is a CPU tensor of one element, of the type of `out`."""
        run = self.bind(
            "shardprop_kernels_fill", out, _tensors([out]), ctypes.c_void_p(value.data_ptr())
        )
        run.value = value
        return run

    def chunk_cat(self, *args, **kwargs):
        self.bind_chunk_cat(*args, **kwargs)()

    def split_with_sizes_copy(self, *args, **kwargs):
        self.bind_split_with_sizes_copy(*args, **kwargs)()

    def strided_copy(self, *args, **kwargs):
        self.bind_strided_copy(*args, **kwargs)()

    def reduce_into(self, *args, **kwargs):
        self.bind_reduce_into(*args, **kwargs)()

    def fill(self, *args, **kwargs):
        self.bind_fill(*args, **kwargs)()
