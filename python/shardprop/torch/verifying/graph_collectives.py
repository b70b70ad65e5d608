"""These functions run collectives of a traced graph on simulated groups.

A graph that was traced on another process group contains that group as a constant. The
group of the same name, or of the same ranks, takes its place.
"""

import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Callable

import torch
import torch.distributed as dist

from ..._error import Error
from .layouts import Grid


#: PyTorch runs this operator only on its own backends.
_GATHER_INTO = "_c10d_functional::all_gather_into_tensor_out"


def is_collective(target: Any) -> bool:
    """Returns whether run() runs an operator."""
    schema = getattr(target, "_schema", None)
    return getattr(target, "namespace", None) == "c10d" or (
        schema is not None and schema.name == _GATHER_INTO
    )


class Groups:
    """Groups finds this rank's simulated group for the group of a trace."""

    def __init__(self, names: "set[str]", grid: Grid, mesh: Any) -> None:
        """`names` are the groups that are registered by name."""
        self._names, self._grid, self._mesh = names, grid, mesh

    def find(self, boxed: Any) -> Any:
        traced = dist.ProcessGroup.unbox(boxed)
        if traced.group_name in self._names:
            return torch._C._distributed_c10d._resolve_process_group(traced.group_name)
        if traced.size() == self._grid.size:
            return dist.group.WORLD
        fitting = [
            name
            for name, size in zip(self._grid.names, self._grid.sizes)
            if size == traced.size()
        ]
        if len(fitting) == 1:
            return self._mesh.get_group(fitting[0])
        raise Error(
            "SP0903",
            "the group of a traced collective has no counterpart",
            "verify_programs()",
            [
                f"name: {traced.group_name}, ranks: {traced.size()}",
                f"mesh dims of this size: {', '.join(fitting) or 'none'}",
            ],
            "give the ranks of the group by its name: groups={'1': [[0, 1], [2, 3]]}",
        )


# The reductions that two ranks with the values 2 and 3 tell apart.
_REDUCTION_BY_RESULT = {
    5.0: dist.ReduceOp.SUM,
    2.5: dist.ReduceOp.AVG,
    6.0: dist.ReduceOp.PRODUCT,
    2.0: dist.ReduceOp.MIN,
    3.0: dist.ReduceOp.MAX,
}


def _reduction_of(boxed: torch.ScriptObject) -> Any:
    """Returns the reduction that a constant of a traced graph stands for.

    Python cannot read such a constant. Two ranks of gloo, which are threads, therefore
    reduce two numbers by it.
    """
    store = dist.HashStore()
    results: "list[Any]" = [None, None]

    def rank(index: int) -> None:
        backend = dist.ProcessGroupGloo(store, index, 2, timedelta(seconds=20))
        group = dist.ProcessGroup(store, index, 2)
        group._register_backend(
            torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, backend
        )
        value = torch.tensor([2.0 + index])
        _, work = torch.ops.c10d.allreduce_.default(
            [value], group.boxed(), boxed, None
        )
        dist.Work.unbox(work).wait()
        results[index] = value.item()

    threads = [threading.Thread(target=rank, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if results[0] not in _REDUCTION_BY_RESULT:
        raise Error(
            "SP0903",
            "the reduction of a traced collective is not known",
            "verify_programs()",
            [f"2 and 3 give {results[0]}"],
            "use the reductions sum, avg, product, min or max",
        )
    return _REDUCTION_BY_RESULT[results[0]]


def _options(reduce_op: Any = None, root: int = 0) -> Any:
    if isinstance(reduce_op, torch.ScriptObject):
        reduce_op = _reduction_of(reduce_op)
    return SimpleNamespace(reduceOp=reduce_op, rootRank=root)


def _reducing(method: str) -> "Callable[..., Any]":
    def run(find, tensors, group, reduce_op, *rest):
        getattr(find(group), method)(tensors, _options(reduce_op)).wait()
        return tensors, None

    return run


def _moving(method: str, reduces: bool = False) -> "Callable[..., Any]":
    def run(find, outputs, inputs, group, *rest):
        options = [_options(rest[0])] if reduces else []
        getattr(find(group), method)(outputs, inputs, *options).wait()
        return outputs, None

    return run


def _broadcast(find, tensors, group, root, *rest):
    find(group).broadcast(tensors, _options(root=root)).wait()
    return tensors, None


def _reduce(find, tensors, group, reduce_op, root, *rest):
    find(group).reduce(tensors, _options(reduce_op, root)).wait()


def _rooted(method: str) -> "Callable[..., Any]":
    def run(find, outputs, inputs, group, root, *rest):
        getattr(find(group), method)(outputs, inputs, _options(root=root)).wait()
        return outputs, None

    return run


def _all_to_all_single(find, output, input, group, received, sent, *rest):
    find(group).all_to_all_single(output, input, received, sent).wait()


def _send(find, tensors, group, target, tag, *rest):
    find(group).send(tensors, target, tag).wait()


def _receive(find, tensors, group, source, tag, *rest):
    find(group).recv(tensors, source, tag).wait()


def _barrier(find, tensor, group, *rest):
    find(group).barrier()


_RUN: "dict[str, Callable[..., Any]]" = {
    "allreduce_": _reducing("allreduce"),
    "allreduce_coalesced_": _reducing("allreduce"),
    "broadcast_": _broadcast,
    "reduce_": _reduce,
    "allgather_": _moving("allgather"),
    "allgather_coalesced_": _moving("allgather_coalesced"),
    "_allgather_base_": _moving("all_gather_single"),
    "allgather_into_tensor_coalesced_": _moving("all_gather_single_coalesced"),
    "reduce_scatter_": _moving("reduce_scatter", reduces=True),
    "_reduce_scatter_base_": _moving("reduce_scatter_single", reduces=True),
    "reduce_scatter_tensor_coalesced_": _moving(
        "reduce_scatter_single_coalesced", reduces=True
    ),
    "alltoall_": _moving("alltoall"),
    "alltoall_base_": _all_to_all_single,
    "gather_": _rooted("gather"),
    "scatter_": _rooted("scatter"),
    "send": _send,
    "recv_": _receive,
    "barrier": _barrier,
}


def run(groups: Groups, target: Any, args: tuple, kwargs: dict) -> Any:
    """Runs a collective, and returns what its operator returns; its work is done."""
    if target._schema.name == _GATHER_INTO:
        value, _, name = args
        group = torch._C._distributed_c10d._resolve_process_group(name)
        group.all_gather_single(kwargs["out"], value).wait()
        return kwargs["out"]
    name = target._schema.name.split("::")[1]
    if name not in _RUN:
        raise Error(
            "SP0903",
            f"the collective c10d.{name} is not simulated",
            "verify_programs()",
            [],
            "use a collective of torch.distributed or _c10d_functional",
        )
    declared = [argument.name for argument in target._schema.arguments]
    given = list(args) + [kwargs[n] for n in declared[len(args):] if n in kwargs]
    return _RUN[name](groups.find, *given)
