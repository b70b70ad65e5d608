"""Lookups and updates by index: repeated indices, some counted from the end."""

import math

import torch

from .drawer import broadcasts
from .families import family


def _source(d):
    x = d.tensor(d.shape(d.rng.choice((1, 2, 2, 3)), 1))
    return x, d.dim(x.dim())


@family("gather")
def gather(d):
    x, dim = _source(d)
    shape = [d.rng.randint(0 if d.chance(0.1) else 1, n) for n in x.shape]
    shape[dim] = d.size()
    index = d.index(shape, x.shape[dim], negative=False).to(torch.int64)
    if index.numel() == 0 and d.chance(0.5):
        index = index.to(d.rng.choice((torch.uint8, torch.bool, torch.float32)))
    return {"self": x, "dim": dim, "index": index}


@family("scatter", "scatter_add", "scatter_reduce")
def scatter(d):
    x, dim = _source(d)
    shape = [n if d.chance(0.5) else d.rng.randint(0, n) for n in x.shape]
    where = dim % x.dim()
    if "add" not in d.base and "reduce" not in d.base + d.op.split(".")[2]:
        # A repeated index would leave the result to the order of the writes: no
        # index repeats.
        rows = torch.argsort(torch.rand(x.shape, generator=d.generator), dim=where)
        index = rows[tuple(slice(0, n) for n in shape)].clone()
    else:
        index = d.index(shape, x.shape[dim], negative=False).to(torch.int64)
    longer = [n + (d.rng.randint(1, 4) if d.chance(0.4) else 0) for n in shape]
    if index.numel() == 0 and d.chance(0.5):
        index = index.to(d.rng.choice((torch.uint8, torch.bool, torch.float32)))
    given = {"self": x, "dim": dim, "index": index}
    given["src"] = d.tensor(longer, x.dtype if d.chance(0.9) else None)
    if d.base.removesuffix("_") == "scatter" and "reduce" in d.op:
        given["reduce"] = d.rng.choice(("add", "multiply"))
    return given | {
        "value": d.tensor((), x.dtype) if d.op.endswith("value_Tensor") else d.number()
    }


@family("index_select", "index_add", "index_copy", "index_fill", "index_reduce")
def by_rows(d):
    x, dim = _source(d)
    count = d.size(0, 6)
    if d.base.startswith(("index_copy", "index_fill")):
        count = min(count, x.shape[dim])
        index = torch.randperm(x.shape[dim], generator=d.generator)[:count]
    else:
        index = d.index((count,), x.shape[dim], negative=False)
    shape = list(x.shape)
    shape[dim] = count
    given = {"self": x, "dim": dim, "index": index, "source": d.tensor(shape, x.dtype)}
    return given | {"value": d.tensor((), x.dtype) if "_Tensor" in d.op else d.number()}


def _indices(d, x, *, distinct):
    """Index tensors for some of the dims, and the shape that they pick out."""
    picked = d.shape(d.rng.choice((1, 1, 1, 2)), 0)
    dims = [i for i in range(x.dim()) if d.chance(0.6)] or [0]
    if d.chance(0.15):
        # A mask over some dims: as many as it holds.
        first = d.rng.randrange(x.dim())
        last = d.rng.randint(first + 1, x.dim())
        mask = d.tensor(x.shape[first:last], torch.bool).contiguous()
        picked = (*x.shape[:first], int(mask.sum()), *x.shape[last:])
        return [*[None] * first, mask], picked
    indices = [None] * (dims[-1] + 1)
    if distinct:
        # The positions are distinct: a repeated one would leave the result to
        # the order of the writes.
        most = math.prod(x.shape[i] for i in dims)
        count = d.rng.randint(0, min(most, 8))
        flat = torch.randperm(most, generator=d.generator)[:count]
        parts = torch.unravel_index(flat, [x.shape[i] for i in dims])
        for i, part in zip(dims, parts, strict=True):
            lowered = d.chance(0.5) & (d.integers(part.shape, 0, 2) == 1)
            indices[i] = torch.where(lowered, part - x.shape[i], part)
        picked = (count,)
    else:
        for i in dims:
            indices[i] = d.index(
                broadcasts(d.rng, picked, fewer_dims=False), x.shape[i]
            )
        picked = torch.broadcast_shapes(*(indices[i].shape for i in dims))
    chosen = x.new_empty(x.shape)[
        tuple(slice(None) if i is None else i.long() for i in indices)
    ]
    return indices, tuple(chosen.shape)


