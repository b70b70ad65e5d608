"""What a rank runs in place of an operator of DTensor's: our moves, then our
local program.

Runs under LocalTensorMode too, where one process plays every rank and numbers
that differ by rank are symbols.
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
from torch.distributed.tensor import Replicate
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._utils import ExplicitRedistributionContext
from torch.distributed.tensor.placement_types import _StridedShard
from torch.utils._pytree import tree_flatten, tree_unflatten

from . import _moves
from ._layout import DTYPES

# Local strides may ask for a copy where those of the whole tensor do not.
_OF_VIEWS = {
    torch.ops.aten.view.default: torch.ops.aten.reshape.default,
    torch.ops.aten._unsafe_view.default: torch.ops.aten.reshape.default,
}


def _is_symbol(value: Any) -> bool:
    return isinstance(value, torch.SymInt)


def whole_spec(mesh, meta: TensorMeta) -> DTensorSpec:
    return DTensorSpec(mesh, (Replicate(),) * mesh.ndim, tensor_meta=meta)


def _meta_of(tensor: torch.Tensor) -> TensorMeta:
    return TensorMeta(tensor.shape, tensor.stride(), tensor.dtype)


def for_this_rank(specs, ask) -> Any:
    """ask(index of a rank on the mesh), for the ranks that this process plays."""
    mode = enabled_local_tensor_mode()
    if mode is None:
        return ask(specs.index[torch.distributed.get_rank()])
    return {rank: ask(specs.index[rank]) for rank in mode.ranks if rank in specs.index}


def _overload(name: str):
    namespace, packet, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)


def _is_reference(value: Any) -> bool:
    """Whether an argument of a step is a result of an earlier one."""
    if isinstance(value, list):
        return any(_is_reference(item) for item in value)
    return isinstance(value, tuple) and bool(value) and value[0] == "ref"


def _looked_up(value: Any, results: list) -> Any:
    """A reference, or a list of some, as what it stands for."""
    if isinstance(value, list):
        return [_looked_up(item, results) for item in value]
    if not _is_reference(value):
        return value
    _, step, index = value
    return None if index < 0 else results[step + 1][index]


def _constant(value: Any) -> Any:
    """An argument of a step as PyTorch takes it."""
    if isinstance(value, list):
        return [_constant(item) for item in value]
    if isinstance(value, tuple) and value:
        if value[0] == "dtype":
            return DTYPES[value[1]]
        if value[0] == "named":
            return getattr(torch, value[1], None)
    return value


def _merge(per_rank: "dict[int, Any]") -> Any:
    """The programs or arguments of several ranks as one: they differ in integers
    only, which become symbols."""
    values = list(per_rank.values())
    first = values[0]
    if all(value == first for value in values):
        return first
    if isinstance(first, (list, tuple)):
        merged = [
            _merge({rank: value[i] for rank, value in per_rank.items()})
            for i in range(len(first))
        ]
        return tuple(merged) if isinstance(first, tuple) else merged
    return torch.SymInt(LocalIntNode(per_rank))


@functools.lru_cache(maxsize=None)
def _numbers_of(op) -> "frozenset[str]":
    """Arguments that take a number, and no symbol for it: the text alone tells."""
    return frozenset(re.findall(r"\b(?:int|Scalar)\?? (\w+)", str(op._schema)))


def _of_each_rank(value: Any) -> "Optional[dict[int, Any]]":
    """What each rank has in its place; None where all have the same."""
    if isinstance(value, LocalTensor):
        return value._local_tensors
    if _is_symbol(value) and isinstance(value.node, LocalIntNode):
        return value.node._local_ints
    return None


def _rank_by_rank(op, args, kwargs) -> LocalTensor:
    """Under LocalTensorMode: each rank's tensors with its own numbers."""
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
        self._op = _OF_VIEWS.get(op, op)
        self._constants = {
            key: _constant(value)
            for key, value in arguments
            if not _is_reference(value)
        }
        self._references = [
            (key, value) for key, value in arguments if _is_reference(value)
        ]
        symbols = [key for key, value in self._constants.items() if _is_symbol(value)]
        self._by_rank = not _numbers_of(self._op).isdisjoint(symbols)

    def __call__(self, results: list) -> list:
        given = dict(self._constants)
        for key, value in self._references:
            given[key] = _looked_up(value, results)
        if self._by_rank:
            made = _rank_by_rank(self._op, (), given)
        else:
            made = self._op(**given)
        return list(made) if isinstance(made, (tuple, list)) else [made]


