"""full_values() assembles the full tensors that DTensors state."""

import math
from typing import Any, Optional

import torch
from torch.distributed.tensor import Partial
from torch.distributed.tensor.placement_types import _StridedShard

from ... import _core
from .seen import Seen, Stated


def _text(placement) -> str:
    if isinstance(placement, _StridedShard):
        return f"SS({placement.dim},{placement.split_factor})"
    if hasattr(placement, "dim"):
        return f"S({placement.dim})"
    return "R"


def text_of(stated: Stated) -> str:
    """Returns a stated layout in our notation."""
    texts = []
    for placement in stated.placements:
        if isinstance(placement, Partial):
            texts.append(f"P({placement.reduce_op})")
        else:
            texts.append(_text(placement))
    names = stated.mesh_dims or tuple(f"dim {i}" for i in range(len(texts)))
    return ",".join(texts) + " on " + ",".join(names)


class CannotAssemble(Exception):
    """CannotAssemble says why no full tensor exists for a stated layout."""


def full_values(seen: "dict[int, Seen]") -> "dict[int, torch.Tensor]":
    """Returns the value of each rank; for a DTensor, the full tensor that it states.

    Over mesh dims that a DTensor states as replicated, each rank uses its own part, so
    that ranks that differ remain visible.
    """
    #: Ranks that differ only in dims of shards and of terms have one full tensor.
    made: "dict[Any, torch.Tensor]" = {}
    result = {}
    for rank, held in seen.items():
        if held.stated is None:
            result[rank] = held.tensor
            continue
        own = _place(rank, held.stated)
        replicated = [
            index for index, p in zip(own, held.stated.placements) if _text(p) == "R"
            and not isinstance(p, Partial)
        ]
        layout = held.stated.ranks.tolist(), held.stated.placements
        key = str((layout, held.stated.shape, replicated))
        if key not in made:
            made[key] = _full(rank, own, held.stated, seen)
        result[rank] = made[key]
    return result


def _place(rank: int, stated: Stated) -> "list[int]":
    """Returns the coordinate of a rank in the mesh of its DTensor."""
    at = (stated.ranks == rank).nonzero()
    if at.shape[0] != 1:
        raise CannotAssemble("the rank is not in the mesh of its DTensor")
    return at[0].tolist()


def _full(
    rank: int, own: "list[int]", stated: Stated, seen: "dict[int, Seen]"
) -> torch.Tensor:
    mesh = stated.ranks
    texts = [_text(p) for p in stated.placements]
    sizes = list(mesh.shape)
    grid = ",".join(f"d{i}={size}" for i, size in enumerate(sizes))
    reductions = {
        dim: p.reduce_op
        for dim, p in enumerate(stated.placements)
        if isinstance(p, Partial)
    }
    unknown = set(reductions.values()) - {"sum", "avg", "max", "min", "product"}
    if unknown or any(type(p).__name__ == "_MaskPartial" for p in stated.placements):
        raise CannotAssemble("a partial that is no sum, avg, max, min or product")
    if len(set(reductions.values()) - {"sum", "avg"}) and len(reductions) > 1:
        raise CannotAssemble("partials of several kinds")
    dtype = seen[rank].tensor.dtype
    shards = [dim for dim, text in enumerate(texts) if text.startswith("S")]
    terms = []
    for place in _places(sizes, own, list(reductions)):
        full = torch.zeros(stated.shape, dtype=dtype)
        count = 0
        for coordinate in _places(sizes, place, shards):
            other = int(mesh[tuple(coordinate)])
            if other not in seen:
                raise CannotAssemble(f"rank {other} has no such value")
            index = 0
            for c, size in zip(coordinate, sizes):
                index = index * size + c
            intervals = _core.local_region(
                grid, list(stated.shape), "f32", ",".join(texts), index
            )
            count += _put(full, intervals, seen[other].tensor, other, stated)
        if count != full.numel():
            raise CannotAssemble("the shards do not cover the tensor")
        terms.append(full)
    result = terms[0]
    kind = next(iter(reductions.values()), "sum")
    for term in terms[1:]:
        if kind in ("max", "min"):
            result = getattr(torch, f"{kind}imum")(result, term)
        elif kind == "product":
            result = result * term
        else:
            result = result + term
    averaged = [sizes[dim] for dim, each in reductions.items() if each == "avg"]
    return result / math.prod(averaged) if averaged else result


def _places(sizes, at, dims):
    """Returns the coordinates that differ from `at` in the mesh dims `dims`."""
    places = [list(at)]
    for dim in dims:
        places = [
            place[:dim] + [index] + place[dim + 1:]
            for place in places
            for index in range(sizes[dim])
        ]
    return places


def _put(full, intervals, local: torch.Tensor, rank: int, stated: Stated) -> int:
    """Writes a rank's shard into the full tensor, and returns its elements."""
    lengths = [sum(b - a for a, b in pieces) for pieces in intervals]
    if lengths != list(local.shape):
        raise CannotAssemble(
            f"rank {rank} holds {list(local.shape)}, its layout {text_of(stated)} of "
            f"{list(stated.shape)} says {lengths}"
        )
    if local.numel() == 0:
        return 0
    indices = [
        torch.cat([torch.arange(a, b) for a, b in pieces]) for pieces in intervals
    ]
    if indices:
        full[torch.meshgrid(*indices, indexing="ij")] = local
    else:
        full.copy_(local)
    return local.numel()


def first_stated(seen: "dict[int, Seen]") -> Optional[Stated]:
    return next((own.stated for own in seen.values() if own.stated), None)