@family("index_put", "_unsafe_index_put", "_index_put_impl", "index")
def index_put(d):
    x, _ = _source(d)
    accumulate = d.base != "index" and d.chance(0.6)
    repeats = accumulate or d.base == "index"
    indices, shape = _indices(d, x, distinct=not repeats)
    values = d.tensor(broadcasts(d.rng, shape), x.dtype if d.chance(0.95) else None)
    return {"self": x, "indices": indices, "values": values, "accumulate": accumulate}


@family("_unsafe_index")
def unsafe_index(d):
    return index_put(d)


@family("_unsafe_masked_index", "_unsafe_masked_index_put_accumulate")
def masked_index(d):
    given = index_put(d)
    while any(i is not None and i.dtype == torch.bool for i in given["indices"]):
        given = index_put(d)
    x = given["self"]
    shape = x.new_empty(x.shape)[
        tuple(slice(None) if i is None else i.long() for i in given["indices"])
    ].shape
    values = d.tensor(broadcasts(d.rng, shape), x.dtype)
    mask = d.tensor(broadcasts(d.rng, shape), torch.bool)
    return given | {"mask": mask, "values": values, "fill": d.number()}


@family("embedding")
def embedding(d):
    rows = d.size(1)
    weight = d.tensor((rows, d.size()))
    indices = d.index(d.shape(d.rng.randint(0, 2)), rows, negative=False)
    given = {"weight": weight, "indices": indices}
    return given | (
        {"padding_idx": d.rng.randint(-1, rows - 1)} if d.chance(0.5) else {}
    )


@family("embedding_dense_backward")
def embedding_dense_backward(d):
    rows = d.size(1)
    indices = d.index(d.shape(d.rng.randint(1, 2)), rows, negative=False)
    return {
        "grad_output": d.tensor((*indices.shape, d.size())),
        "indices": indices,
        "num_weights": rows,
        "padding_idx": d.rng.randint(-1, rows - 1),
        "scale_grad_by_freq": d.chance(0.2),
    }


@family("nll_loss_forward", "nll_loss")
def nll_loss(d):
    c = d.size(1)
    samples = () if d.chance(0.15) else (d.size(1),)
    return {
        "self": d.tensor((*samples, c)),
        "target": d.index(samples, c, negative=False).long(),
        "weight": d.tensor((c,)) if d.chance(0.3) else None,
        "reduction": d.rng.randint(0, 2),
        "ignore_index": d.rng.choice((-100, 0)),
    }


@family("nll_loss_backward")
def nll_loss_backward(d):
    given = nll_loss(d)
    _, total = torch.ops.aten.nll_loss_forward(**given)
    shape = given["target"].shape if given["reduction"] == 0 else ()
    return given | {
        "grad_output": d.tensor(shape, given["self"].dtype),
        "total_weight": total,
    }


@family("nll_loss2d_forward", "nll_loss2d", "nll_loss_nd")
def nll_loss2d(d):
    n, c, h, w = d.size(1, 4), d.size(1, 4), d.rng.randint(1, 3), d.rng.randint(1, 3)
    dtype = d.rng.choice((torch.float64, torch.float32))
    space = (h, w)
    if d.base == "nll_loss_nd":
        space = d.rng.choice(((), (h,), (h, w), (h, w, 2)))
    return {
        "self": d.tensor((n, c, *space), dtype).contiguous(),
        "target": d.index((n, *space), c, negative=False).long(),
        "weight": d.tensor((c,), dtype) if d.chance(0.3) else None,
        "reduction": d.rng.randint(0, 2),
        "ignore_index": d.rng.choice((-100, 0)),
    }


