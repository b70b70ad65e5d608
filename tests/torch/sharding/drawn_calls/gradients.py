"""Gradients that PyTorch writes in terms of others (ops/definitions/gradients.cc)."""

import torch

from .families import family


def _real(d):
    return d.rng.choice((torch.float64, torch.float32))


@family("value_selecting_reduction_backward")
def one_of_dim(d):
    shape = d.shape(d.rng.choice((0, 1, 2, 3)), 1)
    dim = d.dim(len(shape))
    keepdim = d.chance(0.5)
    taken = list(shape)
    if shape:
        taken[dim : dim + 1 or None] = [1] if keepdim else []
    size = shape[dim] if shape else 1
    return {
        "grad": d.tensor(taken),
        "dim": dim,
        "indices": d.index(taken, size, negative=False).long(),
        "sizes": list(shape),
        "keepdim": keepdim,
    }


@family("index_select_backward")
def rows_of_dim(d):
    shape = d.shape(d.rng.choice((1, 2, 3)), 1)
    dim = d.dim(len(shape))
    count = d.size(1, 7)
    taken = list(shape)
    taken[dim] = count
    return {
        "grad": d.tensor(taken),
        "self_sizes": list(shape),
        "dim": dim,
        "index": d.index((count,), shape[dim], negative=False),
    }


@family("gather_backward")
def gathered(d):
    shape = d.shape(d.rng.choice((1, 2, 3)), 1)
    dim = d.dim(len(shape))
    taken = [size if d.chance(0.7) else d.rng.randint(1, size) for size in shape]
    taken[dim] = d.size(1, 7)
    x = d.tensor(shape)
    return {
        "grad": d.tensor(taken, x.dtype),
        "self": x,
        "dim": dim,
        "index": d.index(taken, shape[dim], negative=False).long(),
        "sparse_grad": False,
    }


@family("masked_select_backward")
def selected(d):
    x = d.tensor(d.shape(d.rng.randint(0, 3), 1))
    shape = x.shape[d.rng.randint(0, x.dim()) :] if d.chance(0.4) else x.shape
    mask = d.integers(shape, 0, 2) == 1
    count = int(mask.expand(x.shape).sum())
    return {"grad": d.tensor((count,), x.dtype), "input": x, "mask": mask}


@family("trace_backward")
def diagonal(d):
    return {"grad": d.tensor(()), "sizes": [d.size(0, 8), d.size(0, 8)]}


@family("cumprod_backward", "cummaxmin_backward")
def scanned(d):
    x = d.tensor(d.shape(d.rng.randint(0, 3), 1), _real(d))
    dim = d.dim(x.dim())
    return {
        "grad": d.tensor(x.shape, x.dtype),
        "input": x,
        "indices": x.cummax(dim).indices,
        "dim": dim,
        "output": x.cumprod(dim),
    }


@family("matrix_exp_backward")
def of_exponential(d):
    shape = (*d.shape(d.rng.randint(0, 2), 1), *[d.rng.randint(1, 3)] * 2)
    dtype = _real(d)
    return {"self": d.tensor(shape, dtype) / 4, "grad": d.tensor(shape, dtype)}


@family("infinitely_differentiable_gelu_backward")
def of_gelu(d):
    x = d.tensor(d.shape(d.rng.randint(0, 3)), _real(d))
    return {"self": x, "grad": d.tensor(x.shape, x.dtype)}


@family("conv_tbc_backward")
def over_time(d):
    dtype, k, i, o = _real(d), d.rng.randint(1, 3), d.size(1, 4), d.size(1, 4)
    pad = d.rng.randint(0, 1)
    x = d.tensor((d.rng.randint(3, 6), d.size(1), i), dtype).contiguous()
    frames = x.shape[0] + 2 * pad - k + 1
    return {
        "self": d.tensor((frames, x.shape[1], o), dtype).contiguous(),
        "input": x,
        "weight": d.tensor((k, i, o), dtype).contiguous(),
        "bias": d.tensor((o,), dtype).contiguous(),
        "pad": pad,
    }


@family("affine_grid_generator_backward")
def of_grid(d):
    dims = d.rng.choice((2, 3))
    size = [d.size(1, 7), 2, *(d.rng.randint(1, 4) for _ in range(dims))]
    return {
        "grad": d.tensor((size[0], *size[2:], dims), _real(d)).contiguous(),
        "size": size,
        "align_corners": d.chance(0.5),
    }


@family("embedding_backward")
def of_table(d):
    rows, shape = d.size(1, 8), d.shape(d.rng.randint(1, 2), 1)
    return {
        "grad": d.tensor((*shape, d.size(1)), _real(d)).contiguous(),
        "indices": d.index(shape, rows, negative=False).long(),
        "num_weights": rows,
        "padding_idx": d.rng.choice((-1, 0, rows - 1)),
        "scale_grad_by_freq": d.chance(0.2),
        "sparse": False,
    }