class _Collective:
    """A step in which ranks meet."""

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


class _Program:
    """A local program: what is the same on every call is found out once."""

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


class MovedCall:
    """An operator on operands that are moved first; stands as the operator of an
    OutputSharding's redistribute_schema."""

    def __init__(self, op, moves, slots):
        self._op = op
        self._moves = moves  # operand -> Walk
        # Where each operand stands: (position or name, index in a list).
        self._slots = slots
        places = [(*slots[operand], walk) for operand, walk in moves.items()]
        # Those that are arguments by themselves, by position: most, and quick.
        self._direct = [
            (where, walk)
            for where, index, walk in places
            if index is None and isinstance(where, int)
        ]
        self._all_direct = len(self._direct) == len(places)
        self.__name__ = f"shardprop.{op}"

    def __repr__(self):
        return self.__name__

    def _moved(self, operands):
        self._observe()
        for index, walk in self._moves.items():
            operands[index] = walk(operands[index])
        return operands

    def _observe(self):
        # Nobody does, but within a context.
        if getattr(ExplicitRedistributionContext._local, "_active", None) is None:
            return
        for walk in self._moves.values():
            ExplicitRedistributionContext.observe_redistribution(
                walk.path[0], walk.path[-1], f"Implicit redistribution for {self._op}"
            )

    def _with_moved(self, args, kwargs):
        """The arguments, their tensors moved."""
        if self._all_direct:
            self._observe()
            args = list(args)
            for where, walk in self._direct:
                args[where] = walk(args[where])
            return args, kwargs
        return self._placed(self._moved(self._operands(args, kwargs)), args, kwargs)

    def _operands(self, args, kwargs):
        operands = []
        for where, index in self._slots:
            value = kwargs[where] if isinstance(where, str) else args[where]
            operands.append(value if index is None else value[index])
        return operands

    def _placed(self, operands, args, kwargs):
        args, kwargs = list(args), dict(kwargs)
        for (where, index), operand in zip(self._slots, operands):
            holder = kwargs if isinstance(where, str) else args
            if index is None:
                holder[where] = operand
            else:
                holder[where] = list(holder[where])
                holder[where][index] = operand
        return args, kwargs

    def __call__(self, *args, **kwargs):
        args, kwargs = self._with_moved(args, kwargs)
        return self._op(*args, **kwargs)


class MeasuredCall(MovedCall):
    """An operator on whole tensors whose results' shapes only its run tells."""

    def __init__(self, op, moves, slots, mesh):
        super().__init__(op, moves, slots)
        self._mesh = mesh
        #: Of the results of the last call.
        self.output_spec = None

    def __call__(self, *args, **kwargs):
        results = super().__call__(*args, **kwargs)
        if isinstance(results, torch.Tensor):
            self.output_spec = whole_spec(self._mesh, _meta_of(results))
        else:
            self.output_spec = tuple(
                whole_spec(self._mesh, _meta_of(result)) for result in results
            )
        return results


