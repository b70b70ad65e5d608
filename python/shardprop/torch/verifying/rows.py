"""A value may have its rows on the ranks in another order than the reference."""

import itertools
import math
from typing import Optional

import torch

from .layouts import Fit
from .ranks import Ranks

# Larger tables of row distances are not computed (elements).
LARGEST_TABLE = 1 << 24


def fit_rows(ranks: Ranks) -> Optional[Fit]:
    """Returns a fit in which the ranks along some mesh dims hold rows of a tensor
    dim in another order, or a single holder does."""
    dims = [
        dim
        for dim, size in enumerate(ranks.grid.sizes)
        if size > 1 and not ranks.only[dim]
    ]
    layouts = [
        placements
        for placements in ranks.options()
        if not any(p[0] == "P" for p in placements)
    ]
    for count in range(min(len(dims), 1), len(dims) + 1):
        for at in itertools.combinations(dims, count):
            for placements in layouts:
                if any(placements[dim] != "R" for dim in at):
                    continue
                for tensor_dim in range(ranks.reference.dim()):
                    rows = _rows(ranks, placements, list(at), tensor_dim)
                    if rows is not None:
                        named = list(placements)
                        for dim in at:
                            named[dim] = f"rows({tensor_dim})"
                        return Fit(tuple(named), 1.0, rows)
    return None


def _rows(ranks: Ranks, placements, at: "list[int]", tensor_dim: int):
    """Returns the rows of each rank along a tensor dim, if the ranks along the mesh
    dims `at` hold each row, but not each of them all rows."""
    found: "dict[int, tuple[int, ...]]" = {}
    for rank in ranks.values:
        if rank in found:
            continue
        peers = ranks.peers(rank, at)
        expected = ranks.part_of(ranks.reference, placements, rank)
        shapes = [ranks.values[peer].shape for peer in peers]
        if any(len(shape) != expected.dim() for shape in shapes):
            return None
        size = expected.shape[tensor_dim]
        own_sizes = [shape[tensor_dim] for shape in shapes]
        if sum(own_sizes) < size or (len(peers) > 1 and min(own_sizes) >= size):
            return None
        uses = torch.zeros(size)
        bounds = ranks.bounds(placements)[rank]
        for peer in peers:
            own = _row_indices(
                ranks.values[peer], expected, bounds, tensor_dim, uses
            )
            if own is None:
                return None
            found[peer] = own
        if size and float(uses.min()) == 0:
            return None
    return found


def reordered(ranks: Ranks) -> "Optional[tuple[tuple[str, ...], int, tuple[int, ...]]]":
    """Returns the layout, the tensor dim and the rows of the first rank if each rank
    holds all rows of its part in another order."""
    for placements in ranks.options():
        parts = ranks.parts(placements)
        if any(p[0] == "P" for p in placements) or parts is None:
            continue
        for dim in range(ranks.reference.dim()):
            found = [
                _row_indices(
                    ranks.values[rank], expected, ranks.bounds(placements)[rank],
                    dim, torch.zeros(expected.shape[dim]),
                )
                for rank, expected in parts.items()
            ]
            if found and all(found):
                return placements, dim, found[0]
    return None


def agrees_in_rows(ranks: Ranks, fit: Fit) -> bool:
    """Returns whether the ranks hold the rows of a fit with rows(d)."""
    dim = next(int(p[5:-1]) for p in fit.placements if p.startswith("rows"))
    for rank, value in ranks.values.items():
        rows = None if fit.rows is None else fit.rows.get(rank)
        if rows is None:
            return False
        chosen = torch.tensor(rows, dtype=torch.long)
        expected, bounds = (
            ranks.part_of(full, fit.placements, rank).index_select(dim, chosen)
            for full in (ranks.reference, ranks.noise.bounds)
        )
        if expected.shape != value.shape:
            return False
        if not ranks.is_near(value, expected, bounds):
            return False
    return True


def _row_indices(
    value, expected, bounds, dim: int, uses: torch.Tensor
) -> "Optional[tuple[int, ...]]":
    """Returns the rows of `expected` that a value has, and counts their uses. If
    rows are equal, it takes the one that other ranks use least."""
    if any(
        a != b
        for d, (a, b) in enumerate(zip(value.shape, expected.shape))
        if d != dim
    ):
        return None
    if value.numel() == 0:
        return () if value.shape[dim] == 0 else None
    mine = value.movedim(dim, 0).reshape(value.shape[dim], -1)
    theirs = expected.movedim(dim, 0).reshape(expected.shape[dim], -1)
    if mine.numel() * theirs.shape[0] > LARGEST_TABLE or mine.shape[1] == 0:
        return None
    rows: "list[int]" = []
    bounds = bounds.movedim(dim, 0).reshape(theirs.shape)
    for row in mine:
        apart = (theirs - row).abs()
        distance, near = apart.amax(-1), (apart <= bounds).all(-1)
        # A rank holds a row only once.
        near[rows] = False
        if not bool(near.any()):
            return None
        rank = torch.where(near, uses, math.inf)
        least = rank == rank.min()
        index = int(torch.where(least, distance, math.inf).argmin())
        uses[index] += 1
        rows.append(index)
    return tuple(rows)
