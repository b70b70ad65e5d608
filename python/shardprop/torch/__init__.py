"""What needs PyTorch: export a model, run a plan.

    import shardprop as sp, shardprop.torch
    exported = sp.torch.export(model, (ids, labels), mode="train")
    plan = sp.plan(exported, "dp=2,tp=2")
    module = sp.torch.parallelize(exported, plan, device_mesh)   # on every rank
    loss = module(ids, labels)
"""

from ._count import Collective, Count, Match, count
from ._export import ExportError, export
from ._parallel import ParallelModule, load_weights, parallelize
from ._serialize import to_json

__all__ = [
    "Collective",
    "Count",
    "ExportError",
    "Match",
    "ParallelModule",
    "count",
    "export",
    "load_weights",
    "parallelize",
    "to_json",
]