@family("nll_loss2d_backward")
def nll_loss2d_backward(d):
    given = nll_loss2d(d)
    result, total = torch.ops.aten.nll_loss2d_forward(**given)
    grad = d.tensor(result.shape, result.dtype).contiguous()
    return given | {"grad_output": grad, "total_weight": total}


@family("one_hot")
def one_hot(d):
    return {
        "self": d.index(d.shape(d.rng.randint(0, 2)), 5, negative=False).long(),
        "num_classes": 5,
    }


@family("take", "put")
def take(d):
    x = d.tensor(d.shape(least=1))
    shape = d.shape(d.rng.randint(0, 2))
    index = d.index(shape, x.numel()).long()
    adds = d.base.removesuffix("_") != "put" or d.chance(0.6)
    if not adds:
        # A repeated place would leave the result to the order of the writes: no
        # place repeats.
        count = d.rng.randint(0, x.numel())
        index = torch.randperm(x.numel(), generator=d.generator)[:count]
    return {
        "self": x,
        "index": index,
        "source": d.tensor(index.shape, x.dtype),
        "accumulate": adds,
    }


@family("binary_cross_entropy", "binary_cross_entropy_backward")
def cross_entropy_of_two(d):
    shape, dtype = d.main_shape, d.rng.choice((torch.float64, torch.float32))
    chances, targets = ((d.integers(shape, 1, 8) / 8).to(dtype) for _ in range(2))
    reduction = d.rng.randint(0, 2)
    grad = d.tensor(shape if reduction == 0 else (), dtype)
    given = {"self": chances, "target": targets, "reduction": reduction}
    if d.base.endswith("_backward"):
        given |= {"grad_output": grad, "grad_input": torch.zeros(shape, dtype=dtype)}
    return given | {"weight": d.tensor(shape, dtype) if d.chance(0.4) else None}


@family("take_along_dim")
def take_along_dim(d):
    given = gather(d)
    return given | {"indices": given["index"]}


@family("masked_select", "masked_scatter")
def masked(d):
    whole = d.shape()
    part = [n if d.chance(0.7) else 1 for n in whole][d.rng.randint(0, len(whole)) :]
    wide = d.base == "masked_scatter_" or d.chance(0.6)
    x = d.tensor(whole if wide else part)
    mask = d.tensor(part if wide else whole, torch.bool)
    # In one dim, as the rows that take the places of tokens are, or not.
    enough = (math.prod(whole) + d.rng.randint(0, 3),)
    return {
        "self": x,
        "mask": mask,
        "source": d.tensor(enough if d.chance(0.5) else whole, x.dtype),
    }


