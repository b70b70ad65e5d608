"""A view that is a copy is refused once its source was written after it was made.

A view of a DTensor shares the version counter of its source, as all views of PyTorch
do, even if its local tensor is a copy (`_moved_views`). The version at which the copy
was made therefore shows whether the source was written since then.

Readers of the view are operators, which take the dispatcher's slow path for it, and
`to_local()`, `redistribute()` and `full_tensor()`. Limits: foreach operators do not
raise the version of a DTensor, and `Tensor.data` has a counter of its own.
"""

import functools
import types
from typing import Optional

import torch
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._dispatch import OpDispatcher

from ._moved_views import MakesCopies, MovedViewSpec, origin_of

_METHODS = ("to_local", "redistribute")
_methods_before = {}
_slow_path = OpDispatcher._dispatch_get_local_results_slow_path
_code = _slow_path.__code__
_run = types.FunctionType(_code, _slow_path.__globals__)


def _checked_slow_path(self, op_call, args, op_info):
    # This code runs with the globals of PyTorch's module.
    from shardprop.torch._stale_views import run_checked

    return run_checked(self, op_call, args, op_info)


def install() -> None:
    """Makes every reader of a view that is a copy check it.

    The C++ dispatcher keeps the method of its slow path from its first use on, so only
    the code of the method can be replaced.
    """
    _slow_path.__code__ = _checked_slow_path.__code__
    for name in _METHODS:
        method = _methods_before[name] = getattr(DTensor, name)
        setattr(DTensor, name, _checking(method))


def uninstall() -> None:
    """Undoes install(), which must have run."""
    _slow_path.__code__ = _code
    for name, method in _methods_before.items():
        setattr(DTensor, name, method)
    _methods_before.clear()


def run_checked(dispatcher, op_call, args, op_info):
    """Runs the slow path of DTensor's dispatcher. Raises RuntimeError if an argument is
    a stale view."""
    views = []
    _collect_views(args, views)
    for view in views:
        _require_fresh(view)
    results = _run(dispatcher, op_call, args, op_info)
    if _makes_copies(op_info.output_sharding):
        _note_version(results, args[0])
    return results


def _checking(method):
    @functools.wraps(method)
    def run(self, *args, **kwargs):
        if not torch.compiler.is_compiling() and isinstance(self._spec, MovedViewSpec):
            _require_fresh(self)
        return method(self, *args, **kwargs)

    return run


def _collect_views(values, views) -> None:
    for value in values:
        if isinstance(value, DTensor):
            if isinstance(value._spec, MovedViewSpec):
                views.append(value)
        elif isinstance(value, (list, tuple)):
            _collect_views(value, views)


def _version(tensor) -> Optional[int]:
    """Returns the version of a tensor, None if it has none."""
    return None if tensor.is_inference() else tensor._version


def _note_version(views, source) -> None:
    for view in views if isinstance(views, (list, tuple)) else [views]:
        origin = origin_of(view)
        if origin is not None and origin.version is None:
            origin.version = _version(source)


def _require_fresh(view) -> None:
    origin = origin_of(view._local_tensor)
    version = _version(view)
    if origin is None or version is None:
        return
    if origin.version is None:
        origin.version = version
    elif version > origin.version:
        raise RuntimeError(
            "a view is read that is a copy, and its source was written after the view "
            "was made: the source was redistributed to make it, so that the write did "
            "not reach the view. Make the view again after the write, or redistribute "
            "the source first, so that the viewed dims are not sharded"
        )


def _makes_copies(sharding) -> bool:
    run = sharding.redistribute_schema
    return run is not None and isinstance(run.op, MakesCopies)
