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


@family("max_pool3d_with_indices", "max_pool3d", "avg_pool3d")
def pool_3d(d):
    return _pool(d, 3)


@family("avg_pool1d", "max_pool1d", "max_pool1d_with_indices")
def pool_1d(d):
    return _pool(d, 1)


@family("max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward")
def max_pool_backward(d):
    forward = getattr(torch.ops.aten, d.base.removesuffix("_backward"))
    given = _pool(d, int(d.base[len("max_pool")]))
    given["stride"] = given["stride"] or given["kernel_size"]
    result, indices = forward(**given)
    grad = d.tensor(result.shape, result.dtype).contiguous()
    return {"grad_output": grad, **given, "indices": indices}


@family("avg_pool2d_backward", "avg_pool3d_backward")
def avg_pool_backward(d):
    given = _pool(d, int(d.base[len("avg_pool")]))
    del given["dilation"]
    given["stride"] = given["stride"] or given["kernel_size"]
    given |= {"count_include_pad": d.chance(0.5), "divisor_override": None}
    result = getattr(torch.ops.aten, d.base.removesuffix("_backward"))(**given)
    grad = d.tensor(result.shape, result.dtype).contiguous()
    return {"grad_output": grad, **given}


def _adaptive(d, dims):
    leading = d.shape(2 if d.chance(0.8) else 1, 1)
    space = [d.rng.randint(2, 5) for _ in range(dims)]
    x = d.tensor((*leading, *space), torch.float64, distinct=True).contiguous()
    return {"self": x, "output_size": [d.rng.randint(1, 4) for _ in range(dims)]}


def _register_adaptive(dims):
    average = f"adaptive_avg_pool{dims}d"

    @family(average, "_" + average, f"adaptive_max_pool{dims}d")
    def adaptive(d):
        return _adaptive(d, dims)

    @family(f"_{average}_backward", f"adaptive_max_pool{dims}d_backward")
    def adaptive_backward(d):
        given = _adaptive(d, dims)
        forward = getattr(torch.ops.aten, d.base.removesuffix("_backward"))
        result = forward(**given)
        if "max" in d.base:
            result, given["indices"] = result
        grad = d.tensor(result.shape, result.dtype).contiguous()
        return {"grad_output": grad} | given


for _dims in (1, 2, 3):
    _register_adaptive(_dims)


@family("fractional_max_pool2d", "fractional_max_pool3d")
def fractional_max_pool(d):
    dims = int(d.base[len("fractional_max_pool")])
    n, c = d.size(1, 4), d.size(1, 4)
    space = [d.rng.randint(4, 5) for _ in range(dims)]
    x = d.tensor((n, c, *space), torch.float64, distinct=True).contiguous()
    samples = d.integers((n, c, dims), 0, 8).double() / 8
    sizes = [2] * dims
    return {
        "self": x,
        "kernel_size": sizes,
        "output_size": sizes,
        "random_samples": samples,
    }


@family("fractional_max_pool2d_backward", "fractional_max_pool3d_backward")
def fractional_max_pool_backward(d):
    given = fractional_max_pool(d)
    forward = getattr(torch.ops.aten, d.base.removesuffix("_backward"))
    result, given["indices"] = forward(**given)
    grad = d.tensor(result.shape, result.dtype).contiguous()
    return {"grad_output": grad} | given


@family("max_unpool2d", "max_unpool3d")
def max_unpool(d):
    dims = int(d.base[len("max_unpool")])
    space = [2 * d.rng.randint(1, 2) for _ in range(dims)]
    x = d.tensor((*d.shape(2, 1), *space), torch.float64, distinct=True).contiguous()
    pool = getattr(torch.ops.aten, f"max_pool{dims}d_with_indices")
    pooled, indices = pool(x, [2] * dims)
    return {
        "self": pooled,
        "indices": indices,
        "output_size": space,
        "stride": [2] * dims,
        "padding": [0] * dims,
    }
