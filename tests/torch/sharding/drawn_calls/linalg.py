"""Linear algebra over batches of matrices, and Fourier transforms.

Matrices are far from singular, so that a difference of rounding stays one.
"""

import torch

from .drawer import broadcasts
from .families import family

_REALS = (torch.float64, torch.float32)


def _batch(d):
    return d.shape(d.rng.choice((0, 1, 1, 2)))


def _sides(d):
    return d.rng.randint(1, 4), d.rng.randint(1, 4)


def regular(d, batch, n, dtype):
    """Returns square matrices whose diagonal outweighs the rest."""
    noise = d.values((*batch, n, n), torch.float64) / 8
    steps = torch.arange(1, n + 1, dtype=torch.float64)
    return (noise + torch.diag(steps * (n + 2))).to(dtype)


def positive(d, batch, n, dtype):
    """Returns symmetric matrices with distinct positive eigenvalues."""
    made = regular(d, batch, n, torch.float64)
    return (made + made.mT).to(dtype)


def _given(d, matrices, **more):
    return {"self": matrices, "input": matrices, "A": matrices} | more


@family("linalg_cholesky", "linalg_cholesky_ex", "cholesky", "_linalg_eigh",
        "linalg_eigh", "linalg_eigvalsh")  # fmt: skip
def of_positive_matrices(d):
    dtype = d.rng.choice(_REALS)
    made = positive(d, _batch(d), d.rng.randint(1, 4), dtype)
    return _given(d, made, UPLO=d.rng.choice("LU"), check_errors=False)


@family("linalg_inv", "linalg_inv_ex", "inverse", "_linalg_det", "linalg_det", "det",
        "logdet", "_linalg_slogdet", "linalg_slogdet", "slogdet", "linalg_eig",
        "linalg_eigvals", "linalg_matrix_exp", "matrix_exp", "linalg_lu_factor",
        "linalg_lu_factor_ex", "linalg_lu")  # fmt: skip
def of_square_matrices(d):
    dtype = d.rng.choice(_REALS)
    made = regular(d, _batch(d), d.rng.randint(1, 4), dtype)
    if "exp" in d.base:
        made = made / 8
    return _given(d, made, pivot=True, check_errors=False)


@family("_linalg_svd", "linalg_svd", "linalg_svdvals", "linalg_qr", "geqrf")
def of_any_matrices(d):
    m, n = _sides(d)
    batch, dtype = _batch(d), d.rng.choice(_REALS)
    square = regular(d, batch, max(m, n), dtype)
    return _given(d, square[..., :m, :n].contiguous(), driver=None) | {
        "mode": d.rng.choice(("reduced", "complete", "r"))
    }


@family("linalg_pinv")
def pseudo_inverse(d):
    m, n = _sides(d)
    batch, dtype = _batch(d), d.rng.choice(_REALS)
    hermitian = d.chance(0.3)
    if hermitian:
        made = positive(d, batch, n, dtype)
    else:
        made = regular(d, batch, max(m, n), dtype)[..., :m, :n].contiguous()
    if d.op.endswith(("float", "float_out")):
        atol, rtol = 1e-6, 1e-6
    else:
        atol, rtol = (torch.full(s, 1e-6, dtype=dtype) for s in (batch, batch[1:]))
    given = {"self": made, "atol": atol, "rtol": rtol, "hermitian": hermitian}
    if d.chance(0.15):
        given["self"] = made[..., :0, :0] if hermitian else made[..., :0]
    return given | {"rcond": rtol if "rcond_tensor" in d.op else 1e-6}


@family("cholesky_inverse", "cholesky_solve")
def by_cholesky(d):
    batch, n, dtype = _batch(d), d.rng.randint(1, 4), d.rng.choice(_REALS)
    upper = d.chance(0.5)
    factor = torch.linalg.cholesky(positive(d, batch, n, dtype), upper=upper)
    if d.base == "cholesky_inverse":
        return {"self": factor, "upper": upper}
    right = d.tensor((*batch, n, d.rng.randint(1, 3)), dtype)
    return {"self": right, "input2": factor, "upper": upper}


