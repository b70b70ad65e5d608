"""shardprop plans the layouts of tensors over a mesh of devices.

    import shardprop as sp
    graph = sp.load_graph("model.pt2")
    plan = sp.plan(graph, "dp=8,tp=8")
    print(plan.explain())

Planning needs no PyTorch; `shardprop.torch` does.
"""

import importlib
from typing import TYPE_CHECKING

from . import _core
from ._core import __version__
from ._error import Error
from ._graph import Graph, GraphLike, load_graph
from ._mesh import MeshLike
from ._plan import Plan, plan, plan_options
from ._propagate import OpSharding, propagate
from ._redistribute import RedistributePlan, RedistributeStep, redistribute

__all__ = [
    "Error",
    "Graph",
    "GraphLike",
    "MeshLike",
    "OpSharding",
    "Plan",
    "RedistributePlan",
    "RedistributeStep",
    "__version__",
    "load_graph",
    "plan",
    "plan_options",
    "propagate",
    "redistribute",
    "topologies",
]


def topologies() -> "dict[str, str]":
    """Returns the presets by name, with a description of each."""
    return dict(_core.topologies())


if TYPE_CHECKING:
    from . import torch as torch
else:

    def __getattr__(name):
        """Imports `shardprop.torch` when it is first used."""
        if name == "torch":
            return importlib.import_module(".torch", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
