"""These functions say whether a value is a multiple of another one."""

import math
from typing import Optional

from .fits import FEW
from .layouts import Grid
from .ranks import Ranks
from .rows import LARGEST_TABLE


def multiple(difference, tensor, bound: float) -> Optional[float]:
    """Returns k if a difference is k times a tensor, for a whole number or a
    fraction k."""
    sizes = zip(reversed(tensor.shape), reversed(difference.shape))
    if tensor.dim() > difference.dim() or any(a not in (1, b) for a, b in sizes):
        return None
    tensor = tensor.expand(difference.shape)
    below = float((tensor * tensor).sum().real)
    if below == 0:
        return None
    times = float((difference * tensor).sum().real) / below
    rest = (difference - times * tensor).abs().max()
    scale = float(difference.abs().max())
    if scale == 0 or not float(rest) <= _rest(scale, bound):
        return None
    return times


def row_multiple(grid: Grid, difference, tensor, bound: float) -> Optional[float]:
    """Returns k if each row of a difference is k times some row of a parameter,
    for a k that sizes of mesh dims explain."""
    if tensor.dim() != 2 or difference.dim() < 1 or tensor.shape[0] < 2:
        return None
    if difference.shape[-1] != tensor.shape[-1] or tensor.shape[-1] < FEW:
        return None
    rows = difference.reshape(-1, tensor.shape[-1])
    scale = float(difference.abs().max()) if difference.numel() else 0.0
    if scale == 0 or rows.numel() * tensor.shape[0] > LARGEST_TABLE:
        return None
    sizes = {size for size in grid.sizes if size > 1} | {grid.size}
    for times in sorted({s - 1.0 for s in sizes} | {1.0 / s - 1 for s in sizes}):
        rest = (rows[:, None] - times * tensor[None]).abs().amax(-1).amin(-1)
        if times and float(rest.max()) <= _rest(scale, bound):
            return times
    return None


def _rest(scale: float, bound: float) -> float:
    """Returns the largest rest of a difference that is explained: float noise, unless
    the noise is about as large as the difference."""
    return max(1e-3 * scale, min(bound, 0.1 * scale))


def without_noise(factor: float, ranks: Ranks) -> float:
    """Returns a product of mesh sizes, or its inverse, if a factor is one up to
    float noise."""
    sizes = ranks.reference.abs()
    largest = float(sizes.max()) if sizes.numel() else 0.0
    noise = min(0.02, ranks.bound / largest) if largest > 0 else 0.0
    for product in ranks.grid.products():
        for exact in (1.0 * product, 1.0 / product):
            if abs(factor / exact - 1) <= noise:
                return exact
    return factor


def dims_of_factor(grid: Grid, factor: float) -> str:
    """Returns the mesh dims whose sizes multiply to a factor or its inverse."""
    for count in range(1, len(grid.names) + 1):
        for start in range(1 << len(grid.names)):
            dims = [d for d in range(len(grid.names)) if start >> d & 1]
            if len(dims) != count:
                continue
            product = math.prod(grid.sizes[d] for d in dims)
            if product == 1:
                continue
            names = " times ".join(grid.names[d] for d in dims)
            if abs(factor - product) < 1e-3 * product:
                return names
            if abs(factor * product - 1) < 1e-3:
                return f"{names}, inverted"
    return ""
