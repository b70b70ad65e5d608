"""SimulatedGroup is a process group of c10d whose ranks are threads of this process.

A collective starts when all ranks of the group have called it. Calls of different kinds
or sizes are an error that names the lines of both calls.

A rank gets the result of a collective when it waits for it. Before the wait the floating
point outputs are NaN, so that a missing wait is seen. A wait also ends the earlier
collectives of the same group, which run in order.
"""

from typing import Any, Optional

import torch
import torch.distributed as dist
from torch.futures import Future
from torch.utils._python_dispatch import _disable_current_modes

from ..._error import Error
from .collectives import (
    Call,
    Ran,
    copied,
    fix,
    flat,
    has_changed,
    hide,
    on_values,
    reduction_name,
    write,
)


class _Work(dist.Work):
    """A _Work is a collective that has been called and may not have run yet."""

    def __init__(
        self, group: "SimulatedGroup", ready, what: str, result=(), deliver=None
    ) -> None:
        """`deliver()` gives this rank the results."""
        super().__init__()
        self._group, self._ready, self._what = group, ready, what
        self._result, self._deliver = result, deliver

    def wait(self, timeout=None) -> bool:
        self._group.simulation.wait(self._ready, self._what)
        if self._deliver is not None:
            self._deliver()
            self._deliver = None
        return True

    def synchronize(self) -> None:
        self.wait()

    def block_current_stream(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        # A loop that asks until the work is done must let other ranks run.
        return self.wait()

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


class _Works(dist.Work):
    """_Works are the collectives of one coalescing manager."""

    def __init__(self, works: "list[_Work]") -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout=None) -> bool:
        return all([work.wait() for work in self._works])

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self.wait()

    def result(self):
        return [value for work in self._works for value in work.result()]


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
        #: The collectives, and the receives, for which this rank has not waited.
        self.pending: "list[Call]" = []
        self.received: "list[Call]" = []
        #: The collectives since _start_coalescing(), or None.
        self._coalesced: "Optional[list[_Work]]" = None
        simulation.state.groups.append(self)

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

    def _start_coalescing(self, device) -> None:
        self._coalesced = []

    def _end_coalescing(self, device) -> _Works:
        works, self._coalesced = self._coalesced or [], None
        return _Works(works)

    def _called(self, work: _Work) -> _Work:
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    # The collectives.

    def _run(self, kind: str, inputs, outputs, **details) -> _Work:
        watched = self.simulation.here()
        call = Call(
            kind, self._ranks[self._place], *watched, list(inputs), list(outputs),
            **details,
        )
        text = call.text()
        key = (*self._key, self._calls)
        self._calls += 1
        self.simulation.record(
            Ran(
                kind,
                self._ranks,
                reduction_name(call.reduce_op) if call.reduce_op is not None else "",
                sum(t.numel() * t.element_size() for t in flat(call.inputs)),
                call.place,
                call.module,
            ),
            flat(call.inputs),
        )
        written = flat(self._written(call))
        with on_values(flat([call.inputs, call.outputs])):
            given, call.inputs = call.inputs, copied(call.inputs)
            for output in written if len(self._ranks) > 1 else ():
                hide(output)
            if len(self._ranks) > 1:
                fix(call, flat(given), written)
        if written:
            self.pending.append(call)
        meeting = self.simulation.meeting(key, len(self._ranks))
        meeting.join(self._place, call)
        if len(self._ranks) == 1:
            # The model on one device has its result at once.
            self._deliver(call)
        return self._called(_Work(
            self,
            lambda: meeting.done,
            f"the other ranks of {list(self._ranks)} in {text}",
            flat(call.outputs),
            lambda: self._deliver(call),
        ))

    def _written(self, call: Call) -> "list[Any]":
        """Returns the outputs that this rank gets."""
        is_root = call.root == self._place
        if call.kind == "broadcast":
            return [] if is_root else call.outputs
        if call.kind in ("reduce", "gather"):
            return call.outputs if is_root else []
        return call.outputs

    def _deliver(self, call: Call) -> None:
        """Gives this rank the results of a call and of the earlier ones."""
        if not any(call is other for other in self.pending):
            return
        while True:
            first = self.pending.pop(0)
            with on_values(flat([[t for t, *_ in first.fixed], first.inputs])):
                if has_changed(first):
                    self.simulation.state.changed.append(first)
            first.fixed = []
            with on_values([output for output, _ in first.results]):
                for output, value in first.results:
                    write(output, value)
            first.results = []
            if first is call:
                return

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
                ),
                [tensor],
            )
            with torch.no_grad(), _disable_current_modes():
                self.simulation.mail(key).send(tensor.detach().clone())
        return self._called(_Work(self, lambda: True, "a send", tensors))

    def recv(self, tensors, source: int, tag: int = 0):
        mail = self.simulation.mail((*self._key, source, self._place, tag))
        numbers = [mail.receive() for _ in tensors]
        place, module = self.simulation.here()
        call = Call("recv", self._ranks[self._place], place, module, [], list(tensors))
        with on_values(list(tensors)):
            for tensor in tensors:
                hide(tensor)
        self.received.append(call)

        def deliver() -> None:
            self.received = [other for other in self.received if other is not call]
            with on_values(list(tensors)):
                for tensor, number in zip(tensors, numbers):
                    write(tensor, mail.take(number))

        return self._called(_Work(
            self,
            lambda: mail.has(max(numbers, default=-1)),
            f"a send of rank {self._ranks[source]}, received at {place or 'PyTorch'}",
            tensors,
            deliver,
        ))

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
        #: The messages that no receive has taken, by number.
        self._sent: "dict[int, torch.Tensor]" = {}
        self._sends = self._receives = 0

    def send(self, value: torch.Tensor) -> None:
        self._sent[self._sends] = value
        self._sends += 1

    def receive(self) -> int:
        """Adds a receive and returns the number of its message."""
        self._receives += 1
        return self._receives - 1

    def has(self, number: int) -> bool:
        """Returns whether a message has been sent."""
        return number < self._sends

    def take(self, number: int) -> torch.Tensor:
        return self._sent.pop(number)


def _op_of(opts: Any) -> Any:
    return dist.ReduceOp.SUM if opts is None else opts.reduceOp