@family("masked_scatter_backward")
def masked_scatter_backward(d):
    given = masked(d)
    mask = given["mask"]
    grad = d.tensor(torch.broadcast_shapes(given["self"].shape, mask.shape))
    selected = int(mask.expand(grad.shape).sum())
    more = d.rng.randint(0, 3)
    sizes = [selected + more] if d.chance(0.5) else [2, selected // 2 + 1 + more]
    return {"grad_output": grad, "mask": mask, "sizes": sizes}


@family("bucketize", "searchsorted")
def bucketize(d):
    bounds = torch.arange(d.size(1)).to(d.main_dtype)
    given = {"boundaries": bounds, "sorted_sequence": bounds}
    given |= {"sorter": None, "side": None}
    if ".Scalar" in d.op:
        return given | {"self": d.number()}
    x = d.tensor(None, d.main_dtype)
    if d.base == "searchsorted" and d.chance(0.5):
        # A row of bounds for each row of values.
        batch = d.shape(d.rng.randint(1, 2))
        rows = bounds.expand(*batch, len(bounds)).contiguous()
        x = d.tensor((*batch, d.size()), d.main_dtype)
        given["sorted_sequence"] = rows
    return given | {"self": x.contiguous()}


@family("isin")
def isin(d):
    given = {"assume_unique": False, "invert": d.chance(0.5)}
    first, second = (d.tensor() for _ in range(2))
    kind = d.op.split(".")[2]
    given["elements"] = given["element"] = first
    given["test_elements"] = given["test_element"] = second
    if kind.startswith("Scalar"):
        given["element"] = d.number()
    if kind.startswith("Tensor_Scalar"):
        given["test_element"] = d.number()
    return given


@family("histc")
def histc(d):
    x = d.tensor(None, d.rng.choice((torch.float64, torch.float32)))
    low, high = (0, 0) if d.chance(0.2) else (-2, 2)
    return {"self": x, "bins": d.rng.randint(1, 6), "min": low, "max": high}


@family("histogram")
def histogram(d):
    x = d.tensor(None, d.rng.choice((torch.float64, torch.float32)))
    bins = d.rng.randint(1, 6)
    given = {
        "self": x,
        "bins": bins,
        "range": None if d.chance(0.2) else (-2.0, 2.0),
        "weight": d.tensor(x.shape, x.dtype) if d.chance(0.5) else None,
        "density": d.chance(0.2),
    }
    if "bins_tensor" in d.op:
        given["bins"] = torch.linspace(-2, 2, bins + 1, dtype=x.dtype)
    return given


@family(
    "_histogramdd_bin_edges",
    "_histogramdd_from_bin_cts",
    "_histogramdd_from_bin_tensors",
    "histogramdd",
)
def histogram_of_points(d):
    coordinates = d.rng.randint(1, 3)
    dtype = d.rng.choice((torch.float64, torch.float32))
    points = d.shape(d.rng.randint(1, 2), 1)
    bins = [d.rng.randint(1, 4) for _ in range(coordinates)]
    given = {
        "self": d.tensor((*points, coordinates), dtype),
        "bins": bins,
        "weight": d.tensor(points, dtype) if d.chance(0.5) else None,
        "density": d.chance(0.2),
    }
    if d.op.endswith(".int_bins"):
        given |= {"bins": bins[0]}
    if "bin_tensors" in d.op or "TensorList" in d.op:
        given["bins"] = [torch.linspace(-2, 2, n + 1, dtype=dtype) for n in bins]
    else:
        given["range"] = None if d.chance(0.2) else [-2.0, 2.0] * coordinates
    return given


@family("segment_reduce", "_segment_reduce_backward")
def segments(d):
    """Rows in runs that are as long together as there are rows."""
    axis = d.rng.choice((0, 0, 1, 2))
    before, after = d.shape(axis, 1), d.shape(d.rng.randint(0, 2))
    # The kernels read the stride of the dim of runs: of one run it is any.
    runs = d.rng.randint(2, 4)
    count = d.rng.randint(runs, 8)
    cuts = torch.stack([
        torch.sort(d.integers((runs - 1,), 0, count + 1)).values
        for _ in range(math.prod(before))
    ]).reshape(*before, runs - 1)
    ends = [torch.zeros((*before, 1)), cuts, torch.full((*before, 1), count)]
    offsets = torch.cat(ends, -1).long()
    data = d.tensor((*before, count, *after), torch.float64)
    reduce = d.rng.choice(("sum", "mean", "max", "min", "prod"))
    by = d.rng.choice(("lengths", "offsets"))
    initial = d.number() if d.chance(0.3) else None
    given = {
        "data": data,
        "reduce": reduce,
        "lengths": offsets.diff() if by == "lengths" else None,
        "offsets": offsets if by == "offsets" else None,
        "indices": None,
        "axis": axis,
        "unsafe": d.chance(0.5),
        "initial": initial,
    }
    if d.base == "_segment_reduce_backward":
        forward = {k: given[k] for k in ("lengths", "offsets", "axis", "initial")}
        given["output"] = torch.segment_reduce(data, reduce, **forward)
        given["grad"] = d.tensor(given["output"].shape, torch.float64)
    return given


@family("_pdist_forward")
def pdist(d):
    return {"self": d.tensor(d.shape(2), torch.float64), "p": d.rng.choice((0.0, 1.0, 2.0))}


@family("_pdist_backward")
def pdist_backward(d):
    rows = d.tensor(d.shape(2, 1), torch.float64).contiguous()
    power = d.rng.choice((0.0, 1.0, 1.5, 2.0, 3.0, math.inf))
    distances = torch.ops.aten._pdist_forward(rows, power)
    grad = d.tensor(distances.shape, torch.float64)
    return {"grad": grad, "self": rows, "p": power, "pdist": distances}


@family("nonzero_static")
def nonzero_static(d):
    return {"self": d.tensor(), "size": d.rng.randint(0, 9), "fill_value": -1}


@family("bincount")
def bincount(d):
    x = d.integers((d.size(),), 0, 5)
    given = {"self": x, "minlength": d.rng.randint(0, 7), "weights": None}
    return given | ({"weights": d.tensor(x.shape, torch.float64)} if d.chance(0.4) else {})


@family("renorm")
def renorm(d):
    x = d.tensor(d.shape(d.rng.randint(2, 3), 1), torch.float64)
    return {"self": x, "p": d.rng.choice((1, 2)), "dim": d.dim(x.dim()), "maxnorm": 2}


@family("embedding_renorm")
def embedding_renorm(d):
    table = d.tensor(d.shape(2, 1), torch.float64)
    indices = d.index(d.shape(d.rng.randint(0, 2)), len(table), negative=False)
    return {
        "self": table,
        "indices": indices,
        "max_norm": d.rng.choice((0.5, 1.0)),
        "norm_type": d.rng.choice((1.0, 2.0)),
    }


@family("glu", "glu_backward")
def glu(d):
    shape = list(d.shape(d.rng.randint(1, 3), 1))
    dim = d.dim(len(shape))
    grad = d.tensor(shape, torch.float64)
    shape[dim] *= 2
    return {"grad_output": grad, "self": d.tensor(shape, torch.float64), "dim": dim}


@family("repeat_interleave")
def repeat_interleave(d):
    x = d.tensor(d.shape(d.rng.randint(1, 2), 1))
    dim = d.dim(x.dim()) if d.chance(0.6) else None
    if d.op.endswith(".self_int"):
        return {"self": x, "repeats": d.rng.randint(0, 3), "dim": dim}
    length = x.numel() if dim is None else x.shape[dim]
    repeats = d.integers((length,), 0, 3)
    return {"self": x, "repeats": repeats, "dim": dim, "output_size": None}


@family("multi_margin_loss", "multilabel_margin_loss_forward", "multilabel_margin_loss")
def margin_loss(d):
    n, c = d.size(1), d.size(1)
    shape = (n, c) if d.chance(0.7) else (c,)
    many = "multilabel" in d.base
    targets = shape if many else shape[:-1]
    if len(shape) == 1 and d.chance(0.5):  # one sample, of one class perhaps
        c = c if d.chance(0.5) else 1
        shape = (c,) if c > 1 or d.chance(0.5) else ()
        one = (1,) if d.chance(0.5) else ()
        targets = one if c == 1 or not many else shape
    given = {
        "self": d.tensor(shape),
        "target": d.index(targets, c, negative=False).long(),
        "reduction": d.rng.randint(0, 2),
    }
    if many:  # -1 ends the classes of a sample
        if targets:
            given["target"][..., d.rng.randrange(c) :] = -1
        return given
    return given | {
        "p": d.rng.randint(1, 2),
        "margin": d.rng.choice((1, 0.5)),
        "weight": d.tensor((c,), given["self"].dtype) if d.chance(0.3) else None,
    }


@family("multi_margin_loss_backward", "multilabel_margin_loss_backward")
def margin_loss_backward(d):
    given = margin_loss(d)
    x, target = given["self"], given["target"]
    samples = x.shape[:-1]
    if x.dim() < 2 and "multilabel" not in d.base:
        samples = target.shape
    shape = samples if given["reduction"] == 0 else ()
    given["grad_output"] = d.tensor(shape, given["self"].dtype)
    if "multilabel" in d.base:
        _, given["is_target"] = torch.ops.aten.multilabel_margin_loss_forward(
            given["self"], given["target"], given["reduction"]
        )
    return given
