"""Samples arguments by the type and name that a schema gives them.

A family of operators first samples the arguments that need more precision
(families). This module samples all others, and torch decides whether the call
is valid.
"""

import torch

_LEFT_OUT = ("Layout", "Device", "Generator", "Stream", "Storage")
_LEFT_OUT_NAMES = ("pin_memory", "non_blocking", "sparse_grad", "generator")
_TEXTS = {
    "reduce": ("sum", "prod", "mean", "amax", "amin"),
    "rounding_mode": (None, "trunc", "floor"),
    "approximate": ("none", "tanh"),
    "mode": ("reduced", "complete"),
    "UPLO": ("L", "U"),
    "side": ("left", "right"),
}
_DIM_NAMES = (
    "dim",
    "dim0",
    "dim1",
    "axis",
    "axis0",
    "axis1",
    "dim_",
    "start_dim",
    "end_dim",
    "dimension",
    "source",
    "destination",
)
_DIM_LIST_NAMES = ("dim", "dims", "axes")
_TRUTHS = ("condition", "mask")
_INDICES = ("index", "indices")
_PROBABILITIES = ("p", "dropout_p", "dropout")
_SMALL = {"eps": 1e-5, "momentum": 0.1, "threshold": 0.5, "lambd": 0.5}


def _first_tensor(d):
    for value in d.given.values():
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
            return value[0]
    return None


def _tensor(d, argument):
    written = argument.alias_info is not None and argument.alias_info.is_write
    shape = d.related_shape(widest=written)
    if argument.name in _TRUTHS:
        return d.tensor(shape, torch.bool)
    if argument.name in _INDICES:
        first = _first_tensor(d)
        bound = max(first.shape, default=1) if first is not None else 4
        return d.index(shape, max(bound, 1))
    return d.tensor(shape)


def _int(d, name, first):
    rank = 0 if first is None else first.dim()
    if name in _DIM_NAMES:
        return d.dim(rank)
    size = 4
    if first is not None and first.dim():
        dim = d.given.get("dim", 0)
        size = first.shape[dim] if isinstance(dim, int) else 4
    if name in ("start", "end", "storage_offset"):
        return d.rng.randint(-size - 1, size + 1)
    if name == "index":
        return d.dim(size)
    if name == "k":
        return d.rng.randint(0, size)
    if name in ("step", "dilation", "groups", "n", "chunks", "split_size"):
        return d.rng.randint(1, 3)
    return d.rng.randint(-3, 4)


def _ints(d, name, first):
    rank = 0 if first is None else first.dim()
    if name in _DIM_LIST_NAMES:
        # A 0-d tensor takes the dims 0 and -1 as well.
        if rank == 0 and d.chance(0.5):
            return [d.rng.choice((0, -1))]
        return d.dims(rank)
    if name in ("size", "output_size", "sizes"):
        return list(d.shape())
    return [d.rng.randint(-1, 3) for _ in range(d.rng.randint(0, rank + 1))]


def _list_length(d):
    """Returns the length of the tensor lists sampled so far, to sample one
    number for each tensor."""
    lists = [value for value in d.given.values() if isinstance(value, list)]
    return len(lists[0]) if lists else d.rng.randint(1, 3)


def draw_argument(d, argument):
    """Returns a value, or None if the argument is optional and left out."""
    kind = str(argument.real_type)
    optional = kind.startswith("Optional[")
    kind = kind.removeprefix("Optional[").removesuffix("]") if optional else kind
    name, first = argument.name, _first_tensor(d)
    if kind in _LEFT_OUT or name in _LEFT_OUT_NAMES:
        return None
    if (optional or argument.has_default_value()) and d.chance(0.4):
        return None
    if kind == "Tensor":
        return _tensor(d, argument)
    if kind in ("List[Tensor]", "List[Optional[Tensor]]"):
        # Kernels trust that lists are of one length.
        return [_tensor(d, argument) for _ in range(_list_length(d))]
    if kind == "ScalarType":
        return d.any_dtype()
    if kind == "MemoryFormat":
        return d.rng.choice((torch.preserve_format, torch.contiguous_format))
    if kind == "bool":
        return d.chance(0.5)
    if kind in ("int", "SymInt"):
        return _int(d, name, first)
    if kind.startswith(("List[int", "List[SymInt")):
        return _ints(d, name, first)
    if kind == "float":
        if name in _PROBABILITIES:
            return d.rng.choice((0.0, 0.5))
        return _SMALL.get(name, d.rng.choice((-1.5, 0.0, 0.5, 1.0, 2.25)))
    if kind == "List[float":
        return [d.rng.choice((0.5, 1.0, 2.0)) for _ in range(d.rng.randint(1, 3))]
    if kind == "number":
        return d.number()
    if kind == "List[number]":
        # All of one type: programs hold no others.
        count = _list_length(d)
        if d.chance(0.5):
            return [d.rng.randint(-3, 4) for _ in range(count)]
        return [d.rng.choice((-1.5, -0.25, 0.5, 2.0)) for _ in range(count)]
    if kind == "str":
        return d.rng.choice(_TEXTS.get(name, ("",)))
    return None
