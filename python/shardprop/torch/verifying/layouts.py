"""A Fit is a layout of a value on the ranks. It has one placement for each mesh dim:

| placement | meaning over this mesh dim |
|---|---|
| R | each rank holds the same |
| S(d) | each rank holds its shard of tensor dim d, by the sizes of torch.chunk |
| rows(d) | each rank holds some rows of tensor dim d, in any order |
| P(sum) | each rank holds a term of a sum |
| P(avg) | each rank holds a term of a mean |
| - | only one coordinate of this mesh dim holds the value |
"""

import dataclasses
import math
import re
from typing import Optional

import torch

from ... import _core


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

    def products(self) -> "list[int]":
        """Returns the products of sizes of mesh dims."""
        products = {1}
        for size in self.sizes:
            products |= {size * other for other in products}
        return sorted(products)

    def divided(self) -> "list[Grid]":
        """Returns the meshes in which one mesh dim is two: "tp=4" is
        "tp_outer=2,tp_inner=2", with ranks 0 and 1 in one group of tp_inner."""
        return [
            Grid(
                self.names[:dim] + (f"{name}_outer", f"{name}_inner")
                + self.names[dim + 1:],
                self.sizes[:dim] + (size // inner, inner) + self.sizes[dim + 1:],
            )
            for dim, (name, size) in enumerate(zip(self.names, self.sizes))
            for inner in range(2, size)
            if size % inner == 0
        ]

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


def placements_of(layout: str) -> "tuple[str, ...]":
    """Returns the placements of a layout: "SS(0,4),R" has two."""
    return tuple(re.findall(r"[^,(]+(?:\([^)]*\)[^,]*)?", layout))


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
                strided = "strided " if p.startswith("SS") else ""
                dim = p[p.index("(") + 1:].split(",")[0].split(")")[0]
                parts.append(f"its {strided}shard of dim {dim} over {name}={size}")
                if fit.padding and f"S({fit.padding.tensor_dim})" == p:
                    parts[-1] += f", padded to {fit.padding.size}"
            elif p.startswith("rows"):
                dim = p[5:-1]
                parts.append(f"rows of dim {dim} in another order over {name}={size}")
        text = "each rank holds " + " and ".join(parts)
    if abs(fit.factor - 1) > 1e-6:
        text += f", {number(fit.factor)} times the value"
    return text


def number(value: float) -> str:
    """Returns a factor in text, as a fraction if it is one: "3/4"."""
    for bottom in range(1, 65 if math.isfinite(value) else 1):
        top = value * bottom
        whole = round(top)
        # Most numbers are near some fraction of two large numbers.
        is_simple = bottom == 1 or whole == 1
        close = 1e-3 if is_simple else 1e-4
        if whole and abs(top / whole - 1) < close and (is_simple or bottom <= 16):
            return f"{whole}" if bottom == 1 else f"{whole}/{bottom}"
    return f"{value:.4g}"
