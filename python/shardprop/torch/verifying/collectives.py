"""Collectives moves values between the tensors of the ranks of a group.

A Meeting gathers the calls of all ranks and computes what each rank gets. The values are
written into the outputs of a rank when it waits.
"""

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import Any, Callable, Optional

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import _disable_current_modes

from ..._error import Error


@dataclasses.dataclass
class Call:
    """A Call is one rank's call of a collective."""

    kind: str
    rank: int
    place: str
    module: str
    #: Tensors that the collective reads, one list of pieces for each tensor.
    inputs: "list[Any]"
    #: Tensors that the collective writes.
    outputs: "list[Any]"
    reduce_op: Any = None
    root: Optional[int] = None
    input_splits: "tuple[int, ...]" = ()
    output_splits: "tuple[int, ...]" = ()
    #: Outputs and their values, which they get when this rank waits.
    results: "list[tuple[torch.Tensor, torch.Tensor]]" = dataclasses.field(
        default_factory=list
    )
    #: Tensors that must not change before the wait, with their versions. Inputs of
    #: the collective have copies.
    fixed: "list[tuple[torch.Tensor, int, Optional[torch.Tensor]]]" = dataclasses.field(
        default_factory=list
    )

    def text(self) -> str:
        shapes = ", ".join(
            "x".join(map(str, tensor.shape)) or "scalar"
            for tensor in flat(self.inputs or self.outputs)
        )
        name = f"{self.kind}({reduction_name(self.reduce_op)})" if self.reduce_op else (
            self.kind
        )
        return f"{name} of {shapes or 'no tensor'} at {self.place or 'PyTorch'}"


@dataclasses.dataclass
class Ran:
    """A Ran is a collective that ran, as one rank of its group saw it."""

    kind: str
    #: The ranks of the group, as ranks of the whole mesh.
    ranks: "tuple[int, ...]"
    reduce_op: str
    #: Bytes that this rank gave to the collective.
    bytes: int
    place: str
    module: str


def flat(tensors: Any) -> "list[torch.Tensor]":
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    return [tensor for item in tensors for tensor in flat(item)]


_REDUCTIONS = {
    dist.ReduceOp.SUM: "sum",
    dist.ReduceOp.AVG: "avg",
    dist.ReduceOp.PRODUCT: "product",
    dist.ReduceOp.MIN: "min",
    dist.ReduceOp.MAX: "max",
    dist.ReduceOp.BAND: "band",
    dist.ReduceOp.BOR: "bor",
    dist.ReduceOp.BXOR: "bxor",
    dist.ReduceOp.PREMUL_SUM: "premul_sum",
}


def reduction_name(reduce_op: Any) -> str:
    for known, name in _REDUCTIONS.items():
        if reduce_op == known:
            return name
    return str(reduce_op)


_COMBINE = {
    "sum": torch.add,
    "avg": torch.add,
    "premul_sum": torch.add,
    "product": torch.mul,
    "min": torch.minimum,
    "max": torch.maximum,
    "band": torch.bitwise_and,
    "bor": torch.bitwise_or,
    "bxor": torch.bitwise_xor,
}


def copied(tensors: Any) -> Any:
    if isinstance(tensors, torch.Tensor):
        return tensors.detach().clone()
    return [copied(item) for item in tensors]


def _reduced(tensors: "list[torch.Tensor]", reduce_op: Any) -> torch.Tensor:
    """Returns the reduction of the ranks' tensors, in the order of the ranks."""
    name = reduction_name(reduce_op)
    result = tensors[0].clone()
    for tensor in tensors[1:]:
        result = _COMBINE[name](result, tensor)
    if name == "avg":
        result = result / len(tensors)
    elif name == "premul_sum":
        result = result * reduce_op.__getstate__()[1]
    return result.to(tensors[0].dtype)


def write(output: torch.Tensor, value: torch.Tensor) -> None:
    """Writes a value of the same number of elements into an output."""
    if output.layout != torch.strided:
        output.copy_(value)
        return
    # Without detach() autograd would see a write that its schemas do not declare.
    output = output.detach()
    output.copy_(value.reshape(output.shape))


@contextlib.contextmanager
def on_values(tensors: "list[torch.Tensor]") -> "Iterator[None]":
    """Lets code write into tensors of the user without a trace."""
    inference = any(tensor.is_inference() for tensor in tensors)
    with torch.inference_mode(inference), torch.no_grad(), _disable_current_modes():
        yield


def hide(tensor: torch.Tensor) -> None:
    """Removes the values of an output that a collective has not written yet."""
    if _can_be_nan(tensor):
        tensor.detach().fill_(math.nan)


def _can_be_nan(tensor: torch.Tensor) -> bool:
    is_number = tensor.is_floating_point() or tensor.is_complex()
    return is_number and tensor.layout == torch.strided


def _version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def fix(call: Call, given: "list[torch.Tensor]", written: "list[torch.Tensor]") -> None:
    """Adds the tensors of a call that must not change before the wait: the `given`
    ones, which `call.inputs` copies, and the `written` ones, which are hidden."""
    storages = {
        tensor.untyped_storage().data_ptr()
        for tensor in written
        if tensor.layout == torch.strided
    }
    for tensor, copy in zip(given, flat(call.inputs)):
        if tensor.layout != torch.strided:
            continue
        if tensor.untyped_storage().data_ptr() not in storages:
            call.fixed.append((tensor, _version(tensor), copy))
    for tensor in written:
        if _can_be_nan(tensor):
            call.fixed.append((tensor, _version(tensor), None))


