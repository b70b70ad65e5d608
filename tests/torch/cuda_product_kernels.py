"""Operators that PyTorch has for CUDA alone, on the CPU, from their definitions.

Import this and the products with an `out_dtype` and the gradient of the fused RMS
norm run on CPU tensors.
"""

import math

import torch

_library = torch.library.Library("aten", "IMPL")


def _register(*names):
    def register(function):
        for name in names:
            _library.impl(name, function, "CPU")
        return function

    return register


@_register("mm.dtype", "bmm.dtype")
def _product(a, b, out_dtype):
    return a.to(out_dtype) @ b.to(out_dtype)


@_register("addmm.dtype", "baddbmm.dtype")
def _added_product(added, a, b, out_dtype, *, beta=1, alpha=1):
    made = beta * added.to(out_dtype) + alpha * _product(a, b, out_dtype)
    return made.contiguous()


def _written(out, value):
    if out.shape != value.shape:
        out.resize_(value.shape)
    return out.copy_(value)


@_register("mm.dtype_out", "bmm.dtype_out")
def _product_out(a, b, out_dtype, *, out):
    return _written(out, _product(a, b, out_dtype))


@_register("addmm.dtype_out", "baddbmm.dtype_out")
def _added_product_out(added, a, b, out_dtype, *, beta=1, alpha=1, out):
    made = _added_product(added, a, b, out_dtype, beta=beta, alpha=alpha)
    return _written(out, made)


@_register("_fused_rms_norm_backward")
def _rms_norm_backward(grad_out, x, normalized_shape, rstd, weight, output_mask):
    dims = list(range(-len(normalized_shape), 0))
    count = math.prod(normalized_shape)
    normal = x * rstd
    scaled = grad_out if weight is None else grad_out * weight
    along = (scaled * normal).sum(dims, keepdim=True) / count
    of_x = (scaled - normal * along) * rstd
    leading = list(range(x.dim() - len(normalized_shape)))
    of_weight = (grad_out * normal).sum(leading) if leading else grad_out * normal
    return (
        of_x if output_mask[0] else None,
        of_weight if output_mask[1] and weight is not None else None,
    )
