"""Reductions, scans, orders along a dim."""

from .families import family


@family("_softmax", "_log_softmax", "softmax", "log_softmax", "_safe_softmax",
        "special_softmax", "special_log_softmax")  # fmt: skip
def softmax(d):
    x = d.tensor()
    return {"self": x, "dim": d.dim(x.dim()), "half_to_float": False}


@family("_softmax_backward_data", "_log_softmax_backward_data")
def softmax_backward(d):
    shape = d.shape()
    return {
        "grad_output": d.tensor(shape),
        "output": d.tensor(shape),
        "dim": d.dim(len(shape)),
        "input_dtype": d.main_dtype,
    }


@family("topk", "sort", "argsort", "kthvalue", "msort", "median", "nanmedian", "mode")
def ordered(d):
    x = d.tensor(distinct=True)
    dim = d.dim(x.dim())
    size = x.shape[dim] if x.dim() else 1
    return {
        "self": x,
        "dim": dim,
        "k": d.rng.randint(0 if d.base == "topk" else 1, max(size, 1)),
    }


@family("argmax", "argmin", "cummax", "cummin")
def where_extreme(d):
    return {"self": d.tensor(distinct=True)}


@family("max", "min")
def extreme(d):
    given = {"self": d.tensor(distinct=True)}
    return given | (
        {"other": d.tensor(given["self"].shape)} if d.op.endswith("other") else {}
    )


@family("mean")
def mean(d):
    # Half of the time of what divides by nothing: bool and integers are refused.
    x = d.tensor()
    given = {"self": x}
    if "names" not in d.op and "default" not in d.op:
        given["dim"] = d.dims(x.dim()) if d.chance(0.8) else None
    return given


@family("diff")
def diff(d):
    x = d.tensor(d.shape(d.rng.randint(1, 3), 1))
    return {"self": x, "n": 1, "prepend": None, "append": None}


@family("logcumsumexp", "cumprod", "cumsum")
def scan(d):
    x = d.tensor()
    return {"self": x, "dim": d.dim(x.dim())}


@family("_local_scalar_dense")
def item(d):
    return {"self": d.tensor((1,) * d.rng.randint(0, 2))}


@family("equal", "is_same_size", "allclose")
def compared(d):
    x = d.tensor()
    return {"self": x, "other": d.tensor(x.shape if d.chance(0.6) else None, x.dtype)}