def has_changed(call: Call) -> bool:
    """Returns whether a tensor of a call has changed since the call."""
    for tensor, version, copy in call.fixed:
        if version == _version(tensor) or tensor.untyped_storage().nbytes() == 0:
            continue
        # A view has the version of its base, which may change elsewhere.
        if copy is None and not tensor._is_view():
            return True
        if copy is None:
            same = torch.isnan(tensor).all()
        else:
            same = ((tensor == copy) | (torch.isnan(tensor) & torch.isnan(copy))).all()
        if not bool(same):
            return True
    return False


def _all_reduce(calls: "list[Call]") -> None:
    for index in range(len(calls[0].inputs)):
        value = _reduced([call.inputs[index] for call in calls], calls[0].reduce_op)
        for call in calls:
            call.results.append((call.outputs[index], value))


def _reduce(calls: "list[Call]") -> None:
    root = calls[calls[0].root]
    for index in range(len(root.inputs)):
        value = _reduced([call.inputs[index] for call in calls], calls[0].reduce_op)
        root.results.append((root.outputs[index], value))


def _all_gather(calls: "list[Call]") -> None:
    """Writes the ranks' inputs into the lists of outputs."""
    for index in range(len(calls[0].inputs)):
        for call in calls:
            for source, output in zip(calls, call.outputs[index]):
                call.results.append((output, source.inputs[index]))


def _all_gather_single(calls: "list[Call]") -> None:
    for index in range(len(calls[0].inputs)):
        value = torch.cat([call.inputs[index].reshape(-1) for call in calls])
        for call in calls:
            call.results.append((call.outputs[index], value))


def _gather(calls: "list[Call]") -> None:
    root = calls[calls[0].root]
    for index in range(len(root.inputs)):
        for source, output in zip(calls, root.outputs[index]):
            root.results.append((output, source.inputs[index]))


def _scatter(calls: "list[Call]") -> None:
    root = calls[calls[0].root]
    for index in range(len(root.outputs)):
        for call, value in zip(calls, root.inputs[index]):
            call.results.append((call.outputs[index], value))


def _broadcast(calls: "list[Call]") -> None:
    root = calls[calls[0].root]
    for call in calls:
        if call is not root:
            call.results += zip(call.outputs, root.inputs)


def _reduce_scatter(calls: "list[Call]") -> None:
    for index in range(len(calls[0].outputs)):
        for place, call in enumerate(calls):
            pieces = [source.inputs[index][place] for source in calls]
            value = _reduced(pieces, calls[0].reduce_op)
            call.results.append((call.outputs[index], value))


def _reduce_scatter_single(calls: "list[Call]") -> None:
    size = len(calls)
    for index in range(len(calls[0].outputs)):
        value = _reduced(
            [call.inputs[index].reshape(-1) for call in calls], calls[0].reduce_op
        )
        for call, piece in zip(calls, value.chunk(size)):
            call.results.append((call.outputs[index], piece))


def _split(tensor: torch.Tensor, splits: "tuple[int, ...]", size: int):
    return tensor.split(splits or [tensor.shape[0] // size] * size)


def _all_to_all_single(calls: "list[Call]") -> None:
    size = len(calls)
    sent = [_split(call.inputs[0], call.input_splits, size) for call in calls]
    for place, call in enumerate(calls):
        outputs = _split(call.outputs[0].detach(), call.output_splits, size)
        for source in range(size):
            call.results.append((outputs[source], sent[source][place]))


def _all_to_all(calls: "list[Call]") -> None:
    for place, call in enumerate(calls):
        for source, output in zip(calls, call.outputs):
            call.results.append((output, source.inputs[place]))


_RUN: "dict[str, Callable[[list[Call]], None]]" = {
    "all_reduce": _all_reduce,
    "reduce": _reduce,
    "all_gather": _all_gather,
    "all_gather_single": _all_gather_single,
    "gather": _gather,
    "scatter": _scatter,
    "broadcast": _broadcast,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter_single": _reduce_scatter_single,
    "all_to_all_single": _all_to_all_single,
    "all_to_all": _all_to_all,
    "barrier": lambda calls: None,
}

# In these collectives the ranks must give tensors of equal sizes.
_EQUAL_SIZES = {
    "all_reduce",
    "reduce",
    "all_gather_single",
    "reduce_scatter",
    "reduce_scatter_single",
}


class Meeting:
    """A Meeting is the place where the calls of one collective of a group meet."""

    def __init__(self, size: int) -> None:
        self.calls: "list[Optional[Call]]" = [None] * size
        self.done = False

    def join(self, place: int, call: Call) -> None:
        """Adds the call of a rank; the last call moves the values."""
        self.calls[place] = call
        if any(other is None for other in self.calls):
            return
        calls = [other for other in self.calls if other is not None]
        self._check(calls)
        with on_values(flat([[c.inputs, c.outputs] for c in calls])):
            _RUN[call.kind](calls)
        for other in calls:
            other.inputs = []
        self.done = True
        self.calls = []

    @staticmethod
    def _check(calls: "list[Call]") -> None:
        first = calls[0]
        for call in calls[1:]:
            differs = (
                call.kind != first.kind
                or call.root != first.root
                or reduction_name(call.reduce_op) != reduction_name(first.reduce_op)
            )
            if not differs and first.kind in _EQUAL_SIZES:
                differs = [t.numel() for t in flat(call.inputs)] != [
                    t.numel() for t in flat(first.inputs)
                ]
            if differs:
                raise Error(
                    "SP0913",
                    "ranks of a group call different collectives",
                    call.place or "verify",
                    [
                        f"rank {first.rank}: {first.text()}",
                        f"rank {call.rank}: {call.text()}",
                    ],
                    "all ranks of a group make the same collectives in the same order, "
                    "on tensors of the same size",
                )
