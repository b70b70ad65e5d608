"""explained() turns failed collectives of a planned module into errors with a way
out."""

import contextlib
import time
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch._ops import OpOverload, OpOverloadPacket

from .._error import Error

# Namespaces of the operators that wait for other ranks.
_NAMESPACES = ("_c10d_functional", "_c10d_functional_autograd", "c10d")


def _is_wait(called: object) -> bool:
    if isinstance(called, OpOverload):
        name = called._schema.name
    elif isinstance(called, OpOverloadPacket):
        name = called._qualified_op_name
    else:
        return False
    namespace, _, operator = name.partition("::")
    return namespace in _NAMESPACES and operator.startswith("wait_tensor")


def _comes_from_a_collective(failure: BaseException) -> bool:
    """Returns whether a collective with other ranks raised `failure`.

    NCCL, c10d and devices raise exceptions of their own type. Gloo raises a bare
    RuntimeError in the wait for a collective, and the traceback names the operator.
    """
    if isinstance(failure, dist.DistError):
        return True
    if isinstance(failure, torch.AcceleratorError):
        return False
    traceback = failure.__traceback__
    while traceback is not None:
        if _is_wait(traceback.tb_frame.f_locals.get("self")):
            return True
        traceback = traceback.tb_next
    return False


def _shortest_timeout() -> float:
    """Returns the seconds after which the first of this process's groups times out."""
    seconds = []
    for group in dist.distributed_c10d._world.pg_map:
        for device in group._device_types:
            options = getattr(group._get_backend(device), "options", None)
            timeout = getattr(options, "_timeout", None)
            if timeout is not None:
                seconds.append(timeout.total_seconds())
    return min(seconds, default=float("inf"))


@contextlib.contextmanager
def explained() -> "Iterator[None]":
    """Turns the exception of a failed collective into an Error, and no other one.

    A failure counts as a late rank if the call took as long as the timeout of a group.
    """
    began = time.monotonic()
    try:
        yield
    except RuntimeError as failure:
        if not _comes_from_a_collective(failure):
            raise
        seconds = time.monotonic() - began
        late = seconds >= _shortest_timeout()
        raise Error(
            "SP0911" if late else "SP0912",
            "a rank did not come to a collective in time"
            if late
            else "a collective failed: another rank failed, or left in the middle of "
            "the program",
            f"rank {dist.get_rank()}, after {seconds:.0f} s",
            [str(failure).splitlines()[0][:300]],
            "the first rank that reports an error of its own says why; begin all "
            "ranks again from a checkpoint, the process group cannot be used on",
        ) from failure
