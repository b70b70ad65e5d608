"""Tensors made from scalars."""

import torch

from .families import family


def _bound(d, *, whole):
    if whole:
        big = d.rng.choice((2**53, 2**60)) if d.chance(0.05) else 0
        return big + d.rng.randint(-6, 12)
    return d.rng.choice((-2.5, 0.0, 0.5, 1.0, 3.5, 6.0, 7.25))


@family("arange")
def arange(d):
    bounds_whole, step_whole = d.chance(0.6), d.chance(0.5)
    start = _bound(d, whole=bounds_whole)
    length = (
        d.rng.choice((0, 1, 3, 7, 8, 11))
        if bounds_whole
        else d.rng.choice((0.5, 3.0, 7.25))
    )
    step = d.rng.choice(
        (1, 2, -1, 3, -2) if step_whole else (0.1, 0.5, -0.25, 1.0, 1.5)
    )
    end = start + length if step > 0 else start - length
    dtypes = (None, None, torch.float64, torch.float32, torch.int64, torch.int32)
    return {"start": start, "end": end, "step": step, "dtype": d.rng.choice(dtypes)}


@family("full", "zeros", "ones", "empty", "rand", "randn", "empty_strided",
        "_efficientzerotensor")  # fmt: skip
def sized(d):
    given = {"size": list(d.shape()), "names": None, "memory_format": None}
    return given | {"fill_value": d.number(), "stride": [1] * len(given["size"])}


@family("empty_permuted")
def empty_permuted(d):
    size = list(d.shape())
    return {"size": size, "physical_layout": d.rng.sample(range(len(size)), len(size))}


@family(
    "full_like",
    "zeros_like",
    "ones_like",
    "empty_like",
    "rand_like",
    "randn_like",
    "new_full",
    "new_zeros",
    "new_ones",
    "new_empty",
    "new_empty_strided",
)
def like(d):
    size = list(d.shape())
    return {
        "self": d.tensor(),
        "size": size,
        "fill_value": d.number(),
        "stride": [1] * len(size),
        "memory_format": None,
    }


@family("scalar_tensor")
def scalar_tensor(d):
    return {"s": d.number()}


@family("fill")
def fill(d):
    given = {"self": d.tensor()}
    return given | {"value": d.tensor(()) if "Tensor" in d.op else d.number()}


@family("eye", "linspace", "logspace")
def counted(d):
    start, end = (_bound(d, whole=False) for _ in range(2))
    overload = d.op.split(".")[2]
    if overload.startswith("Tensor_"):
        start = torch.tensor(start)
    if overload.startswith(("Scalar_Tensor", "Tensor_Tensor")):
        end = torch.tensor(end)
    return {
        "n": d.size(),
        "m": d.size(),
        "start": start,
        "end": end,
        "steps": d.size(),
        "dtype": None,
    }


@family("sym_size", "sym_stride")
def sym_size(d):
    x = d.tensor(d.shape(least=0))
    return {"self": x, "dim": d.dim(x.dim())}
