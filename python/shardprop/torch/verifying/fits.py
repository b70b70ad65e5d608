"""fit() finds the layout in which the values of the ranks equal a reference tensor.

    layout = fit(values, reference, grid, tolerance)    # Fit(("R", "P(sum)"), factor 1)

`values` has the tensor of each rank. The answer has one placement for each mesh dim:

| placement | meaning over this mesh dim |
|---|---|
| R | each rank holds the same |
| S(d) | each rank holds its shard of tensor dim d, by the sizes of torch.chunk |
| rows(d) | each rank holds some rows of tensor dim d, in any order |
| P(sum) | each rank holds a term of a sum |
| P(avg) | each rank holds a term of a mean |
| - | only one coordinate of this mesh dim holds the value |
"""

import copy
import dataclasses
import itertools
import math
from typing import Optional

import torch

from ... import _core
from .noise import Noise, unit

# A tensor with fewer elements is a multiple of any other one by chance.
FEW = 4

# The sum of so many terms is not equal on two ranks by chance.
FEW_TERMS = 16

# Larger tables of row distances are not computed (elements).
LARGEST_TABLE = 1 << 24


@dataclasses.dataclass(frozen=True)
class Grid:
    """A Grid is the mesh of the simulated ranks."""

    names: "tuple[str, ...]"
    sizes: "tuple[int, ...]"

    @property
    def size(self) -> int:
        return math.prod(self.sizes)

    @property
    def text(self) -> str:
        return ",".join(f"{n}={s}" for n, s in zip(self.names, self.sizes))

    def coordinate(self, rank: int) -> "tuple[int, ...]":
        result = []
        for size in reversed(self.sizes):
            result.append(rank % size)
            rank //= size
        return tuple(reversed(result))

    def rank(self, coordinate) -> int:
        rank = 0
        for place, size in zip(coordinate, self.sizes):
            rank = rank * size + place
        return rank


@dataclasses.dataclass(frozen=True)
class Padding:
    """A Padding fills a tensor dim up to equal shards over a mesh dim."""

    tensor_dim: int
    mesh_dim: int
    #: `size` counts the padding, too.
    size: int


@dataclasses.dataclass(frozen=True)
class Fit:
    """A Fit is a layout in which the ranks' values equal the reference times a
    factor."""

    placements: "tuple[str, ...]"
    factor: float = 1.0
    #: The indices of the reference that each rank holds, for rows(d).
    rows: "Optional[dict[int, tuple[int, ...]]]" = None
    #: The shards have equal sizes, with rows of padding at the end of the tensor.
    padding: "Optional[Padding]" = None

    @property
    def is_partial(self) -> bool:
        return any(p.startswith("P") for p in self.placements)

    @property
    def text(self) -> str:
        return ",".join(self.placements)


def region(
    grid: Grid, shape: "tuple[int, ...]", placements: "tuple[str, ...]", rank: int
) -> "list[list[tuple[int, int]]]":
    """Returns the intervals of each tensor dim that a rank holds."""
    layout = ",".join(p if p.startswith("S") else "R" for p in placements)
    return _core.local_region(grid.text, list(shape), "f32", layout, rank)


def unit_of(value: torch.Tensor) -> float:
    return unit(value.dtype)


def part(reference: torch.Tensor, intervals) -> torch.Tensor:
    """Returns the elements of the reference in the intervals of each dim."""
    for dim, pieces in enumerate(intervals):
        if pieces == [(0, reference.shape[dim])]:
            continue
        narrow = [reference.narrow(dim, a, b - a) for a, b in pieces]
        if not narrow:
            narrow = [reference.narrow(dim, 0, 0)]
        reference = narrow[0] if len(narrow) == 1 else torch.cat(narrow, dim)
    return reference


