"""These calls replace an operator of DTensor on each rank. They run the moves, then the
operator with this rank's numbers, or its local program.
"""

from typing import Any, Optional

import torch
from torch.distributed._local_tensor import enabled_local_tensor_mode
from torch.distributed.tensor import Replicate
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._utils import ExplicitRedistributionContext
from torch.distributed.tensor.placement_types import _StridedShard

from ._local_program import (
    OF_VIEWS,
    Program,
    is_symbol,
    merge,
    numbers_of,
    rank_by_rank,
)


def whole_spec(mesh, meta: TensorMeta) -> DTensorSpec:
    return DTensorSpec(mesh, (Replicate(),) * mesh.ndim, tensor_meta=meta)


def _meta_of(tensor: torch.Tensor) -> TensorMeta:
    return TensorMeta(tensor.shape, tensor.stride(), tensor.dtype)


def for_this_rank(specs, ask) -> Any:
    """Calls ask(index of a rank on the mesh) for the ranks that this process
    simulates."""
    mode = enabled_local_tensor_mode()
    if mode is None:
        return ask(specs.index[torch.distributed.get_rank()])
    return {rank: ask(specs.index[rank]) for rank in mode.ranks if rank in specs.index}


class MovedCall:
    """An operator on operands that move first. It is the operator of an
    OutputSharding's redistribute_schema."""

    def __init__(self, op, moves, slots):
        self._op = op
        self._moves = moves  # operand -> Walk
        # The place of each operand: (position or name, index in a list).
        self._slots = slots
        places = [(*slots[operand], walk) for operand, walk in moves.items()]
        # Operands that are positional arguments by themselves, which is the most common
        # and fastest case.
        self._direct = [
            (where, walk)
            for where, index, walk in places
            if index is None and isinstance(where, int)
        ]
        self._all_direct = len(self._direct) == len(places)
        self.__name__ = f"shardprop.{op}"

    def __repr__(self):
        return self.__name__

    def copies(self) -> bool:
        """Returns whether a view from this call shares no memory with its source."""
        return bool(self._moves)

    def _moved(self, operands):
        self._observe()
        for index, walk in self._moves.items():
            operands[index] = walk(operands[index])
        return operands

    def _observe(self):
        # Only the context ExplicitRedistributionContext observes moves.
        if getattr(ExplicitRedistributionContext._local, "_active", None) is None:
            return
        for walk in self._moves.values():
            ExplicitRedistributionContext.observe_redistribution(
                walk.path[0], walk.path[-1], f"Implicit redistribution for {self._op}"
            )

    def _with_moved(self, args, kwargs):
        """Returns the arguments with moved tensors."""
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
    """An operator on full tensors whose result shapes are known only after its run."""

    def __init__(self, op, moves, slots, mesh):
        super().__init__(op, moves, slots)
        self._mesh = mesh
        #: The specs of the results of the last call.
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
    """The operator, or its local program, with each rank's own arguments. `kernel` runs
    in place of the operator if it is given."""

    def __init__(self, op, sharding, specs, moves, slots, kernel=None):
        super().__init__(op, moves, slots)
        self._sharding = sharding
        self._specs = specs
        self._of_ranks = {}
        # These flags are read on every call.
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
        self._runs = kernel or OF_VIEWS.get(op, op)

    def copies(self) -> bool:
        return bool(self._moves) or self._is_program

    def written_out(self, args) -> "Optional[tuple]":
        """Returns the operator to run and `args` with the numbers that all ranks share.
        Returns None if the call needs more than numbers, or if they differ by rank."""
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
        """Returns whether the call is the operator itself on the unmoved local
        tensors."""
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
        """Returns the program, or the arguments that differ, for the simulated
        ranks."""
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
                    found = merge(found)
                else:
                    names = next(iter(found.values()))
                    found = {
                        name: merge({r: v[name] for r, v in found.items()})
                        for name in names
                    }
            if self._is_program:
                found = Program(found, self._specs.mesh)
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
            symbols = [name for name, value in values.items() if is_symbol(value)]
            if symbols and not numbers_of(self._op).isdisjoint(symbols):
                return rank_by_rank(self._runs, args, kwargs)
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
    """A call whose result is written into its first argument, in the layout of the
    argument."""

    def __init__(self, op, call: LocalCall, back):
        self._call = call
        self._back = back
        self.__name__ = f"shardprop.{op}"

    def __repr__(self):
        return self.__name__

    def __call__(self, target, *args, **kwargs):
        result = self._call(target, *args, **kwargs)
        return target.copy_(self._back(result))


class Copied:
    """A call whose results are copied, for operators with the name of a view and
    `_copy`."""

    def __init__(self, call: LocalCall):
        self._call = call
        self.__name__ = f"{call}_copy"

    def __repr__(self):
        return self.__name__

    def __call__(self, *args, **kwargs):
        made = self._call(*args, **kwargs)
        if isinstance(made, (list, tuple)):
            return type(made)(part.clone() for part in made)
        return made.clone()
