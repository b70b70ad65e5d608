"""Operators that PyTorch has for CUDA alone, on the CPU, from their definitions.

Import this and the products with an `out_dtype` or with scales of blocks, and the
gradient of the fused RMS norm, run on CPU tensors.
"""

import math
import warnings

import torch

_library = torch.library.Library("aten", "IMPL")


def _register(*names):
    def register(function):
        with warnings.catch_warnings(action="ignore"):  # that one is replaced
            for name in names:
                _library.impl(name, function, "CPU", allow_override=True)
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


_BLOCK = 128
_scaled_on_cpu = torch.library.get_kernel("aten::_scaled_mm", "CPU")


def _spread(scale, size):
    """Returns a scale for each element of a matrix of that size."""
    for dim in (0, 1):
        if scale.size(dim) not in (1, size[dim]):
            scale = scale.repeat_interleave(_BLOCK, dim).narrow(dim, 0, size[dim])
    return scale


@_register("_scaled_mm")
def _scaled_product(
    a, b, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, fast=False
):
    lines = (a.size(0), 1), (1, b.size(1))
    is_one = scale_a.numel() == 1 and scale_b.numel() == 1
    if is_one or (scale_a.shape, scale_b.shape) == lines:
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
        return _scaled_on_cpu.call_boxed(
            keys, a, b, scale_a, scale_b, bias, scale_result, out_dtype, fast
        )
    # As the declaration checks them.
    blocks = math.ceil(a.size(1) / _BLOCK)
    for scale, own, at in ((scale_a, a.size(0), 0), (scale_b, b.size(1), 1)):
        if scale.size(1 - at) != blocks or scale.size(at) not in (
            own,
            math.ceil(own / _BLOCK),
        ):
            raise ValueError("scales of no known blocks")
    made = (a.double() * _spread(scale_a, a.shape)) @ (
        b.double() * _spread(scale_b, b.shape)
    )
    if bias is not None:
        made = made + bias
    return made.to(out_dtype or a.dtype)


_BLOCKS_OF_32 = 3  # torch.nn.functional.ScalingType.BlockWise1x32


def _in_order(scales, rows, blocks):
    """Returns scales [rows, blocks] of swizzled ones: tiles of 128 by 4 scales are
    stored as 32 rows of 16 (SwizzleType.SWIZZLE_32_4_4)."""
    tiles = math.ceil(rows / 128), math.ceil(blocks / 4)
    tiled = scales.double().reshape(*tiles, 32, 4, 4).transpose(2, 3)
    in_order = tiled.reshape(*tiles, 128, 4).transpose(1, 2)
    return in_order.reshape(tiles[0] * 128, tiles[1] * 4)[:rows, :blocks]


def _spread_runs(scales, size):
    """Returns a scale for each of `size` elements of a row, in runs of 32."""
    return scales.repeat_interleave(32, 1)[:, :size]


@_register("_scaled_mm_v2")
def _scaled_product_v2(
    a, b, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype,
    contraction_dim=(), use_fast_accum=False,
):  # fmt: skip
    if len(scale_a) > 1 or len(scale_b) > 1:
        raise NotImplementedError("scales of two levels")
    if swizzle_a[0] or swizzle_b[0]:
        if {recipe_a[0], recipe_b[0]} != {_BLOCKS_OF_32}:
            raise NotImplementedError("swizzled scales of other blocks")
        blocks = math.ceil(a.size(1) / 32)
        of_a = _in_order(scale_a[0], a.size(0), blocks)
        of_b = _in_order(scale_b[0], b.size(1), blocks)
        made = (a.double() * _spread_runs(of_a, a.size(1))) @ (
            b.double() * _spread_runs(of_b, a.size(1)).t()
        )
        return (made if bias is None else made + bias).to(out_dtype or a.dtype)
    return _scaled_product(a, b, scale_a[0], scale_b[0], bias, None, out_dtype)


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
