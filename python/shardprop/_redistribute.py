"""redistribute() plans a move from one layout to another at least cost."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _core
from ._mesh import MeshLike, mesh_text
from ._texts import LayoutLike, dtype_text, layout_text, topology_text


@dataclass(frozen=True)
class RedistributeStep:
    """A step is one collective between two layouts that differ in its mesh dims."""

    collective: str  # all_gather, reduce_scatter, ..., slice
    mesh_dims: "tuple[str, ...]"
    src: str  # "S(0),R"
    dst: str
    reduce_op: Optional[str]  # of those that reduce
    bytes_per_rank: int  # sent by the busiest rank
    us: float


@dataclass(frozen=True)
class RedistributePlan:
    """The collectives from one layout to another, in their order."""

    steps: "tuple[RedistributeStep, ...]"
    cost_us: float
    bytes_per_rank: int
    peak_bytes_per_rank: int
    text: str  # a line per step

    def __str__(self) -> str:
        return self.text


def redistribute(
    mesh: MeshLike,
    shape: "Sequence[int]",
    dtype: Any,
    src: LayoutLike,
    dst: LayoutLike,
    *,
    topology: Union[str, "os.PathLike[str]"] = "dgx-h100",
    memory: Optional[int] = None,
) -> RedistributePlan:
    """Returns the least-cost plan of collectives from `src` to `dst`.

    >>> print(redistribute("dp=2,tp=4", (4096, 4096), "bf16", "S(0),R", "R,S(1)"))

    `dtype` is "bf16", "bfloat16" or torch.bfloat16. `src` and `dst` are texts such as
    "S(0),R", or a placement for each mesh dim, as text or as DTensor's. `memory` is the
    most bytes that a rank may hold at once. Raises Error.
    """
    out = _core.redistribute(
        mesh_text(mesh),
        list(shape),
        dtype_text(dtype),
        layout_text(src),
        layout_text(dst),
        topology_text(topology),
        memory,
    )
    steps = tuple(
        RedistributeStep(**{**step, "mesh_dims": tuple(step["mesh_dims"])})
        for step in out.pop("steps")
    )
    return RedistributePlan(steps=steps, **out)
