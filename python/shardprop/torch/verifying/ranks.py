"""Ranks holds the values of the ranks for one value of the reference."""

import copy
import itertools
import math
from typing import Optional

import torch

from .layouts import Grid, part, region
from .noise import Noise, unit

# The sum of so many terms is not equal on two ranks by chance.
FEW_TERMS = 16


def unit_of(value: torch.Tensor) -> float:
    return unit(value.dtype)


class Ranks:
    """Ranks holds the values of the ranks and compares them in a layout.

    The ranks that hold a value form a grid: all coordinates of some mesh dims, and one
    coordinate of the others.
    """

    def __init__(
        self,
        values: "dict[int, torch.Tensor]",
        reference: torch.Tensor,
        grid: Grid,
        noise: Noise,
        roundoff: float,
    ) -> None:
        """`noise` bounds the rounding error of the reference; `roundoff` is the unit
        roundoff of its dtype."""
        wide = torch.complex128 if reference.is_complex() else torch.float64
        made = {id(value): value.to(wide) for value in values.values()}
        #: This is the unit roundoff of the values of the ranks.
        self._own_unit = max(map(unit_of, values.values()), default=0.0)
        self.values = {rank: made[id(value)] for rank, value in values.items()}
        self.reference = reference.to(wide)
        self.noise, self._unit = noise, roundoff
        self._bounds: "dict[tuple[str, ...], dict[int, torch.Tensor]]" = {}
        self._place(grid)
        self._largest = max(
            (float(v.abs().max()) for v in self.values.values() if v.numel()),
            default=0.0,
        )

    def _place(self, grid: Grid) -> None:
        """Sets the mesh of the ranks."""
        self.grid = grid
        coordinates = [grid.coordinate(rank) for rank in self.values]
        self.only = []
        for dim, size in enumerate(grid.sizes):
            at = {coordinate[dim] for coordinate in coordinates}
            self.only.append(size > 1 and len(at) == 1)
        expected = math.prod(
            1 if only else size for only, size in zip(self.only, grid.sizes)
        )
        self.is_grid = expected == len(self.values)

    def on(self, grid: Grid) -> "Ranks":
        """Returns the same values on another mesh of the same ranks."""
        result = self.replaced()
        result._place(grid)
        return result

    def peers(self, rank: int, dims: "list[int]") -> "list[int]":
        """Returns the holders that differ from `rank` only in the mesh dims `dims`."""
        own = self.grid.coordinate(rank)
        return [
            other
            for other in self.values
            if all(
                a == b or dim in dims
                for dim, (a, b) in enumerate(zip(own, self.grid.coordinate(other)))
            )
        ]

    def _is_same(self, dim: int) -> bool:
        """Returns whether the ranks along a mesh dim hold equal values.

        Terms of a sum of few elements may be equal up to some roundoffs by chance.
        """
        for rank, value in self.values.items():
            for other in self.peers(rank, [dim]):
                held = self.values[other]
                if held.shape != value.shape:
                    return False
                most = 4 * self._own_unit if value.numel() >= FEW_TERMS else 0.0
                if not bool(((held - value).abs() <= most * value.abs()).all()):
                    return False
        return True

    def bounds(self, placements: "tuple[str, ...]") -> "dict[int, torch.Tensor]":
        """Returns the bound of the noise of each element of each rank's part."""
        if placements not in self._bounds:
            self._bounds[placements] = {
                rank: self.part_of(self.noise.bounds, placements, rank)
                for rank in self.values
            }
        return self._bounds[placements]

    def part_of(self, full: torch.Tensor, placements, rank: int) -> torch.Tensor:
        return part(full, region(self.grid, tuple(full.shape), placements, rank))

    def is_near(
        self, found: torch.Tensor, expected: torch.Tensor, bounds, terms: int = 0
    ) -> bool:
        """Returns whether values are a part of the reference."""
        if found.numel() == 0:
            return True
        if terms:
            bounds = bounds + 8 * self._unit * math.sqrt(terms) * self._largest
        # False for NaN.
        return bool(((found - expected).abs() <= bounds).all())

    def replaced(self, **changes) -> "Ranks":
        """Returns a copy with other `values`, another `reference` or `noise`."""
        result = copy.copy(self)
        vars(result).update(changes, _bounds={})
        return result

    @property
    def bound(self) -> float:
        """The bound of the rounding error of most elements."""
        return self.noise.typical

    def combined(self, placements: "tuple[str, ...]") -> "dict[int, torch.Tensor]":
        """Returns the ranks' values, summed over the mesh dims of P(sum)."""
        dims = [dim for dim, p in enumerate(placements) if p.startswith("P")]
        if not dims:
            return self.values
        sums: "dict[tuple[int, ...], torch.Tensor]" = {}
        result = {}
        for rank in self.values:
            peers = tuple(sorted(self.peers(rank, dims)))
            if peers not in sums:
                shapes = {self.values[peer].shape for peer in peers}
                if len(shapes) > 1:
                    return {}
                total = self.values[peers[0]]
                for peer in peers[1:]:
                    total = total + self.values[peer]
                sums[peers] = total
            result[rank] = sums[peers]
        return result

    def parts(self, placements) -> "Optional[dict[int, torch.Tensor]]":
        """Returns each rank's part of the reference, or None if a size differs."""
        result = {}
        for rank, value in self.values.items():
            expected = self.part_of(self.reference, placements, rank)
            if expected.shape != value.shape:
                return None
            result[rank] = expected
        return result

    def options(self) -> "list[tuple[str, ...]]":
        """Returns the layouts to try, the ones with the fewest terms and shards
        first."""
        full = self.reference.shape
        smaller = {
            d
            for value in self.values.values()
            for d, (own, whole) in enumerate(zip(value.shape, full))
            if own != whole
        }
        per_dim = []
        for dim, size in enumerate(self.grid.sizes):
            if self.only[dim]:
                per_dim.append(["-"])
            elif size == 1:
                per_dim.append(["R"])
            else:
                # Shards may be equal, such as shards of zeros.
                shards = [f"S({d})" for d in sorted(smaller)]
                terms = [] if self._is_same(dim) else ["P(sum)"]
                per_dim.append(["R", *shards, *terms])
        return sorted(
            itertools.product(*per_dim),
            key=lambda each: (
                sum(p[0] == "P" for p in each),
                sum(p[0] == "S" for p in each),
            ),
        )

    def factor(self, placements, parts) -> float:
        """Returns the number by which the values are a multiple of the reference, in
        the sense of least squares."""
        combined = self.combined(placements)
        above = below = 0.0
        for rank, expected in parts.items():
            if rank in combined:
                above += float((combined[rank] * expected.conj()).sum().real)
                below += float((expected * expected.conj()).sum().real)
        return above / below if below > 0 else 1.0

    def agrees(self, placements, parts, factor: float = 1.0) -> bool:
        combined = self.combined(placements)
        if not combined:
            return False
        terms = math.prod(
            size for p, size in zip(placements, self.grid.sizes) if p[0] == "P"
        )
        bounds = self.bounds(placements)
        is_near = all(
            self.is_near(
                combined[rank],
                factor * expected,
                abs(factor) * bounds[rank],
                terms if terms > 1 else 0,
            )
            for rank, expected in parts.items()
        )
        if factor != 1 or terms > 1:
            return is_near
        return is_near and all(
            self._has_factor_one(combined[rank], expected, bounds[rank])
            for rank, expected in parts.items()
        )

    def _has_factor_one(self, found, expected, bounds) -> bool:
        """Returns whether no multiple of a part is much nearer than the part."""
        if math.isinf(self.noise.factor):
            return True
        size = float(expected.abs().square().sum())
        if size == 0:
            return True
        factor = float((found * expected.conj()).sum().real) / size
        independent = float((bounds * expected.abs()).square().sum()) ** 0.5 / size
        return not abs(factor - 1) > self.noise.factor + independent
