"""fit() finds the layout in which the values of the ranks equal a reference tensor.

    layout = fit(Ranks(values, reference, grid, noise, roundoff))    # Fit(("R", "P(sum)"))

`values` has the tensor of each rank. layouts.py lists the placements.
"""

import dataclasses
import itertools
import math
from typing import Optional

from .layouts import Fit, Grid
from .padding import padded, paddings
from .ranks import Ranks
from .rows import fit_rows

# A tensor with fewer elements is a multiple of any other one by chance.
FEW = 4


def fit(ranks: Ranks, any_factor: bool = False) -> Optional[Fit]:
    """Returns a layout in which the values are right.

    With `any_factor` they may be any positive multiple of the reference. Without
    it a factor is accepted only as the number of terms of a mean.
    """
    if not ranks.is_grid:
        return None
    found = _fit_shards(ranks, any_factor) or fit_rows(ranks)
    if found is None and any_factor:
        found = _fit_rows_with_factor(ranks)
    return found or _fit_padded(ranks, any_factor)


def fit_in_groups(ranks: Ranks, any_factor: bool) -> "Optional[tuple[Fit, Grid]]":
    """Returns a layout over groups of ranks within a mesh dim, and the mesh that has
    these groups. An example is heads that some ranks of a mesh dim share."""
    for grid in ranks.grid.divided():
        divided = ranks.on(grid)
        found = _fit_shards(divided, any_factor) if divided.is_grid else None
        if found is not None:
            return found, grid
    return None


def _fit_shards(ranks: Ranks, any_factor: bool) -> Optional[Fit]:
    """Returns a layout without rows and padding."""
    layouts = []
    for placements in ranks.options():
        parts = ranks.parts(placements)
        if parts is None:
            continue
        layouts.append((placements, parts))
        if ranks.agrees(placements, parts):
            return Fit(placements)
    for placements, parts in layouts:
        factor = ranks.factor(placements, parts)
        if not math.isfinite(factor) or factor <= 0:
            continue
        mean = _as_mean(ranks.grid, placements, factor)
        # The factor of a single element is exact for any values of the ranks.
        if mean is not None and ranks.agrees(placements, parts, mean[1]):
            return Fit(mean[0])
        multiple = _multiple(ranks, factor) if any_factor else None
        if multiple is not None and ranks.agrees(placements, parts, multiple):
            return Fit(placements, multiple)
    return None


def _fit_padded(ranks: Ranks, any_factor: bool) -> Optional[Fit]:
    for padding in paddings(ranks):
        found = fit(padded(ranks, padding), any_factor)
        if found is not None and found.rows is None:
            return dataclasses.replace(found, padding=padding)
    return None


def _fit_rows_with_factor(ranks: Ranks) -> Optional[Fit]:
    """Returns a fit in rows of the reference times a product of mesh sizes, or
    divided by it."""
    products = ranks.grid.products()[1:]
    for factor in sorted({1.0 * p for p in products} | {1.0 / p for p in products}):
        values = {rank: value / factor for rank, value in ranks.values.items()}
        found = fit_rows(ranks.replaced(values=values))
        if found is not None:
            return dataclasses.replace(found, factor=factor)
    return None


def _multiple(ranks: Ranks, factor: float) -> Optional[float]:
    """Returns a factor that is not chance: a tensor of few elements must be a multiple
    by sizes of mesh dims."""
    if ranks.reference.numel() >= FEW:
        return factor
    products = [float(size) for size in ranks.grid.products()]
    near = [
        each
        for each in products + [1 / size for size in products]
        if abs(factor / each - 1) < 1e-3
    ]
    return near[0] if near else None


def _as_mean(grid: Grid, placements, factor: float):
    """Returns placements with P(avg), and the number of terms, if the factor is near
    that number."""
    dims = [dim for dim, p in enumerate(placements) if p[0] == "P"]
    for count in range(1, len(dims) + 1):
        for chosen in itertools.combinations(dims, count):
            terms = math.prod(grid.sizes[dim] for dim in chosen)
            if abs(factor - terms) <= 1e-3 * terms:
                named = [
                    "P(avg)" if dim in chosen else p
                    for dim, p in enumerate(placements)
                ]
                return tuple(named), float(terms)
    return None
