"""Pointwise operators that need more than shapes that broadcast."""

import torch

from .drawer import broadcasts
from .families import family


def _nonzero(value):
    """Zeros made ones: a quotient by zero adds up to nothing."""
    return torch.where(value == 0, torch.ones_like(value), value)


@family("div", "true_divide", "divide", "floor_divide", "remainder", "fmod")
def quotient(d):
    given = {"self": d.tensor(d.related_shape(widest=True))}
    if d.op.split(".")[2].startswith("Scalar_Tensor"):
        return {"self": d.number(), "other": _nonzero(d.tensor())}
    if d.op.split(".")[2].startswith("Scalar") and "Tensor" not in d.op:
        return given | {"other": d.number() or 2}
    return given | {"other": _nonzero(d.tensor())}


@family(
    "reciprocal", "log", "log2", "log10", "rsqrt", "sqrt", "log1p", "lgamma", "digamma"
)
def of_positive(d):
    x = d.tensor()
    return {"self": _nonzero(x.abs()) if x.dtype != torch.bool else x}


@family("where")
def where(d):
    shape = d.main_shape
    condition = torch.bool if d.chance(0.95) else torch.uint8
    given = {"condition": d.tensor(broadcasts(d.rng, shape), condition)}
    if ".Scalar" not in d.op or d.op.endswith("ScalarOther"):
        given["self"] = d.tensor(broadcasts(d.rng, shape))
    if d.op.endswith(("self", "self_out", "ScalarSelf")):
        given["other"] = d.tensor(broadcasts(d.rng, shape))
    return given


@family("pow")
def power(d):
    kind = d.op.split(".")[2]
    exponents = (0, 1, 2, 3, 0.5, -1, 2.0, -0.5)
    if d.base.endswith("_"):
        x = d.tensor(d.related_shape(widest=True), torch.float64)
        scalar = d.rng.choice(exponents)
        return {"self": x, "exponent": scalar if kind == "Scalar" else d.tensor()}
    given = (
        {"self": d.rng.choice(exponents)}
        if kind.startswith("Scalar")
        else {"self": d.tensor()}
    )
    if not kind.startswith("Tensor_Tensor") and not kind.startswith("Scalar"):
        given["exponent"] = d.rng.choice(exponents)
    return given


@family("masked_fill")
def masked_fill(d):
    x = d.tensor(d.related_shape(widest=True))
    given = {"self": x, "mask": d.tensor(broadcasts(d.rng, x.shape), torch.bool)}
    return given | {
        "value": d.tensor(()) if d.op.endswith(("Tensor", "Tensor_out")) else d.number()
    }


@family("native_dropout")
def native_dropout(d):
    dtype = d.rng.choice((torch.float64, torch.float32, torch.bfloat16))
    return {
        "input": d.tensor(None, dtype),
        "p": d.rng.choice((0.0, 0.25, 0.5)),
        "train": True,
    }


@family("bernoulli", "dropout", "rrelu_with_noise")
def random(d):
    given = {"self": d.tensor(), "input": d.tensor(), "p": 0.5}
    if ".Tensor" in d.op:
        given["p"] = (d.integers(given["self"].shape, 0, 5) / 4).to(torch.float64)
    return given


@family("poisson", "binomial", "multinomial")
def random_of_counts(d):
    shape = d.shape(d.rng.randint(1, 2), 1)
    counts = d.tensor(shape, d.rng.choice((torch.float64, torch.float32))).abs()
    if d.base == "multinomial":
        counts = counts + 1
    chances = (d.integers(shape, 0, 5) / 4).to(counts.dtype)
    return {
        "self": counts,
        "count": counts,
        "prob": chances,
        "num_samples": d.rng.randint(1, shape[-1]),
        "replacement": d.chance(0.5),
    }


@family("geometric", "exponential", "cauchy", "log_normal", "normal", "uniform")
def random_by_parameters(d):
    dtype = d.rng.choice((torch.float64, torch.float32, torch.bfloat16))
    given = {"self": d.tensor(None, dtype), "p": 0.25, "lambd": 2.0}
    given |= {"median": 0.5, "sigma": 2.0, "mean": 1.0, "std": 0.5}
    kind = d.op.split(".")[2]
    if d.base == "normal" and kind.startswith(("Tensor", "float")):
        shape = d.related_shape(widest=True)
        first, second = (d.tensor(shape, dtype) for _ in range(2))
        if kind.startswith("Tensor"):
            given["mean"] = first
        if "_Tensor" in kind:
            given["std"] = second.abs()
    low = d.rng.choice((-1.0, 0.0))
    return given | {"from": low, "to": low + 1.5, "size": list(d.shape())}


@family("random")
def random_of_range(d):
    low = d.rng.randint(-4, 2)
    dtype = d.rng.choice((torch.float64, torch.float32, torch.int64, torch.int32))
    return {"self": d.tensor(None, dtype), "from": low, "to": max(low, 0) + 7}


@family("_assert_tensor_metadata")
def assert_metadata(d):
    x = d.tensor()
    return {
        "a": x,
        "size": list(x.shape),
        "stride": None,
        "dtype": x.dtype,
        "layout": None,
    }


@family(
    "special_chebyshev_polynomial_t",
    "special_chebyshev_polynomial_u",
    "special_chebyshev_polynomial_v",
    "special_chebyshev_polynomial_w",
    "special_hermite_polynomial_h",
    "special_hermite_polynomial_he",
    "special_laguerre_polynomial_l",
    "special_legendre_polynomial_p",
    "special_shifted_chebyshev_polynomial_t",
    "special_shifted_chebyshev_polynomial_u",
    "special_shifted_chebyshev_polynomial_v",
    "special_shifted_chebyshev_polynomial_w",
)
def polynomial(d):
    """The degree is small, because kernels step through every degree below."""
    kind = d.op.split(".")[2]
    if "n_scalar" in kind:
        return {"x": d.tensor(), "n": d.rng.randint(-1, 12)}
    if "x_scalar" in kind:
        x, degrees = d.number(), d.tensor()
    else:
        x, degrees = d.tensor(), d.tensor()
    small = degrees if degrees.dtype == torch.bool else degrees.clamp(max=12)
    return {"x": x, "n": small}
