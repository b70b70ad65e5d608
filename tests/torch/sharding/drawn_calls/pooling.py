"""Pools and resizing over the last dims."""

import torch

from .families import family


def _pool(d, spatial):
    rank = spatial + (2 if d.chance(0.8) else 1)
    shape = [*d.shape(rank - spatial), *(d.rng.randint(3, 6) for _ in range(spatial))]
    dtype = d.rng.choice((torch.float64, torch.float32))
    kernel = [d.rng.randint(1, 3) for _ in range(1 if d.chance(0.3) else spatial)]
    smallest = min(kernel) // 2
    return {
        "self": d.tensor(shape, dtype, distinct=True),
        "kernel_size": kernel,
        "stride": [d.rng.randint(1, 2) for _ in kernel] if d.chance(0.6) else [],
        "padding": [d.rng.randint(0, smallest) for _ in kernel],
        "dilation": [1],
        "ceil_mode": d.chance(0.3),
    }


@family("max_pool2d_with_indices", "max_pool2d", "avg_pool2d")
def pool_2d(d):
    return _pool(d, 2)


@family("max_pool3d_with_indices", "avg_pool3d")
def pool_3d(d):
    return _pool(d, 3)


@family("avg_pool1d", "max_pool1d", "max_pool1d_with_indices")
def pool_1d(d):
    return _pool(d, 1)


@family("max_pool2d_with_indices_backward")
def max_pool_backward(d):
    given = _pool(d, 2)
    result, indices = torch.ops.aten.max_pool2d_with_indices(**given)
    grad = d.tensor(result.shape, result.dtype)
    return {"grad_output": grad, **given, "indices": indices}


@family("avg_pool2d_backward")
def avg_pool_backward(d):
    given = _pool(d, 2)
    del given["dilation"]
    given |= {"count_include_pad": d.chance(0.5), "divisor_override": None}
    result = torch.ops.aten.avg_pool2d(**given)
    return {"grad_output": d.tensor(result.shape, result.dtype), **given}


@family("_adaptive_avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d")
def adaptive(d):
    x = d.tensor((*d.shape(2, 1), 4, 6), torch.float64, distinct=True)
    return {"self": x, "output_size": [d.rng.randint(1, 4), d.rng.randint(1, 4)]}


@family("upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d")
def upsample(d):
    x = d.tensor((*d.shape(2, 1), 3, 4), torch.float64)
    given = {
        "self": x,
        "input": x,
        "output_size": [d.rng.randint(2, 7), d.rng.randint(2, 7)],
    }
    return given | {
        "align_corners": d.chance(0.5),
        "scales_h": None,
        "scales_w": None,
        "scale_factors": None,
    }
