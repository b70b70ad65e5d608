"""A Seen is one value at one time on one rank."""

import dataclasses
from typing import Any, Optional

import torch
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.tensor import DTensor

from .noise import Error, Work


@dataclasses.dataclass
class Stated:
    """Stated is the layout that a DTensor states for itself."""

    #: These are the ranks of its mesh, numbered in the whole mesh.
    ranks: torch.Tensor
    placements: tuple
    shape: "tuple[int, ...]"
    mesh_dims: "tuple[str, ...]"


@dataclasses.dataclass
class Seen:
    """A Seen is one value at one time on one rank."""

    tensor: torch.Tensor
    stated: Optional[Stated]
    #: The position in the run of this rank.
    order: int
    place: str
    #: The work of the reference so far.
    work: Work = Work()
    #: The difference to the same value of a run in f64, if that run has it.
    error: Optional[Error] = None
    #: The coarsest dtype that this rank has sent so far.
    sent: torch.dtype = torch.float64
    #: The value consists of integers, which have no rounding errors.
    is_whole: bool = False


def usable(calls: "list[Any]") -> "list[Seen]":
    """Returns the calls that left a value."""
    return [seen for seen in calls if seen is not None]


def as_tensor(leaf: Any) -> Any:
    """Returns a loss or a count that is a number of Python as a tensor."""
    dtype = {float: torch.float32, int: torch.int64}.get(type(leaf))
    return leaf if dtype is None else torch.tensor(leaf, dtype=dtype)


def local_of(value: torch.Tensor) -> "tuple[torch.Tensor, Optional[Stated]]":
    """Returns the rank's part of a tensor, and the layout that it states."""
    stated = None
    if isinstance(value, DTensor):
        mesh = value.device_mesh
        stated = Stated(
            mesh.mesh.clone(),
            tuple(value.placements),
            tuple(value.shape),
            tuple(mesh.mesh_dim_names or ()),
        )
        value = value._local_tensor
    if isinstance(value, AsyncCollectiveTensor):
        value = value.trigger_wait()
    return value, stated
