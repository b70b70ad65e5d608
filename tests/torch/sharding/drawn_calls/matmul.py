"""Products: dims that must agree share a letter.

"mk,kn"     self has shape [m, k], mat2 [k, n]
"?mn"       any shape that broadcasts to [m, n]
"""

import math

import torch

import cuda_product_kernels  # noqa: F401  (CPU stand-ins for CUDA's kernels)

from .drawer import broadcasts
from .families import family

_SHAPES = {
    "mm": {"self": "mk", "mat2": "kn"},
    "bmm": {"self": "bmk", "mat2": "bkn"},
    "baddbmm": {"self": "?bmn", "batch1": "bmk", "batch2": "bkn"},
    "addbmm": {"self": "?mn", "batch1": "bmk", "batch2": "bkn"},
    "addmm": {"self": "?mn", "mat1": "mk", "mat2": "kn"},
    "_addmm_activation": {"self": "?mn", "mat1": "mk", "mat2": "kn"},
    "addmv": {"self": "?m", "mat": "mk", "vec": "k"},
    "addr": {"self": "?mn", "vec1": "m", "vec2": "n"},
    "mv": {"self": "mk", "vec": "k"},
    "dot": {"self": "k", "tensor": "k"},
    "vdot": {"self": "k", "other": "k"},
    "outer": {"self": "m", "vec2": "n"},
    "ger": {"self": "m", "vec2": "n"},
}


def _tensors(d, notation, *, in_place):
    sizes = {letter: d.size() for letter in "bmkn"}
    tensors = {}
    for name, letters in notation.items():
        shape = tuple(sizes[letter] for letter in letters.lstrip("?"))
        if letters[0] == "?" and not in_place:
            shape = broadcasts(d.rng, shape)
        tensors[name] = d.tensor(shape)
    return tensors


def _register(base, notation):
    @family(base)
    def product(d):
        if ".dtype" in d.op:
            d.main_dtype, d.mixed = d.rng.choice((torch.bfloat16, torch.float16)), False
        given = _tensors(d, notation, in_place=d.base.endswith("_"))
        return given | {"out_dtype": torch.float32, "alpha": 1, "beta": 1}


for _base, _notation in _SHAPES.items():
    _register(_base, _notation)


@family("matmul")
def matmul(d):
    m, k, n = d.size(), d.size(), d.size()
    batch = d.shape(d.rng.randint(0, 2)) if d.chance(0.6) else ()
    left = (*batch, m, k) if d.chance(0.8) else (k,)
    right = (*broadcasts(d.rng, batch), k, n) if d.chance(0.8) else (k,)
    return {"self": d.tensor(left), "other": d.tensor(right)}


@family("linear")
def linear(d):
    k, n = d.size(1), d.size()
    batch = d.shape(d.rng.choice((0, 1, 1, 2)))
    given = {"input": d.tensor((*batch, k)), "weight": d.tensor((n, k))}
    if d.chance(0.2):
        given["weight"] = d.tensor((k,))
        n = None
    given["bias"] = d.tensor(() if n is None else (n,)) if d.chance(0.5) else None
    return given


@family("einsum")
def einsum(d):
    equation = d.rng.choice(
        ("ij,jk->ik", "bij,bjk->bik", "ij->ji", "bij->jbi", "ij,ij->i", "i,j->ij")
    )
    sizes = {letter: d.size(1) for letter in "bijk"}
    operands = equation.split("->")[0].split(",")
    return {
        "equation": equation,
        "tensors": [d.tensor([sizes[c] for c in o]) for o in operands],
    }


@family("cdist", "_cdist_forward")
def cdist(d):
    k = d.size(1)
    return {
        "x1": d.tensor((d.size(), k)),
        "x2": d.tensor((d.size(), k)),
        "p": d.rng.choice((1.0, 2.0)),
        "compute_mode": None,
    }


@family("_euclidean_dist")
def euclidean_dist(d):
    dtype, k = d.rng.choice((torch.float64, torch.float32)), d.size()
    batch = d.shape(d.rng.randint(0, 2))
    one, other = (broadcasts(d.rng, batch) for _ in range(2))
    return {
        "x1": d.tensor((*one, d.size(), k), dtype),
        "x2": d.tensor((*other, d.size(), k), dtype),
    }


@family("tril", "triu")
def triangle(d):
    return {
        "self": d.tensor(d.shape(d.rng.randint(2, 3))),
        "diagonal": d.rng.randint(-3, 3),
    }


@family("cross", "linalg_cross")
def cross(d):
    shape = list(d.shape(d.rng.randint(1, 3), 1))
    dim = d.rng.randrange(len(shape))
    shape[dim] = 3
    one, other = (
        [1 if at != dim and d.chance(0.2) else n for at, n in enumerate(shape)]
        for _ in range(2)
    )
    return {"self": d.tensor(one), "other": d.tensor(other), "dim": dim}


@family("linalg_vector_norm")
def vector_norm(d):
    x = d.tensor()
    return {
        "self": x,
        "ord": d.rng.choice((0, 1, 2, 2.0, 3.5, -1, float("inf"), -float("inf"))),
        "dim": d.dims(x.dim()) or None,
        "dtype": None,
    }


@family("diag_embed")
def diag_embed(d):
    dims = d.rng.choice(((-2, -1), (0, 1), (1, 0), (0, -1)))
    x = d.tensor(d.shape(d.rng.randint(1, 3)))
    return {"self": x, "offset": d.rng.randint(-2, 2), "dim1": dims[0], "dim2": dims[1]}


@family("trace", "diagonal", "linalg_diagonal")
def square(d):
    given = {"self": d.tensor(d.shape(2))}
    return given if d.base == "trace" else given | {"dim1": -2, "dim2": -1}