class Ranks:
    """Ranks holds the values of the ranks and finds their fits.

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
        self.grid, self._noise, self._unit = grid, noise, roundoff
        self._bounds: "dict[tuple[str, ...], dict[int, torch.Tensor]]" = {}
        coordinates = [grid.coordinate(rank) for rank in values]
        self.only = []
        for dim, size in enumerate(grid.sizes):
            at = {coordinate[dim] for coordinate in coordinates}
            self.only.append(size > 1 and len(at) == 1)
        expected = math.prod(
            1 if only else size for only, size in zip(self.only, grid.sizes)
        )
        self.is_grid = expected == len(values)
        self._largest = max(
            (float(v.abs().max()) for v in self.values.values() if v.numel()),
            default=0.0,
        )

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
                rank: self._part(self._noise.bounds, placements, rank)
                for rank in self.values
            }
        return self._bounds[placements]

    def _part(self, full: torch.Tensor, placements, rank: int) -> torch.Tensor:
        return part(full, region(self.grid, tuple(full.shape), placements, rank))

    def _near(
        self, found: torch.Tensor, expected: torch.Tensor, bounds, terms: int = 0
    ) -> bool:
        """Returns whether values are a part of the reference."""
        if found.numel() == 0:
            return True
        if terms:
            bounds = bounds + 8 * self._unit * math.sqrt(terms) * self._largest
        # False for NaN.
        return bool(((found - expected).abs() <= bounds).all())

    @property
    def bound(self) -> float:
        """The bound of the rounding error of most elements."""
        return self._noise.typical

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
            expected = self._part(self.reference, placements, rank)
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
        return all(
            self._near(
                combined[rank],
                factor * expected,
                abs(factor) * bounds[rank],
                terms if terms > 1 else 0,
            )
            for rank, expected in parts.items()
        )

    def fit(self, any_factor: bool = False) -> Optional[Fit]:
        """Returns a layout in which the values are right.

        With `any_factor` they may be any positive multiple of the reference. Without
        it a factor is accepted only as the number of terms of a mean.
        """
        if not self.is_grid:
            return None
        layouts = []
        for placements in self.options():
            parts = self.parts(placements)
            if parts is None:
                continue
            layouts.append((placements, parts))
            if self.agrees(placements, parts):
                return Fit(placements)
        for placements, parts in layouts:
            factor = self.factor(placements, parts)
            if not math.isfinite(factor) or factor <= 0:
                continue
            mean = self._as_mean(placements, factor)
            if mean is None and not (any_factor and self._is_factor(factor)):
                continue
            if self.agrees(placements, parts, factor):
                return Fit(*(mean or (placements, factor)))
        found = self._fit_rows()
        if found is None and any_factor:
            found = self._fit_rows_with_factor()
        return found or self._fit_padded(any_factor)

    def paddings(self) -> "list[Padding]":
        """Returns the paddings that give the sizes of the ranks' values."""
        full, result = self.reference.shape, []
        shapes = {value.shape for value in self.values.values()}
        if len(shapes) != 1 or len(full) != len(shape := next(iter(shapes))):
            return []
        for mesh_dim, count in enumerate(self.grid.sizes):
            for dim, (own, whole) in enumerate(zip(shape, full)):
                is_ceiling = own == -(-whole // count)
                has_all_rows = (count - 1) * own < whole
                if own < whole < own * count and (is_ceiling or has_all_rows):
                    result.append(Padding(dim, mesh_dim, own * count))
        return result

    def padded(self, padding: Padding, keeps: bool = False) -> "Ranks":
        """Returns the values and the reference with padding, which is 0. With `keeps`
        the padding of the ranks keeps its values."""
        result, dim = copy.copy(self), padding.tensor_dim
        whole = self.reference.shape[dim]

        def widened(tensor: torch.Tensor) -> torch.Tensor:
            sizes = list(tensor.shape)
            sizes[dim] = padding.size - whole
            return torch.cat([tensor, tensor.new_zeros(sizes)], dim)

        result.reference = widened(self.reference)
        result._noise = dataclasses.replace(
            self._noise, bounds=widened(self._noise.bounds)
        )
        result._bounds, result.values = {}, {}
        for rank, value in self.values.items():
            own = value.shape[dim]
            left = whole - own * self.grid.coordinate(rank)[padding.mesh_dim]
            if not keeps and left < own:
                value = value.clone()
                value.narrow(dim, max(left, 0), own - max(left, 0)).zero_()
            result.values[rank] = value
        return result

    def uses_padding(self, padding: Padding) -> bool:
        """Returns whether the padding of a rank has values other than 0."""
        kept, empty = self.padded(padding, keeps=True), self.padded(padding)
        return any(
            not torch.equal(value, empty.values[rank])
            for rank, value in kept.values.items()
        )

    def _fit_padded(self, any_factor: bool) -> Optional[Fit]:
        for padding in self.paddings():
            found = self.padded(padding).fit(any_factor)
            if found is not None and found.rows is None:
                return dataclasses.replace(found, padding=padding)
        return None

    def _fit_rows_with_factor(self) -> Optional[Fit]:
        """Returns a fit in rows of the reference times a product of mesh sizes, or
        divided by it."""
        products = self._products() - {1}
        for factor in sorted({1.0 * p for p in products} | {1.0 / p for p in products}):
            scaled = copy.copy(self)
            scaled.values = {rank: v / factor for rank, v in self.values.items()}
            found = scaled._fit_rows()
            if found is not None:
                return dataclasses.replace(found, factor=factor)
        return None

    def _products(self) -> "set[int]":
        """Returns the products of sizes of mesh dims."""
        sizes = {1}
        for size in self.grid.sizes:
            sizes |= {size * other for other in sizes}
        return sizes

    def _is_factor(self, factor: float) -> bool:
        """Returns whether a multiple is not chance: a tensor of few elements must be a
        multiple by sizes of mesh dims."""
        if self.reference.numel() >= FEW:
            return True
        return any(
            abs(each - 1) < 1e-3
            for size in self._products()
            for each in (factor * size, factor / size)
        )

    def _as_mean(self, placements, factor: float):
        """Returns placements with P(avg) if the factor is the number of terms."""
        dims = [dim for dim, p in enumerate(placements) if p[0] == "P"]
        for count in range(1, len(dims) + 1):
            for chosen in itertools.combinations(dims, count):
                terms = math.prod(self.grid.sizes[dim] for dim in chosen)
                if abs(factor - terms) <= 1e-3 * terms:
                    named = [
                        "P(avg)" if dim in chosen else p
                        for dim, p in enumerate(placements)
                    ]
                    return tuple(named), 1.0
        return None

    def _fit_rows(self) -> Optional[Fit]:
        """Returns a fit in which the ranks along some mesh dims hold rows of a tensor
        dim in another order, or a single holder does."""
        dims = [
            dim
            for dim, size in enumerate(self.grid.sizes)
            if size > 1 and not self.only[dim]
        ]
        layouts = [
            placements
            for placements in self.options()
            if not any(p[0] == "P" for p in placements)
        ]
        for count in range(min(len(dims), 1), len(dims) + 1):
            for at in itertools.combinations(dims, count):
                for placements in layouts:
                    if any(placements[dim] != "R" for dim in at):
                        continue
                    for tensor_dim in range(self.reference.dim()):
                        rows = self._rows(placements, list(at), tensor_dim)
                        if rows is not None:
                            named = list(placements)
                            for dim in at:
                                named[dim] = f"rows({tensor_dim})"
                            return Fit(tuple(named), 1.0, rows)
        return None

    def _rows(self, placements, at: "list[int]", tensor_dim: int):
        """Returns the rows of each rank along a tensor dim, if the ranks along the mesh
        dims `at` hold each row, but not each of them all rows."""
        found: "dict[int, tuple[int, ...]]" = {}
        for rank in self.values:
            if rank in found:
                continue
            peers = self.peers(rank, at)
            expected = self._part(self.reference, placements, rank)
            shapes = [self.values[peer].shape for peer in peers]
            if any(len(shape) != expected.dim() for shape in shapes):
                return None
            size = expected.shape[tensor_dim]
            own_sizes = [shape[tensor_dim] for shape in shapes]
            if sum(own_sizes) < size or (len(peers) > 1 and min(own_sizes) >= size):
                return None
            uses = torch.zeros(size)
            bounds = self.bounds(placements)[rank]
            for peer in peers:
                own = self._row_indices(
                    self.values[peer], expected, bounds, tensor_dim, uses
                )
                if own is None:
                    return None
                found[peer] = own
            if size and float(uses.min()) == 0:
                return None
        return found

    def reordered(self) -> "Optional[tuple[tuple[str, ...], int, tuple[int, ...]]]":
        """Returns the layout, the tensor dim and the rows of the first rank if each rank
        holds all rows of its part in another order."""
        for placements in self.options():
            parts = self.parts(placements)
            if any(p[0] == "P" for p in placements) or parts is None:
                continue
            for dim in range(self.reference.dim()):
                found = [
                    self._row_indices(
                        self.values[rank], expected, self.bounds(placements)[rank],
                        dim, torch.zeros(expected.shape[dim]),
                    )
                    for rank, expected in parts.items()
                ]
                if found and all(found):
                    return placements, dim, found[0]
        return None

    def agrees_in_rows(self, fit: Fit) -> bool:
        """Returns whether the ranks hold the rows of a fit with rows(d)."""
        dim = next(int(p[5:-1]) for p in fit.placements if p.startswith("rows"))
        for rank, value in self.values.items():
            rows = None if fit.rows is None else fit.rows.get(rank)
            if rows is None:
                return False
            chosen = torch.tensor(rows, dtype=torch.long)
            expected, bounds = (
                self._part(full, fit.placements, rank).index_select(dim, chosen)
                for full in (self.reference, self._noise.bounds)
            )
            if expected.shape != value.shape:
                return False
            if not self._near(value, expected, bounds):
                return False
        return True

    def _row_indices(
        self, value, expected, bounds, dim: int, uses: torch.Tensor
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


def words(fit: Fit, grid: Grid) -> str:
    """Returns a layout in words: "each rank holds a term of a sum over tp"."""
    if all(p in ("R", "-") for p in fit.placements):
        text = "each rank holds the whole"
    else:
        parts = []
        for p, name, size in zip(fit.placements, grid.names, grid.sizes):
            if p == "P(sum)":
                parts.append(f"a term of a sum over {name}={size}")
            elif p == "P(avg)":
                parts.append(f"a term of a mean over {name}={size}")
            elif p[0] == "S":
                parts.append(f"its shard of dim {p[2:-1]} over {name}={size}")
                if fit.padding and f"S({fit.padding.tensor_dim})" == p:
                    parts[-1] += f", padded to {fit.padding.size}"
            elif p.startswith("rows"):
                dim = p[5:-1]
                parts.append(f"rows of dim {dim} in another order over {name}={size}")
        text = "each rank holds " + " and ".join(parts)
    if abs(fit.factor - 1) > 1e-6:
        text += f", {_number(fit.factor)} times the value"
    return text


def _number(value: float) -> str:
    for bottom in range(1, 65 if math.isfinite(value) else 1):
        top = value * bottom
        if abs(top - round(top)) < 1e-3 * bottom and round(top):
            return f"{round(top)}" if bottom == 1 else f"{round(top)}/{bottom}"
    return f"{value:.4g}"


number = _number
