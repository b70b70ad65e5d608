"""Runs the collectives of local programs on values by rank.

    run({"collective": "all_reduce", "reduce_op": "sum", "mesh_dims": ["d0"]},
        mesh=(2,), held=[tensor of rank 0, tensor of rank 1])

A new kind is a function of a step and of the values of one group, in mesh order,
that returns what each rank of the group holds afterwards.
"""

import torch

from . import partials
from .layouts import coordinates


def _all_reduce(step, terms):
    if len({term.shape for term in terms}) != 1:
        raise ValueError("an all-reduce of values that differ in shape")
    return [partials.reduce(terms, [step["reduce_op"]], [len(terms)])] * len(terms)


def _all_gather(_step, values):
    return [torch.cat(values)] * len(values)


_KINDS = {"all_reduce": _all_reduce, "all_gather": _all_gather}


def _groups(mesh_dims, mesh):
    """Ranks that talk to each other: they differ on these mesh dims only."""
    over = {int(name.removeprefix("d")) for name in mesh_dims}
    groups = {}
    for rank, at in enumerate(coordinates(mesh)):
        key = tuple(c for d, c in enumerate(at) if d not in over)
        groups.setdefault(key, []).append(rank)
    return groups.values()


def run(step, mesh, held):
    """Returns the tensor of each rank after the step."""
    kind = step["collective"]
    if kind not in _KINDS:
        raise ValueError(f"no collective {kind} in local programs")
    results = [None] * len(held)
    for group in _groups(step["mesh_dims"], mesh):
        after = _KINDS[kind](step, [held[rank] for rank in group])
        for rank, result in zip(group, after, strict=True):
            results[rank] = result
    return results
