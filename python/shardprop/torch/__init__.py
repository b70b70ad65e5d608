"""What needs PyTorch: export a model, run a plan.

    import shardprop as sp, shardprop.torch
    exported = sp.torch.export(model, (ids, labels), mode="train")
    plan = sp.plan(exported, "dp=2,tp=2")
"""

from ._export import ExportError, export
from ._serialize import to_json

__all__ = ["ExportError", "export", "to_json"]