@family("tril_indices", "triu_indices")
def triangle_indices(d):
    return {
        "row": d.size(),
        "col": d.size(),
        "offset": d.rng.randint(-2, 2),
        "dtype": d.rng.choice((torch.int64, torch.int32)),
    }


@family("_int_mm")
def int_mm(d):
    m, k, n = d.size(1), d.size(1), d.size(1)
    a, b = (d.tensor(shape, torch.int8) for shape in ((m, k), (k, n)))
    written = torch.zeros((m, n), dtype=torch.int32)
    return {"self": a, "mat2": b, "out": written}


@family("_weight_int8pack_mm")
def int8_weights(d):
    m, k, n = d.size(1), 16 * d.rng.randint(1, 6), d.size(1)
    dtype = d.rng.choice((torch.bfloat16, torch.float32))
    return {
        "self": d.tensor((m, k), dtype).contiguous(),
        "mat2": d.tensor((n, k), torch.int8).contiguous(),
        "scales": d.tensor((n,), dtype).contiguous(),
    }


def _scaled(d):
    """Returns how the operands are scaled, and the arguments of `_scaled_mm`."""
    m, k, n = (16 * d.rng.randint(1, 4) for _ in range(3))
    f8 = torch.float8_e4m3fn
    how = d.rng.choice(("one", "lines", "runs", "squares of a", "squares of b"))
    if how not in ("one", "lines"):
        # Mostly whole blocks of 128.
        k = 128 * d.rng.randint(1, 4) + (16 if d.chance(0.2) else 0)
        m = 128 * d.rng.randint(1, 3) if how == "squares of a" else m
        n = 128 * d.rng.randint(1, 3) if how == "squares of b" else n
    blocks = math.ceil(k / 128)
    scales = {
        "one": ((), ()),
        "lines": ((m, 1), (1, n)),
        "runs": ((m, blocks), (blocks, n)),
        "squares of a": ((math.ceil(m / 128), blocks), (blocks, n)),
        "squares of b": ((m, blocks), (blocks, math.ceil(n / 128))),
    }[how]
    a, b = (d.integers(s, 1, 4) / 2 for s in scales)
    return how, {
        "self": d.tensor((m, k), f8).contiguous(),
        "mat2": d.tensor((n, k), f8).contiguous().t(),
        "scale_a": a,
        "scale_b": b,
        "bias": None,
        "scale_result": None,
        "out_dtype": d.rng.choice((torch.bfloat16, torch.float32)),
        "use_fast_accum": False,
    }


@family("_scaled_mm")
def scaled_mm(d):
    return _scaled(d)[1]


# The recipes of both operands, as torch.nn.functional.ScalingType numbers them.
_RECIPES = {
    "one": (0, 0),
    "lines": (1, 1),
    "runs": (4, 4),
    "squares of a": (5, 4),
    "squares of b": (4, 5),
}


def _swizzle(d, given):
    """Gives both operands swizzled scales of blocks of 32 elements of a row."""
    sizes = given["self"].shape[0], given["mat2"].shape[1]
    tiles = math.ceil(math.ceil(given["self"].shape[1] / 32) / 4)
    for operand, lines in zip("ab", sizes, strict=True):
        count = math.ceil(lines / 128) * tiles * 512
        powers = d.integers((count,), 0, 2).float().exp2()
        given["scale_" + operand] = [powers.to(torch.float8_e8m0fnu)]
        given["recipe_" + operand] = [3]
        given["swizzle_" + operand] = [1]


@family("_scaled_mm_v2")
def scaled_mm_v2(d):
    how, given = _scaled(d)
    del given["scale_result"]
    for operand, recipe in zip("ab", _RECIPES[how], strict=True):
        given["scale_" + operand] = [given["scale_" + operand]]
        given["recipe_" + operand] = [recipe]
        given["swizzle_" + operand] = [0]
    if how == "lines" and d.chance(0.5):
        _swizzle(d, given)
    return given | {"contraction_dim": []}


@family("_grouped_mm")
def grouped_mm(d):
    groups, m, k, n = d.rng.randint(1, 4), d.size(1), 8, 8
    k, n = (size * d.rng.randint(1, 3) for size in (k, n))
    of_a, of_b = (d.rng.choice((2, 3)) for _ in range(2))
    a = (groups, m, k) if of_a == 3 else (m, k)
    b = (groups, k, n) if of_b == 3 else (k, n)
    cut = {(2, 3): m, (3, 2): n, (2, 2): k}.get((of_a, of_b))
    ends = None
    if cut is not None:
        ends = sorted(d.rng.randint(0, cut) for _ in range(groups - 1)) + [cut]
        ends = torch.tensor(ends, dtype=torch.int32)
    dtype = torch.bfloat16
    return {
        "self": d.tensor(a, dtype).contiguous(),
        "mat2": d.tensor(b, dtype).contiguous(),
        "offs": ends,
        "bias": None,
        "out_dtype": None,
    }


@family("_trilinear")
def trilinear(d):
    # As the gradients of a bilinear layer call it: [n, o, a, b].
    sizes = dict(zip("noab", (d.size(1, 7) for _ in range(4))))
    terms, out = d.rng.choice(
        ((("na", "oab", "nb"), "no"), (("no", "oab", "nb"), "na"),
         (("no", "na", "nb"), "oab"), (("no", "oab", "na"), "nb"))
    )  # fmt: skip
    dtype = d.rng.choice((torch.float64, torch.float32))
    dims = "noab"
    given = {"sumdim": [i for i, name in enumerate(dims) if name not in out]}
    for k, term in enumerate(terms, 1):
        given[f"i{k}"] = d.tensor([sizes[name] for name in term], dtype)
        given[f"expand{k}"] = [i for i, name in enumerate(dims) if name not in term]
    return given