class LocalCall(MovedCall):
    """The operator, or its local program, with each rank's own arguments."""

    def __init__(self, op, sharding, specs, moves, slots):
        super().__init__(op, moves, slots)
        self._sharding = sharding
        self._specs = specs
        self._of_ranks = {}
        # Asked for on every call.
        self._is_program = sharding.needs_program
        self._differs = sharding.has_rank_arguments
        schema = op._schema
        self._places = {a.name: i for i, a in enumerate(schema.arguments)}
        self._written = [
            a.name
            for a in schema.arguments
            if a.alias_info is not None and a.alias_info.is_write
        ]
        returns, slots = schema.returns, sharding.output_slots
        self._returns_one = len(returns) == 1
        self._returns_list = len(returns) == 1 and str(returns[0].type)[:4] == "List"
        self._result_slots = slots if 1 < len(returns) == len(slots) else None
        self._runs = _OF_VIEWS.get(op, op)

    def written_out(self, args) -> "Optional[tuple]":
        """The operator to run and `args` with the numbers that every rank has;
        None where it takes more than numbers, or they differ by rank."""
        if self._moves or self._is_program:
            return None
        values = self._sharding.shared_arguments()
        if values is None:
            return None
        args = list(args)
        for name, value in values.items():
            place = self._places[name]
            if place >= len(args):
                return None
            args[place] = value
        return self._runs, args

    def is_plain(self) -> bool:
        """Whether it is the operator itself on the local tensors as they are."""
        return not (
            self._moves
            or self._is_program
            or self._differs
            or self._runs is not self._op
        )

    def moves_strided(self) -> bool:
        return any(
            isinstance(placement, _StridedShard)
            for walk in self._moves.values()
            for placement in walk.path[0].placements
        )

    def _rank_values(self):
        """The program, or the arguments that differ, for the ranks played here."""
        mode = enabled_local_tensor_mode()
        key = None if mode is None else mode.ranks
        if key not in self._of_ranks:
            ask = (
                self._sharding.program
                if self._is_program
                else self._sharding.rank_arguments
            )
            found = for_this_rank(self._specs, ask)
            if mode is not None:
                if self._is_program:
                    found = _merge(found)
                else:
                    names = next(iter(found.values()))
                    found = {
                        name: _merge({r: v[name] for r, v in found.items()})
                        for name in names
                    }
            if self._is_program:
                found = _Program(found, self._specs.mesh)
            self._of_ranks[key] = found
        return self._of_ranks[key]

    def __call__(self, *args, **kwargs):
        if self._is_program:
            operands = self._moved(self._operands(args, kwargs))
            return self._run_program(operands, args, kwargs)
        if self._moves:
            args, kwargs = self._with_moved(args, kwargs)
        if self._differs:
            values = self._rank_values()
            args, kwargs = self._with_values(values, args, kwargs)
            symbols = [name for name, value in values.items() if _is_symbol(value)]
            if symbols and not _numbers_of(self._op).isdisjoint(symbols):
                return _rank_by_rank(self._runs, args, kwargs)
        return self._runs(*args, **kwargs)

    def _with_values(self, values, args, kwargs):
        args, kwargs = list(args), dict(kwargs)
        for name, value in values.items():
            at = self._places[name]
            if at < len(args):
                args[at] = value
            else:
                kwargs[name] = value
        return args, kwargs

    def _run_program(self, operands, args, kwargs):
        results = self._rank_values()(operands)
        if self._written:
            targets = []
            for name in self._written:
                at = self._places[name]
                targets.append(args[at] if at < len(args) else kwargs[name])
            for target, result in zip(targets, results):
                target.copy_(result)
            results = targets
        if self._returns_one:
            return results if self._returns_list else results[0]
        if self._result_slots is None:
            return tuple(results)
        return tuple(None if at < 0 else results[at] for at in self._result_slots)


class WrittenBack:
    """A call whose result is written into its first argument, as that lies."""

    def __init__(self, op, call: LocalCall, back):
        self._call = call
        self._back = back
        self.__name__ = f"shardprop.{op}"

    def __call__(self, target, *args, **kwargs):
        result = self._call(target, *args, **kwargs)
        return target.copy_(self._back(result))


class Copied:
    """A call whose results are copied: of operators named after a view's."""

    def __init__(self, call: LocalCall):
        self._call = call
        self.__name__ = f"{call}_copy"

    def __call__(self, *args, **kwargs):
        made = self._call(*args, **kwargs)
        if isinstance(made, (list, tuple)):
            return type(made)(part.clone() for part in made)
        return made.clone()
