"""Composite operators that a plain export leaves standing."""

import math

import torch

from .families import family

_REALS = (torch.float64, torch.float32)


def _real(d):
    return d.rng.choice(_REALS)


@family("cross_entropy_loss")
def cross_entropy(d):
    n, c = d.size(1, 7), d.size(1)
    beyond = d.rng.choice(((), (), (3,), (2, 2)))
    dtype = _real(d)
    shape = (n, c, *beyond) if d.chance(0.9) else (c,)
    samples = shape[:1] + shape[2:] if len(shape) > 1 else ()
    target = d.index(samples, c, negative=False).long()
    if d.chance(0.2):
        target = d.tensor(shape, dtype).abs()
    return {
        "self": d.tensor(shape, dtype),
        "target": target,
        "weight": d.tensor((c,), dtype).abs() + 0.25 if d.chance(0.4) else None,
        "reduction": d.rng.randint(0, 2),
        "ignore_index": d.rng.choice((-100, 0)),
        "label_smoothing": d.rng.choice((0.0, 0.0, 0.25)),
    }


@family("pad_sequence")
def pad_sequence(d):
    rest = d.shape(d.rng.randint(0, 2))
    lengths = [d.rng.randint(0, 5) for _ in range(d.rng.randint(1, 3))]
    return {
        "sequences": [d.tensor((length, *rest), d.main_dtype) for length in lengths],
        "batch_first": d.chance(0.5),
        "padding_value": d.rng.choice((0.0, 1.0)),
        "padding_side": d.rng.choice(("right", "left")),
    }


@family("sum_to_size")
def sum_to_size(d):
    x = d.tensor(d.shape(d.rng.randint(0, 3)))
    kept = x.shape[d.rng.randint(0, x.dim()) :]
    return {"self": x, "size": [1 if d.chance(0.4) else size for size in kept]}


@family("gradient")
def gradient(d):
    rank = d.rng.randint(1, 3)
    x = d.tensor([max(size, 3) for size in d.shape(rank, 1)][:rank])
    overload = d.op.split(".")[2]
    dims = d.dims(rank, d.rng.randint(1, rank))
    given = {"self": x, "edge_order": d.rng.randint(1, 2), "dim": dims}
    if overload.endswith("int"):
        given["dim"] = d.rng.choice((None, d.dim(rank)))
    count = rank if given["dim"] is None else 1 if overload.endswith("int") else len(dims)
    spacing = 0.5
    if overload.startswith("scalarrayi") or overload == "scalarrayarray":
        spacing = [0.5] * count
    if overload.startswith("tensorarray"):
        of = given["dim"]
        of = range(rank) if of is None else [of] if isinstance(of, int) else of
        spacing = [torch.arange(x.shape[dim]).to(torch.float64) * 2 for dim in of]
    return given | {"spacing": spacing}


@family("narrow")
def narrow(d):
    x = d.tensor(d.shape(d.rng.randint(1, 3)))
    dim = d.dim(x.dim())
    length = d.rng.randint(0, x.shape[dim])
    start = d.rng.randint(0, x.shape[dim] - length)
    lengths = [n for n in range(2, x.shape[dim]) if x.shape[dim] % n == 0]
    if lengths and d.chance(0.5):  # one of several equal pieces
        length = d.rng.choice(lengths)
        start = d.rng.randrange(0, x.shape[dim], length)
    if d.op.endswith(".Tensor"):
        start = torch.tensor(start)
    return {"self": x, "dim": dim, "start": start, "length": length}


@family("pdist")
def pdist(d):
    power = d.rng.choice((0.0, 1.0, 2.0, 3.0, float("inf")))
    return {"self": d.tensor(d.shape(2, 1), torch.float64), "p": power}


@family("_standard_gamma", "_sample_dirichlet")
def positive(d):
    x = d.tensor(d.shape(d.rng.randint(1, 3), 1), _real(d))
    return {"self": x.abs() + 1, "generator": None}


@family("_standard_gamma_grad", "_dirichlet_grad")
def positive_gradient(d):
    shape, dtype = d.shape(d.rng.randint(1, 3), 1), _real(d)
    alpha = d.tensor(shape, dtype).abs() + 1
    x = torch.full(shape, 0.5, dtype=dtype)
    return {"self": alpha, "output": x, "x": x, "alpha": alpha, "total": alpha + 2}


@family("_weight_int4pack_mm_for_cpu")
def int4_weights(d):
    m, k, n, group = d.size(1), 64, 64 * d.rng.randint(1, 2), 32
    weight = d.integers((n, k), 0, 16).to(torch.int32)
    dtype = torch.bfloat16
    return {
        "self": d.tensor((m, k), dtype).contiguous(),
        "mat2": torch.ops.aten._convert_weight_to_int4pack_for_cpu(weight, 2),
        "qGroupSize": group,
        "qScaleAndZeros": d.tensor((k // group, n, 2), dtype).contiguous(),
    }


@family("cov", "corrcoef")
def covariance(d):
    rank = d.rng.choice((2, 2, 2, 1, 0))
    x = d.tensor(d.shape(rank, 2), d.rng.choice((*_REALS, torch.int64)))
    if d.base == "corrcoef":
        return {"self": x}
    count = x.shape[-1] if rank else 1
    frequencies = torch.tensor([d.rng.randint(1, 3) for _ in range(count)])
    others = torch.tensor([0.5 + d.rng.randint(0, 3) for _ in range(count)])
    return {
        "self": x,
        "correction": d.rng.choice((0, 1, 1, 2, 20)),
        "fweights": frequencies if d.chance(0.4) else None,
        "aweights": others.to(torch.float64) if d.chance(0.4) else None,
    }


@family("combinations")
def combinations(d):
    return {
        "self": d.tensor((d.rng.randint(0, 6),)),
        "r": d.rng.randint(0, 3),
        "with_replacement": d.chance(0.5),
    }


@family("atleast_1d", "atleast_2d", "atleast_3d")
def at_least(d):
    tensors = [d.tensor(d.shape(d.rng.randint(0, 4))) for _ in range(d.rng.randint(1, 3))]
    return {"self": tensors[0], "tensors": tensors}


@family("_dim_arange")
def places(d):
    x = d.tensor(d.shape(d.rng.randint(1, 3)))
    return {"like": x, "dim": d.rng.randrange(x.dim())}


@family("linalg_tensorinv", "linalg_tensorsolve")
def tensor_as_matrix(d):
    # Rows (2, 3) or 6, columns as many in other dims.
    rows = d.rng.choice(((2, 3), (6,), (3, 2), (1, 4)))
    columns = d.rng.choice(((4,), (2, 2)) if 4 in rows else ((6,), (2, 3), (3, 2)))
    side = math.prod(rows)
    square = torch.eye(side, dtype=torch.float64) * 4
    square = square + d.tensor((side, side), torch.float64) / 8
    x = square.reshape(*rows, *columns)
    if d.base == "linalg_tensorinv":
        return {"self": x, "ind": len(rows)}
    given = {"self": x, "other": d.tensor(rows, torch.float64), "dims": None}
    if d.chance(0.3) and rows == (6,):
        given |= {"self": x.movedim(0, -1).contiguous(), "other": given["other"]}
        given["dims"] = list(range(len(columns)))
    return given


@family("_lu_with_info")
def factored(d):
    return {
        "self": d.tensor((*d.shape(d.rng.randint(0, 2)), 3, 3), _real(d)),
        "pivot": True,
        "check_errors": False,
    }