def _right_side(d, batch, n, dtype, left):
    r = d.rng.randint(1, 3)
    return d.tensor((*batch, n, r) if left else (*batch, r, n), dtype)


@family("linalg_solve", "_linalg_solve_ex")
def solve(d):
    batch, n, dtype = _batch(d), d.rng.randint(1, 4), d.rng.choice(_REALS)
    left = d.chance(0.7)
    right = _right_side(d, batch, n, dtype, left)
    if left and d.chance(0.3):
        right = d.tensor((*batch, n), dtype)
    matrices = regular(d, batch, n, dtype)
    return {"A": matrices, "B": right, "left": left, "check_errors": False}


@family("linalg_lstsq")
def least_squares(d):
    m, n = _sides(d)
    batch, dtype = _batch(d), d.rng.choice((*_REALS, torch.complex128))
    made = regular(d, batch, max(m, n), dtype)[..., :m, :n].contiguous()
    right = d.tensor((*batch, m, d.rng.randint(1, 3)), dtype)
    if d.chance(0.3):
        right = d.tensor((*batch, m), dtype)
    driver = d.rng.choice((None, "gels", "gelsy", "gelsd", "gelss"))
    return {"self": made, "b": right, "rcond": None, "driver": driver}


@family("linalg_solve_triangular", "triangular_solve")
def triangular(d):
    batch, n, dtype = _batch(d), d.rng.randint(1, 4), d.rng.choice(_REALS)
    left, upper = d.chance(0.7) or "linalg" not in d.base, d.chance(0.5)
    made = regular(d, batch, n, dtype)
    made = made.triu() if upper else made.tril()
    right = _right_side(d, batch, n, dtype, left)
    if d.base == "triangular_solve":
        return {"self": right, "A": made, "upper": upper}
    return {"self": made, "B": right, "upper": upper, "left": left}


@family("linalg_lu_solve")
def lu_solve(d):
    batch, n, dtype = _batch(d), d.rng.randint(1, 4), d.rng.choice(_REALS)
    factors, pivots = torch.linalg.lu_factor(regular(d, batch, n, dtype))
    left = d.chance(0.7)
    right = _right_side(d, batch, n, dtype, left)
    return {"LU": factors, "pivots": pivots, "B": right, "left": left}


@family("linalg_ldl_factor", "linalg_ldl_factor_ex", "linalg_ldl_solve")
def ldl(d):
    batch, n, dtype = _batch(d), d.rng.randint(1, 4), d.rng.choice(_REALS)
    made = positive(d, batch, n, dtype)
    if "solve" not in d.base:
        return {"self": made, "check_errors": False}
    factors, pivots = torch.linalg.ldl_factor(made)
    right = _right_side(d, batch, n, dtype, True)
    return {"LD": factors, "pivots": pivots, "B": right, "hermitian": False}


@family("linalg_householder_product", "orgqr", "ormqr")
def of_reflectors(d):
    n = d.rng.randint(1, 3)
    m = n + d.rng.randint(0, 2)
    batch, dtype = _batch(d), d.rng.choice(_REALS)
    made = regular(d, batch, m, dtype)[..., :n].contiguous()
    reflectors, scales = torch.geqrf(made)
    given = {"self": reflectors, "input": reflectors}
    if d.base != "ormqr":
        return given | {"tau": scales, "input2": scales}
    left = d.chance(0.7)
    right = _right_side(d, batch, m, dtype, left)
    return given | {"input2": scales, "input3": right, "left": left}


@family("linalg_matrix_power", "matrix_power")
def matrix_power(d):
    dtype = d.rng.choice(_REALS)
    made = regular(d, _batch(d), d.rng.randint(1, 3), dtype)
    return {"self": made, "n": d.rng.randint(-2, 3)}


