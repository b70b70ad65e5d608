"""count() compares the bytes that a plan predicts with the bytes that ranks send."""

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Optional

import torch
from torch.distributed.distributed_c10d import _resolve_process_group
from torch.utils._python_dispatch import TorchDispatchMode

from .._plan import Plan
from . import _steps

# Maps operators to the kinds of a plan. A permutation is an exchange in which every
# rank sends to one other.
_KINDS = {
    "all_gather_into_tensor": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "all_reduce": "all_reduce",
    "all_to_all_single": "all_to_all",
}
_NAMESPACES = ("_c10d_functional", "_c10d_functional_autograd", "c10d", "_dtensor")
_SILENT = ("wait_tensor", "_wrap_tensor_autograd", "barrier", "monitored_barrier_")


@dataclass(frozen=True)
class Collective:
    """One collective. It belongs to a copy of the plan, or is inside an operator if
    `copy` is None. If `node` is None too, it is outside the program.
    """

    copy: Optional[int]
    node: Optional[str]
    kind: str  # all_gather, reduce_scatter, all_reduce, all_to_all, ...
    group: str  # as the program names it: shardprop_dp_tp
    # Predicted: of the rank that sends most. Executed: what this rank sends.
    bytes: int
    # Predicted: set if each rank's own bytes follow from layouts.
    step: "Optional[_steps.Step]" = field(default=None, repr=False, compare=False)
    # Predicted inside an operator with shards of several sizes: each rank sends at most
    # `bytes`.
    uneven: bool = False

    def __str__(self) -> str:
        if self.copy is not None:
            where = f"copy {self.copy}"
        else:
            where = f"inside {self.node}" if self.node else "outside the program"
        return f"{self.kind} on {self.group} of {self.bytes} B, {where}"


@dataclass(frozen=True)
class Match:
    predicted: Collective
    executed: Collective


class Count:
    """The predicted and the executed collectives of every call of a planned module
    inside the `with` block. Each list is in the order of execution.
    """

    def __init__(self, predicted: "list[Collective]"):
        self.predicted = predicted
        self.executed: "list[Collective]" = []
        self.calls = 0
        self.matched: "list[Match]" = []
        self.missing: "list[Collective]" = []
        self.extra: "list[Collective]" = []
        self._of_rank = 0

    @property
    def ok(self) -> bool:
        """Returns whether every predicted collective ran, with its bytes, and no other
        ran."""
        return self.calls > 0 and not self.missing and not self.extra

    @property
    def bytes(self) -> int:
        """Returns the bytes that this rank sent."""
        return sum(collective.bytes for collective in self.executed)

    @property
    def predicted_bytes(self) -> int:
        """Returns the bytes of all calls; each collective counts the rank that sends
        most."""
        return self.calls * sum(collective.bytes for collective in self.predicted)

    @property
    def predicted_bytes_of_this_rank(self) -> int:
        """Returns the predicted bytes of this rank for all calls. Inside operators with
        shards of several sizes the plan has no such figure, and the bytes sent count
        instead."""
        return self._of_rank

    @property
    def kinds(self) -> "dict[str, int]":
        """Counts the collectives that ran, by kind. A matched one has the plan's
        kind."""
        counts: "dict[str, int]" = defaultdict(int)
        for match in self.matched:
            counts[match.predicted.kind] += 1
        for collective in self.extra:
            counts[collective.kind] += 1
        return dict(counts)

    def __str__(self) -> str:
        lines = [
            f"{self.calls} calls: {len(self.matched)} collectives matched, "
            f"{len(self.missing)} missing, {len(self.extra)} extra; "
            f"{self.bytes} B sent of {self.predicted_bytes_of_this_rank} B "
            f"predicted (the busiest rank: {self.predicted_bytes} B)"
        ]
        lines += [f"  missing  {collective}" for collective in self.missing]
        lines += [f"  extra    {collective}" for collective in self.extra]
        return "\n".join(lines)

    def _compare(self, executed: "list[Collective]", rank: int) -> None:
        """Adds one call. The collectives of each copy or node are compared in order."""
        self.calls += 1
        waiting: "dict[tuple, list[Collective]]" = defaultdict(list)
        for collective in executed:
            waiting[_place(collective)].append(collective)
        for predicted in self.predicted:
            sent = _bytes_of_rank(predicted, rank)
            found = next(
                (
                    one
                    for one in waiting[_place(predicted)]
                    if _fits(one, predicted, sent, rank)
                ),
                None,
            )
            if found is None:
                self._of_rank += sent
                self.missing.append(predicted)
            else:
                self._of_rank += found.bytes
                waiting[_place(predicted)].remove(found)
                self.matched.append(Match(predicted, found))
        for rest in waiting.values():
            self.extra += rest


