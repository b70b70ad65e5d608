"""Placements, and the part of a tensor that each rank of a mesh holds.

Written from the definition (uneven shards as torch.chunk, nested cuts in shard
order, strided shards as chunks of chunks), not from the library's sources.

    regions(("S(0)", "S(0)"), (2, 2), (5, 3))[1]   # rows [2, 3): ((2, 3),), None
"""

import functools
import itertools
import math
import re
from typing import NamedTuple

import torch

_NOTATION = re.compile(
    r"(?P<kind>R|S|SS|P)(?:\((?P<first>\w+)(?:,(?P<second>\w+))?\))?(?:@(?P<place>\d+))?"
)


class Placement(NamedTuple):
    kind: str  # R, S or P
    dim: int = 0  # of S
    pieces: int = 1  # of S: chunks the dim is cut into before it is sharded
    op: str = ""  # of P
    place: int | None = None  # among the cuts of its dim


@functools.cache
def parse(entry):
    """Parses one entry of the notation: S(0), SS(1,4), S(0)@1, R, P(sum)."""
    match = _NOTATION.fullmatch(entry)
    if match is None:
        raise ValueError(f"no placement: {entry}")
    kind, first, second, place = match.group("kind", "first", "second", "place")
    place = None if place is None else int(place)
    if kind == "R":
        return Placement("R")
    if kind == "P":
        return Placement("P", op=first)
    return Placement("S", int(first), int(second or 1), place=place)


@functools.cache
def coordinates(mesh):
    """Returns the coordinate of every rank, in mesh order."""
    return tuple(itertools.product(*map(range, mesh)))


def _chunk(indices, parts, index):
    size = math.ceil(len(indices) / parts)
    return indices[index * size : (index + 1) * size]


def _cut(indices, pieces, parts, index):
    held = []
    for piece in range(pieces):
        held += _chunk(_chunk(indices, pieces, piece), parts, index)
    return held


def _cuts(layout, dim):
    """(mesh dim, pieces) of each cut of a tensor dim, first cut first."""
    found = []
    for mesh_dim, entry in enumerate(layout):
        placement = parse(entry)
        if placement.kind == "S" and placement.dim == dim:
            place = mesh_dim if placement.place is None else placement.place
            found.append((place, mesh_dim, placement.pieces))
    return [(mesh_dim, pieces) for _, mesh_dim, pieces in sorted(found)]


def _runs(indices):
    """Sorted runs [begin, end) in local order."""
    runs = []
    for index in indices:
        if runs and runs[-1][1] == index:
            runs[-1][1] = index + 1
        else:
            runs.append([index, index + 1])
    return tuple(map(tuple, runs))


@functools.lru_cache(maxsize=100_000)
def regions(layout, mesh, shape):
    """Returns, by rank and tensor dim, the index runs of the shard; None for a
    dim that a rank has in full."""
    cuts = [_cuts(layout, dim) for dim in range(len(shape))]
    held_by = []
    for at in coordinates(mesh):
        region = []
        for dim, size in enumerate(shape):
            held = list(range(size))
            for mesh_dim, pieces in cuts[dim]:
                held = _cut(held, pieces, mesh[mesh_dim], at[mesh_dim])
            region.append(None if len(held) == size else _runs(held))
        held_by.append(tuple(region))
    return tuple(held_by)


def region_shape(region, shape):
    return tuple(
        size if runs is None else sum(end - begin for begin, end in runs)
        for runs, size in zip(region, shape, strict=True)
    )


def _indices(runs):
    return torch.tensor(
        [index for begin, end in runs for index in range(begin, end)],
        dtype=torch.int64,
    )


def take(tensor, region):
    """Returns a rank's part, dense, with dims in the tensor's own order."""
    held = tensor
    for dim, runs in enumerate(region):
        if runs is None:
            continue
        if len(runs) <= 1:
            begin, end = runs[0] if runs else (0, 0)
            held = held.narrow(dim, begin, end - begin)
        else:
            held = held.index_select(dim, _indices(runs))
    return dense_like(held, tensor)


def dense_like(held, tensor):
    """`held` without gaps; dims are nested, or broadcast with stride 0, as those
    of `tensor`."""
    strides = tensor.stride()
    order = sorted(range(held.dim()), key=lambda d: (-strides[d], d))
    shape = held.shape
    broadcast = [d for d in order if strides[d] == 0 and shape[d] > 1]
    for dim in broadcast:
        held = held.narrow(dim, 0, 1)
    nested = held.permute(order).contiguous()
    inverse = [order.index(d) for d in range(len(order))]
    return nested.permute(inverse).expand(shape)


def put(target, region, held):
    """Writes the held part into the whole tensor."""
    if all(runs is None or len(runs) <= 1 for runs in region):
        part = target
        for dim, runs in enumerate(region):
            if runs is not None:
                begin, end = runs[0] if runs else (0, 0)
                part = part.narrow(dim, begin, end - begin)
        part.copy_(held)
        return
    index = []
    for dim, runs in enumerate(region):
        whole = torch.arange(target.size(dim)) if runs is None else _indices(runs)
        index.append(whole.view([-1] + [1] * (len(region) - dim - 1)))
    target[tuple(index)] = held
