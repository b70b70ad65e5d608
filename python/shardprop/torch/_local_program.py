"""A local program replaces an operator on each rank by a list of steps.

It also runs under LocalTensorMode, in which one process simulates every rank and
numbers that differ by rank are symbols.
"""

import functools
import re
from typing import Any, Optional

import torch
from torch.distributed._local_tensor import (
    LocalIntNode,
    LocalTensor,
    enabled_local_tensor_mode,
)
from torch.utils._pytree import tree_flatten, tree_unflatten

from . import _moves
from ._layout import DTYPES

# Local strides may require a copy even if the strides of the full tensor do not.
OF_VIEWS = {
    torch.ops.aten.view.default: torch.ops.aten.reshape.default,
    torch.ops.aten._unsafe_view.default: torch.ops.aten.reshape.default,
    torch.ops.aten.view_as.default: torch.ops.aten.reshape_as.default,
}


def is_symbol(value: Any) -> bool:
    return isinstance(value, torch.SymInt)


def _overload(name: str):
    namespace, packet, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)


def _is_reference(value: Any) -> bool:
    """Returns whether an argument of a step is a result of an earlier step."""
    if isinstance(value, list):
        return any(_is_reference(item) for item in value)
    return isinstance(value, tuple) and bool(value) and value[0] == "ref"


def _looked_up(value: Any, results: list) -> Any:
    """Returns the value of a reference, or of a list of references."""
    if isinstance(value, list):
        return [_looked_up(item, results) for item in value]
    if not _is_reference(value):
        return value
    _, step, index = value
    return None if index < 0 else results[step + 1][index]


def _constant(value: Any) -> Any:
    """Returns an argument of a step in PyTorch's form."""
    if isinstance(value, list):
        return [_constant(item) for item in value]
    if isinstance(value, tuple) and value:
        if value[0] == "dtype":
            return DTYPES[value[1]]
        if value[0] == "named":
            return getattr(torch, value[1], None)
    return value


def merge(per_rank: "dict[int, Any]") -> Any:
    """Merges the programs or arguments of several ranks. They differ in integers only,
    which become symbols."""
    values = list(per_rank.values())
    first = values[0]
    if all(value == first for value in values):
        return first
    if isinstance(first, (list, tuple)):
        merged = [
            merge({rank: value[i] for rank, value in per_rank.items()})
            for i in range(len(first))
        ]
        return tuple(merged) if isinstance(first, tuple) else merged
    return torch.SymInt(LocalIntNode(per_rank))


@functools.lru_cache(maxsize=None)
def numbers_of(op) -> "frozenset[str]":
    """Returns the arguments that accept a number but no symbol. Only the text of the
    schema distinguishes them."""
    return frozenset(re.findall(r"\b(?:int|Scalar)\?? (\w+)", str(op._schema)))


def _of_each_rank(value: Any) -> "Optional[dict[int, Any]]":
    """Returns the value of each rank, or None if all ranks have the same value."""
    if isinstance(value, LocalTensor):
        return value._local_tensors
    if is_symbol(value) and isinstance(value.node, LocalIntNode):
        return value.node._local_ints
    return None


def rank_by_rank(op, args, kwargs) -> LocalTensor:
    """Runs the operator under LocalTensorMode, on each rank's tensors with its own
    numbers."""
    leaves, tree = tree_flatten((list(args), dict(kwargs)))
    by_rank = [_of_each_rank(leaf) for leaf in leaves]
    ranks = set.intersection(*(set(held) for held in by_rank if held is not None))

    def run(rank):
        own = [
            leaf if held is None else held[rank]
            for leaf, held in zip(leaves, by_rank)
        ]
        own_args, own_kwargs = tree_unflatten(own, tree)
        return op(*own_args, **own_kwargs)

    with enabled_local_tensor_mode().disable():
        return LocalTensor({rank: run(rank) for rank in sorted(ranks)})


class _Operator:
    """A step that calls an operator."""

    def __init__(self, name, arguments):
        op = _overload(name)
        self._op = OF_VIEWS.get(op, op)
        self._constants = {
            key: _constant(value)
            for key, value in arguments
            if not _is_reference(value)
        }
        self._references = [
            (key, value) for key, value in arguments if _is_reference(value)
        ]
        symbols = [key for key, value in self._constants.items() if is_symbol(value)]
        self._by_rank = not numbers_of(self._op).isdisjoint(symbols)

    def __call__(self, results: list) -> list:
        given = dict(self._constants)
        for key, value in self._references:
            given[key] = _looked_up(value, results)
        if self._by_rank:
            made = rank_by_rank(self._op, (), given)
        else:
            made = self._op(**given)
        return list(made) if isinstance(made, (tuple, list)) else [made]


class _Collective:
    """A step that runs a collective."""

    def __init__(self, kind, reference, reduce_op, mesh_dims, mesh):
        if kind not in ("all_reduce", "all_gather"):
            raise NotImplementedError(f"a {kind} inside an operator")
        self._reference = reference
        self._moves = []
        for dim in reversed(mesh_dims):
            size, group = mesh.size(dim), mesh._dim_group_names[dim]
            if size == 1:
                continue
            if kind == "all_reduce":
                self._moves.append(_moves.reduction(reduce_op, group))
            else:
                self._moves.append(_moves.gather(0, size, group))

    def __call__(self, results: list) -> list:
        value = _looked_up(self._reference, results).contiguous()
        for move in self._moves:
            value = move(value)
        return [value]


class Program:
    """A local program. Everything that does not change between calls is computed
    once."""

    def __init__(self, program, mesh):
        steps, self._outputs = program
        self._steps = [
            _Collective(*step[1:], mesh)
            if step[0] == "collective"
            else _Operator(*step[1:])
            for step in steps
        ]

    def __call__(self, operands: list) -> list:
        results = [operands]
        for step in self._steps:
            results.append(step(results))
        return [_looked_up(reference, results) for reference in self._outputs]
