"""SimulatedGroup is a process group of c10d whose ranks are threads of this process.

A collective starts when all ranks of the group have called it. It moves values between
the tensors of the ranks. Calls of different kinds or sizes are an error that names the
lines of both calls.
"""

import dataclasses
from typing import Any, Callable, Optional

import torch
import torch.distributed as dist
from torch.futures import Future
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

    def text(self) -> str:
        shapes = ", ".join(
            "x".join(map(str, tensor.shape)) or "scalar"
            for tensor in _flat(self.inputs)
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


def _flat(tensors: Any) -> "list[torch.Tensor]":
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    return [tensor for item in tensors for tensor in _flat(item)]


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


def _write(output: torch.Tensor, value: torch.Tensor) -> None:
    """Writes a value of the same number of elements into an output."""
    # Without detach() autograd would see a write that its schemas do not declare.
    output = output.detach()
    output.copy_(value.reshape(output.shape))


def _all_reduce(calls: "list[Call]") -> None:
    for index in range(len(calls[0].inputs)):
        value = _reduced([call.inputs[index] for call in calls], calls[0].reduce_op)
        for call in calls:
            _write(call.outputs[index], value)


def _reduce(calls: "list[Call]") -> None:
    root = calls[calls[0].root]
    for index in range(len(root.inputs)):
        value = _reduced([call.inputs[index] for call in calls], calls[0].reduce_op)
        _write(root.outputs[index], value)


def _all_gather(calls: "list[Call]") -> None:
    """Writes the ranks' inputs into the lists of outputs."""
    for index in range(len(calls[0].inputs)):
        for call in calls:
            for source, output in zip(calls, call.outputs[index]):
                _write(output, source.inputs[index])


def _all_gather_single(calls: "list[Call]") -> None:
    for index in range(len(calls[0].inputs)):
        value = torch.cat([call.inputs[index].reshape(-1) for call in calls])
        for call in calls:
            _write(call.outputs[index], value)


def _gather(calls: "list[Call]") -> None:
    root = calls[calls[0].root]
    for index in range(len(root.inputs)):
        for source, output in zip(calls, root.outputs[index]):
            _write(output, source.inputs[index])


def _scatter(calls: "list[Call]") -> None:
    root = calls[calls[0].root]
    for index in range(len(root.outputs)):
        for call, value in zip(calls, root.inputs[index]):
            _write(call.outputs[index], value)


def _broadcast(calls: "list[Call]") -> None:
    root = calls[calls[0].root]
    for call in calls:
        if call is not root:
            for value, output in zip(root.inputs, call.outputs):
                _write(output, value)


def _reduce_scatter(calls: "list[Call]") -> None:
    for index in range(len(calls[0].outputs)):
        for place, call in enumerate(calls):
            pieces = [source.inputs[index][place] for source in calls]
            _write(call.outputs[index], _reduced(pieces, calls[0].reduce_op))


def _reduce_scatter_single(calls: "list[Call]") -> None:
    size = len(calls)
    for index in range(len(calls[0].outputs)):
        value = _reduced(
            [call.inputs[index].reshape(-1) for call in calls], calls[0].reduce_op
        )
        for call, piece in zip(calls, value.chunk(size)):
            _write(call.outputs[index], piece)


def _split(tensor: torch.Tensor, splits: "tuple[int, ...]", size: int):
    return tensor.split(splits or [tensor.shape[0] // size] * size)


def _all_to_all_single(calls: "list[Call]") -> None:
    size = len(calls)
    sent = [_split(call.inputs[0], call.input_splits, size) for call in calls]
    for place, call in enumerate(calls):
        outputs = _split(call.outputs[0].detach(), call.output_splits, size)
        for source in range(size):
            _write(outputs[source], sent[source][place].clone())


def _all_to_all(calls: "list[Call]") -> None:
    for place, call in enumerate(calls):
        for source, output in zip(calls, call.outputs):
            _write(output, source.inputs[place])


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
        tensors = _flat([[c.inputs, c.outputs] for c in calls])
        inference = any(tensor.is_inference() for tensor in tensors)
        with torch.inference_mode(inference), torch.no_grad(), _disable_current_modes():
            _RUN[call.kind](calls)
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
                differs = [t.numel() for t in _flat(call.inputs)] != [
                    t.numel() for t in _flat(first.inputs)
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


class _Work(dist.Work):
    """A _Work is a collective that has been called and may not have run yet."""

    def __init__(self, group: "SimulatedGroup", ready, what: str, result=()) -> None:
        super().__init__()
        self._group, self._ready, self._what = group, ready, what
        self._result = result

    def wait(self, timeout=None) -> bool:
        self._group.simulation.wait(self._ready, self._what)
        return True

    def synchronize(self) -> None:
        self.wait()

    def block_current_stream(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        if not self._ready():
            # A loop that asks until the work is done must let other ranks run.
            self._group.simulation.wait(self._ready, self._what)
        return True

    def is_success(self) -> bool:
        return self._ready()

    def exception(self) -> None:
        return None

    def source_rank(self) -> int:
        return -1

    def result(self):
        self.wait()
        return list(self._result)

    def get_future(self) -> Future:
        # C++ waits for a future without letting other ranks run: the value must exist.
        self.wait()
        future: Future = Future()
        future.set_result(list(self._result))
        return future


class SimulatedGroup(dist.ProcessGroup):
    """A SimulatedGroup is one rank's handle of a group of simulated ranks."""

    def __init__(
        self, simulation: Any, name: str, ranks: "tuple[int, ...]", place: int
    ) -> None:
        super().__init__(place, len(ranks))
        self.simulation = simulation
        self._ranks, self._place = ranks, place
        self._key = (name, ranks)
        self._calls = 0
        self._name = name
        self._batch: "Optional[list[_Work]]" = None

    # Methods that c10d calls on a group.

    def rank(self) -> int:
        return self._place

    def size(self) -> int:
        return len(self._ranks)

    @property
    def pg_name(self) -> str:
        return self._name

    @property
    def group_name(self) -> str:
        return self._name

    def _set_group_name(self, name: str) -> None:
        self._name = name

    def getBackendName(self) -> str:
        return "shardprop"

    # c10d asks the backend of a device for what it supports.
    supports_coalescing = supports_splitting = supports_time_estimate = False

    def _get_backend(self, device) -> "SimulatedGroup":
        return self

    def get_backend(self, device) -> "SimulatedGroup":
        return self

    def __repr__(self) -> str:
        return f"SimulatedGroup(ranks={self._ranks}, rank={self._place})"

    # The collectives.

    def _run(self, kind: str, inputs, outputs, **details) -> _Work:
        watched = self.simulation.here()
        call = Call(
            kind, self._ranks[self._place], *watched, list(inputs), list(outputs),
            **details,
        )
        key = (*self._key, self._calls)
        self._calls += 1
        self.simulation.record(
            Ran(
                kind,
                self._ranks,
                reduction_name(call.reduce_op) if call.reduce_op is not None else "",
                sum(t.numel() * t.element_size() for t in _flat(call.inputs)),
                call.place,
                call.module,
            )
        )
        meeting = self.simulation.meeting(key, len(self._ranks))
        meeting.join(self._place, call)
        return _Work(
            self,
            lambda: meeting.done,
            f"the other ranks of {list(self._ranks)} in {call.text()}",
            _flat(call.outputs),
        )

    def allreduce(self, tensors, opts=None):
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        reduce_op = dist.ReduceOp.SUM if opts is None else _op_of(opts)
        return self._run("all_reduce", tensors, tensors, reduce_op=reduce_op)

    def allreduce_coalesced(self, tensors, opts=None):
        return self.allreduce(tensors, opts)

    def reduce(self, tensors, opts):
        return self._run(
            "reduce", tensors, tensors, reduce_op=opts.reduceOp, root=opts.rootRank
        )

    def allgather(self, outputs, inputs, opts=None):
        if isinstance(inputs, torch.Tensor):
            inputs, outputs = [inputs], [outputs]
        return self._run("all_gather", inputs, outputs)

    def allgather_coalesced(self, outputs, inputs, opts=None):
        # The outputs of this call come rank by rank.
        by_tensor = [list(pieces) for pieces in zip(*outputs)]
        return self._run("all_gather", inputs, by_tensor)

    def all_gather_single(self, output, input, opts=None):
        return self._run("all_gather_single", [input], [output])

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        return self._run("all_gather_single", inputs, outputs)

    def gather(self, outputs, inputs, opts):
        return self._run("gather", inputs, outputs, root=opts.rootRank)

    def scatter(self, outputs, inputs, opts):
        return self._run("scatter", inputs, outputs, root=opts.rootRank)

    def broadcast(self, tensors, opts):
        return self._run("broadcast", tensors, tensors, root=opts.rootRank)

    def reduce_scatter(self, outputs, inputs, opts=None):
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        return self._run(
            "reduce_scatter", inputs, outputs, reduce_op=_op_of(opts)
        )

    def reduce_scatter_single(self, output, input, opts=None):
        return self._run(
            "reduce_scatter_single", [input], [output], reduce_op=_op_of(opts)
        )

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=None):
        return self._run(
            "reduce_scatter_single", inputs, outputs, reduce_op=_op_of(opts)
        )

    def all_to_all_single(
        self, output, input, output_splits=None, input_splits=None, opts=None
    ):
        return self._run(
            "all_to_all_single",
            [input],
            [output],
            input_splits=tuple(input_splits or ()),
            output_splits=tuple(output_splits or ()),
        )

    def alltoall(self, outputs, inputs, opts=None):
        return self._run("all_to_all", inputs, outputs)

    def barrier(self, opts=None):
        work = self._run("barrier", [], [])
        work.wait()
        return work

    # The names of these collectives in releases before 2.13, and in C++.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    # Point to point.

    def send(self, tensors, target: int, tag: int = 0):
        key = (*self._key, self._place, target, tag)
        place, module = self.simulation.here()
        for tensor in tensors:
            self.simulation.record(
                Ran(
                    "send", (self._ranks[self._place], self._ranks[target]), "",
                    tensor.numel() * tensor.element_size(), place, module,
                )
            )
            with torch.no_grad(), _disable_current_modes():
                self.simulation.mail(key).send(tensor.detach().clone())
        return _Work(self, lambda: True, "a send", tensors)

    def recv(self, tensors, source: int, tag: int = 0):
        mail = self.simulation.mail((*self._key, source, self._place, tag))
        numbers = [mail.receive(tensor) for tensor in tensors]
        place = self.simulation.here()[0]
        return _Work(
            self,
            lambda: mail.delivered > max(numbers, default=-1),
            f"a send of rank {self._ranks[source]}, received at {place or 'PyTorch'}",
            tensors,
        )

    def recv_anysource(self, tensors, tag: int = 0):
        raise Error(
            "SP0903",
            "a receive from any source depends on the order in which ranks run",
            self.simulation.here()[0] or "verify",
            [],
            "name the source of the receive",
        )


class Mail:
    """Mail is the queue of messages from one rank to another with one tag."""

    def __init__(self) -> None:
        self._sent: "list[torch.Tensor]" = []
        self._wanted: "list[torch.Tensor]" = []
        self._receives = 0
        #: The number of messages that a receive has got.
        self.delivered = 0

    def send(self, value: torch.Tensor) -> None:
        self._sent.append(value)
        self._deliver()

    def receive(self, tensor: torch.Tensor) -> int:
        """Adds a receive and returns its number in this queue."""
        self._wanted.append(tensor)
        self._receives += 1
        self._deliver()
        return self._receives - 1

    def _deliver(self) -> None:
        while self._sent and self._wanted:
            with torch.no_grad(), _disable_current_modes():
                _write(self._wanted.pop(0), self._sent.pop(0))
            self.delivered += 1


def _op_of(opts: Any) -> Any:
    return dist.ReduceOp.SUM if opts is None else opts.reduceOp