@family("_cdist_backward")
def cdist_backward(d):
    dtype = d.rng.choice(_REALS)
    batch, p, r, m = d.shape(d.rng.randint(0, 1)), d.size(1), d.size(1), d.size(1, 4)
    one = d.tensor((*batch, p, m), dtype).contiguous()
    other = d.tensor((*batch, r, m), dtype).contiguous() + 0.125
    power = d.rng.choice((1.0, 2.0))
    distances = torch.cdist(one, other, power)
    grad = d.tensor(distances.shape, dtype).contiguous()
    return {"grad": grad, "x1": one, "x2": other, "p": power, "cdist": distances}


def _complex(d):
    return d.rng.choice((torch.complex128, torch.complex64))


@family("_fft_c2c", "_fft_r2c", "_fft_c2r")
def fft_kernel(d):
    shape = d.shape(d.rng.randint(1, 3), 1)
    dtype = d.rng.choice(_REALS) if d.base == "_fft_r2c" else _complex(d)
    dims = d.dims(len(shape), d.rng.randint(1, len(shape)))
    # The kernels do not count from the end, or transform both halves at once.
    dims = [dim % len(shape) for dim in dims]
    last = shape[dims[-1]]
    return {
        "self": d.tensor(shape, dtype),
        "dim": dims,
        "normalization": d.rng.randint(0, 2),
        "forward": d.chance(0.5),
        "onesided": d.chance(0.8) or len(dims) > 1,
        "last_dim_size": max(2 * (last - 1) + d.rng.randint(0, 1), 1),
    }


_ONE = ("fft_fft", "fft_ifft", "fft_rfft", "fft_irfft", "fft_hfft", "fft_ihfft")


@family(*_ONE)
def fft(d):
    shape = d.shape(d.rng.randint(1, 3), 1)
    dim = d.dim(len(shape))
    least = 2 if d.base in ("fft_irfft", "fft_hfft") else 1
    n = d.rng.randint(least, 7) if d.chance(0.5) or shape[dim] < least else None
    return {"self": _signal(d, shape), "n": n, "dim": dim, "norm": _norm(d)}


@family(*(name + "2" for name in _ONE), *(name + "n" for name in _ONE))
def fft_of_dims(d):
    least = 2 if d.base.startswith(("fft_irfft", "fft_hfft")) else 1
    shape = d.shape(d.rng.randint(2, 3), least)
    dims = d.dims(len(shape), d.rng.randint(1, len(shape)))
    if d.base.endswith("2") and d.chance(0.5):
        dims = [-2, -1]
    sizes = [d.rng.choice((-1, d.rng.randint(least, 6))) for _ in dims]
    return {
        "self": _signal(d, shape),
        "s": sizes if d.chance(0.4) else None,
        "dim": dims if d.base.endswith("2") or d.chance(0.7) else None,
        "norm": _norm(d),
    }


def _signal(d, shape):
    of_reals = any(kind in d.base for kind in ("rfft", "ihfft"))
    of_reals = of_reals and "irfft" not in d.base
    choices = _REALS if of_reals else (*_REALS, _complex(d))
    return d.tensor(shape, d.rng.choice(choices))


def _norm(d):
    return d.rng.choice((None, "forward", "backward", "ortho"))


@family("complex", "polar")
def complex_of_two(d):
    shape, dtype = d.related_shape(widest=True), d.rng.choice(_REALS)
    one, other = (d.tensor(broadcasts(d.rng, shape), dtype) for _ in range(2))
    return {"real": one, "imag": other, "abs": one.abs(), "angle": other}


@family("_conj", "imag", "view_as_real", "view_as_real_copy", "conj", "resolve_conj",
        "real", "_conj_physical", "conj_physical")  # fmt: skip
def of_complex(d):
    return {"self": d.tensor(d.main_shape, _complex(d))}


@family("view_as_complex", "view_as_complex_copy")
def pairs(d):
    x = d.tensor((*d.shape(d.rng.randint(0, 2)), 2), d.rng.choice(_REALS))
    return {"self": x.contiguous()}