def _place(collective: Collective) -> tuple:
    return (collective.copy, None if collective.copy is not None else collective.node)


def _bytes_of_rank(predicted: Collective, rank: int) -> int:
    step = predicted.step
    return predicted.bytes if step is None else step.bytes_of_rank(rank)


def _fits(executed: Collective, predicted: Collective, sent: int, rank: int) -> bool:
    kind = "all_to_all" if predicted.kind == "permute" else predicted.kind
    if (executed.kind, executed.group) != (kind, predicted.group):
        return False
    if predicted.uneven:
        return executed.bytes <= sent
    if predicted.step is None or executed.bytes == sent:
        return executed.bytes == sent
    return sent < executed.bytes <= predicted.step.padded_bytes_of_rank(rank)


class _Predicted:
    """_Predicted lists the collectives of a plan."""

    def __init__(self, plan: Plan):
        self._mesh = plan.mesh
        self._shapes = {name: one["shape"] for name, one in plan.values.items()}
        for node in plan.nodes:
            for output in node["outputs"]:
                self._shapes[output["name"]] = output["shape"]
        self.collectives: "list[Collective]" = []
        buckets: "dict[int, list[list[dict]]]" = defaultdict(list)
        for copy in plan.copies:
            if "bucket" in copy:
                buckets[copy["bucket"]].append(copy["steps"])
                continue
            for step in copy["steps"]:
                self._add(step, self._shapes[copy["from"]], copy=copy["id"], node=None)
        # The steps of a bucket run once, for its first copy. All shards are even.
        for first, members in buckets.items():
            for steps in zip(*members, strict=True):
                sent = sum(step["bytes_per_rank"] for step in steps)
                self._add({**steps[0], "bytes_per_rank": sent}, None, copy=first, node=None)
        for node in plan.nodes:
            held = [(one["from"], one["placements"]) for one in node["inputs"]]
            held += [(one["name"], one["placements"]) for one in node["outputs"]]
            uneven = not all(self._is_even(*one) for one in held)
            for step in node["inside"]:
                self._add(step, None, copy=None, node=node["id"], uneven=uneven)

    def _add(self, step, shape, copy, node, uneven=False):
        kind = step["collective"]
        if kind == "slice":
            return
        group = "_".join(["shardprop", *step["mesh_dims"]])
        known = None if shape is None else _steps.Step(self._mesh, shape, step)
        self.collectives.append(
            Collective(copy, node, kind, group, step["bytes_per_rank"], known, uneven)
        )

    def _is_even(self, name, placements):
        """Returns whether a tensor's shards all have one size; False if unknown."""
        if name not in self._shapes or placements is None:
            return False
        parts = [1] * len(self._shapes[name])
        for text, size in zip(placements, self._mesh.values()):
            cut = re.match(r"SS?\((\d+)(?:,(\d+))?", text)
            if cut:
                parts[int(cut[1])] *= size * int(cut[2] or 1)
        return all(n % k == 0 for n, k in zip(self._shapes[name], parts))


def _nbytes(value) -> int:
    return math.prod(value.shape) * value.element_size()


