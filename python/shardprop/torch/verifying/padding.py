"""Shards of equal size have padding at the end of the tensor."""

import dataclasses

import torch

from .layouts import Padding
from .ranks import Ranks


def paddings(ranks: Ranks) -> "list[Padding]":
    """Returns the paddings that give the sizes of the ranks' values."""
    full, result = ranks.reference.shape, []
    shapes = {value.shape for value in ranks.values.values()}
    if len(shapes) != 1 or len(full) != len(shape := next(iter(shapes))):
        return []
    for mesh_dim, count in enumerate(ranks.grid.sizes):
        for dim, (own, whole) in enumerate(zip(shape, full)):
            is_ceiling = own == -(-whole // count)
            has_all_rows = (count - 1) * own < whole
            if own < whole < own * count and (is_ceiling or has_all_rows):
                result.append(Padding(dim, mesh_dim, own * count))
    return result


def padded(ranks: Ranks, padding: Padding, keeps: bool = False) -> Ranks:
    """Returns the values and the reference with padding, which is 0. With `keeps`
    the padding of the ranks keeps its values."""
    dim, values = padding.tensor_dim, {}
    whole = ranks.reference.shape[dim]

    def widened(tensor: torch.Tensor) -> torch.Tensor:
        sizes = list(tensor.shape)
        sizes[dim] = padding.size - whole
        return torch.cat([tensor, tensor.new_zeros(sizes)], dim)

    for rank, value in ranks.values.items():
        own = value.shape[dim]
        left = whole - own * ranks.grid.coordinate(rank)[padding.mesh_dim]
        if not keeps and left < own:
            value = value.clone()
            value.narrow(dim, max(left, 0), own - max(left, 0)).zero_()
        values[rank] = value
    noise = dataclasses.replace(ranks.noise, bounds=widened(ranks.noise.bounds))
    return ranks.replaced(
        values=values, reference=widened(ranks.reference), noise=noise
    )


def uses_padding(ranks: Ranks, padding: Padding) -> bool:
    """Returns whether the padding of a rank has values other than 0."""
    kept, empty = padded(ranks, padding, keeps=True), padded(ranks, padding)
    return any(
        not torch.equal(value, empty.values[rank])
        for rank, value in kept.values.items()
    )
