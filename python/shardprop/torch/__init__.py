"""These functions need PyTorch: export a model, run a plan, serve eager DTensor, and
verify parallel code.

    import shardprop as sp, shardprop.torch
    exported = sp.torch.export(model, (ids, labels), mode="train")
    plan = sp.torch.plan(exported, device_mesh)     # one rank plans, all get the plan
    module = sp.torch.parallelize(exported, plan, device_mesh)
    loss = module(ids, labels)

    sp.torch.install_propagator()                # DTensor asks us from here on
"""

try:
    from torch import __version__ as _installed
except ModuleNotFoundError as missing:
    if missing.name != "torch":
        raise
    from ._release import requirement

    raise ModuleNotFoundError(
        f"shardprop.torch needs PyTorch: pip install '{requirement()}'", name="torch"
    ) from None
from ._release import check_torch

# The check precedes all imports that only some releases have.
check_torch(_installed)

from ._count import Collective, Count, Match, count  # noqa: E402
from ._export import ExportError, export  # noqa: E402
from ._parallel import ParallelModule, parallelize  # noqa: E402
from ._planning import plan  # noqa: E402
from ._propagator import install_propagator, uninstall_propagator  # noqa: E402
from ._serialize import to_json  # noqa: E402
from ._verify import assert_sharded_equals, verify  # noqa: E402
from ._verify_programs import verify_programs  # noqa: E402
from ._weights import load_weights  # noqa: E402
from .verifying.report import Report, Value  # noqa: E402

__all__ = [
    "Collective",
    "Count",
    "ExportError",
    "Match",
    "ParallelModule",
    "Report",
    "Value",
    "assert_sharded_equals",
    "count",
    "export",
    "install_propagator",
    "load_weights",
    "parallelize",
    "plan",
    "to_json",
    "uninstall_propagator",
    "verify",
    "verify_programs",
]