def _sent(name: str, args: tuple, group) -> int:
    """Returns the bytes that this rank sends, by the formulas of plan prices."""
    ranks = group.size()
    size = _nbytes(args[0])
    if name == "all_gather_into_tensor":
        return size * (ranks - 1)
    if name == "reduce_scatter_tensor":
        return size // ranks * (ranks - 1)
    if name == "all_reduce":
        item = args[0].element_size()
        return 2 * (ranks - 1) * -(-(size // item) // ranks) * item
    if name == "all_to_all_single":
        splits = list(args[2])
        own = splits[group.rank()]
        row = size // sum(splits) if sum(splits) else 0
        return (sum(splits) - own) * row
    return size


class _Mode(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.at: "tuple[Optional[int], Optional[str]]" = (None, None)
        self.call: "list[Collective]" = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace in _NAMESPACES:
            name = func._schema.name.split("::")[1]
            if name not in _SILENT:
                self.call.append(self._collective(name, args, kwargs or {}))
        return func(*args, **(kwargs or {}))

    def _collective(self, name, args, kwargs):
        tensors = [
            value
            for value in torch.utils._pytree.tree_leaves((args, kwargs))
            if isinstance(value, torch.Tensor)
        ]
        group = args[-1] if isinstance(args[-1], str) else ""
        if name in _KINDS:
            sent = _sent(name, args, _resolve_process_group(group))
        else:
            sent = sum(map(_nbytes, tensors))
        return Collective(*self.at, _KINDS.get(name, name), group, sent)


class _Announcing(torch.fx.Interpreter):
    """Runs a program node by node and announces the copy or node of each."""

    def __init__(self, graph_module, mode):
        super().__init__(graph_module)
        self._mode = mode

    def run_node(self, node):
        custom = node.meta.get("custom", {}).get("shardprop", {})
        self._mode.at = (custom.get("copy"), custom.get("node"))
        try:
            return super().run_node(node)
        finally:
            self._mode.at = (None, None)


_active: "list[count]" = []


class count:
    """Counts the bytes that planned modules send inside a `with` block.

        with sp.torch.count(plan) as counted:
            module(ids, labels)
        print(counted)           # 92 collectives matched, 0 missing, 0 extra; ...
        assert counted.ok

    Every collective that runs is looked up in the plan, by its copy or by the operator
    that contains it. It matches if kind, group and bytes match. A plan has the bytes of
    the busiest rank. With shards of several sizes, and in exchanges, the bytes of this
    rank follow from its layouts. Inside an operator with such shards, any number up to
    the bytes of the busiest rank matches. Collectives that others start (DTensor, an
    optimizer) are extra.

    One process is enough for a mesh of any size: the fake process group sends no bytes,
    and FakeTensorMode allocates none. During the count, a compiled module runs its
    uncompiled program.
    """

    def __init__(self, plan: Plan):
        self._count = Count(_Predicted(plan).collectives)
        self._mode = _Mode()

    def __enter__(self) -> Count:
        self._mode.__enter__()
        _active.append(self)
        return self._count

    def __exit__(self, *failure):
        _active.remove(self)
        self._mode.__exit__(*failure)
        self._note_outside()
        if self._count.calls == 0:
            self._count.missing += self._count.predicted

    def _note_outside(self):
        self._count.executed += self._mode.call
        self._count.extra += self._mode.call
        self._mode.call = []

    def _run(self, graph_module, arguments, rank):
        self._note_outside()
        results = _Announcing(graph_module, self._mode).run(*arguments)
        executed, self._mode.call = self._mode.call, []
        self._count.executed += executed
        self._count._compare(executed, rank)
        return results


def run_counted(graph_module, runner, arguments, rank):
    """Runs a rank's program, under the innermost count() if there is one. `rank`
    is the row-major index on the mesh."""
    if not _active:
        return runner(*arguments)
    return _active[-1]._run(graph_module, arguments, rank)
