"""What needs PyTorch: export a model, run a plan, serve eager DTensor.

    import shardprop as sp, shardprop.torch
    exported = sp.torch.export(model, (ids, labels), mode="train")
    plan = sp.plan(exported, "dp=2,tp=2")
    module = sp.torch.parallelize(exported, plan, device_mesh)   # on every rank
    loss = module(ids, labels)

    sp.torch.install_propagator()                # DTensor asks us from here on
"""

try:
    from . import _failures
except ModuleNotFoundError as missing:
    if missing.name != "torch":
        raise
    raise ModuleNotFoundError(
        "shardprop.torch needs PyTorch: pip install 'torch==2.13.*'", name="torch"
    ) from None
try:
    from ._count import Collective, Count, Match, count
    from ._export import ExportError, export
    from ._parallel import ParallelModule, load_weights, parallelize
    from ._propagator import install_propagator, uninstall_propagator
    from ._serialize import to_json
except ImportError:
    # Parts of torch that only its own release has.
    _failures.check_torch()
    raise

__all__ = [
    "Collective",
    "Count",
    "ExportError",
    "Match",
    "ParallelModule",
    "count",
    "export",
    "install_propagator",
    "load_weights",
    "parallelize",
    "to_json",
    "uninstall_propagator",
]
