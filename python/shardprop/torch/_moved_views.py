"""A view whose source had to move is a copy; no write is lost silently between the two.

DTensor's views share memory with their source as long as no rank moves data. If the
source is redistributed first, or a local program makes the view, the result may be a
copy. A write into it would not reach the source, and a write into the source would not
reach it.

The spec of this view has a class of its own, so that the caches of DTensor's dispatcher
distinguish it, and its local tensor has an `Origin`. Operators that read or write the
view take the slow path of the dispatcher, where `_stale_views` refuses the view if
its source was written after it was made. Every operator that writes into the view runs
guarded: a write is refused as long as the memory of the source is in use. Afterwards no
reader can miss the write (gradients are examples).
"""

import dataclasses
from typing import Any, Optional

import torch
from torch.distributed._functional_collectives import _are_we_tracing
from torch.distributed._local_tensor import LocalTensor
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._op_schema import OpSchema, OutputSharding
from torch.multiprocessing.reductions import StorageWeakRef

from ._dispatch import AsItLies, instead, unmoved_by_dispatcher
from ._local_call import MovedCall
from ._operands import Operands, require_reassembled
from ._redistribution import Walk

_ORIGIN = "_shardprop_origin"


@dataclasses.dataclass(eq=False)
class Origin:
    """The origin of a view that is a copy. The results of one call share it, and so do
    views of them that share their memory."""

    #: The memory from which the view was copied.
    sources: "tuple[StorageWeakRef, ...]"
    #: The version of the viewed tensor when the view was last known to equal it. A
    #: write into the view makes this unknown until the next check.
    version: Optional[int] = None


def origin_of(local) -> Optional[Origin]:
    """Returns the origin of a local tensor, or None for a tensor that is not a copy."""
    return getattr(local, _ORIGIN, None)


class MovedViewSpec(DTensorSpec):
    """The spec of a view that may be a copy. It equals no ordinary spec."""

    def __eq__(self, other):
        if isinstance(other, AsItLies):
            return True
        return isinstance(other, MovedViewSpec) and super().__eq__(other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((super().__hash__(), "a view that is a copy"))


def answered(op_schema: OpSchema, propagate) -> OutputSharding:
    """Returns the answer of `propagate`. Writes into marked views are guarded, and
    results that may be copies are marked."""
    plain = _without_marks(op_schema)
    sharding = propagate(plain)
    is_copy = plain is not op_schema
    if is_copy and _writes_elements(op_schema):
        written = [
            (position, argument.name)
            for position, argument in enumerate(op_schema.op._schema.arguments)
            if _is_write(argument) and torch.Tag.inplace_view not in op_schema.op.tags
        ]
        run = instead(plain, sharding, lambda call: _GuardedWrite(call, written))
        # An out= tensor, or a tensor that is viewed in place, gets this spec.
        run.output_spec = _marked(run.output_spec)
        return run
    if not any(_is_view(returned) for returned in op_schema.op._schema.returns):
        return _on_slow_path(plain, sharding) if is_copy else sharding
    if _moves_by_stock(plain, sharding):
        sharding = _moved_by_us(plain, sharding)
    if not is_copy and not _copies(sharding):
        return sharding
    run = instead(plain, sharding, MakesCopies)
    run.output_spec = _marked(run.output_spec)
    return run


def _on_slow_path(op_schema: OpSchema, sharding: OutputSharding) -> OutputSharding:
    """Returns the same answer as one that takes the dispatcher's slow path."""
    if sharding.needs_redistribute:
        return sharding
    return instead(op_schema, sharding, lambda call: call)


class MakesCopies:
    """A call of a view operator whose results record their origin."""

    def __init__(self, call):
        self._call = call
        self.__name__ = f"{call}"

    def __repr__(self):
        return self.__name__

    def __call__(self, source, *args, **kwargs):
        made = self._call(source, *args, **kwargs)
        if not _are_we_tracing():  # a traced tensor has no memory
            views = made if isinstance(made, (list, tuple)) else [made]
            _note_origin(views, source)
        return made


class _GuardedWrite:
    """A call that writes into tensors, and some of them may be copies."""

    def __init__(self, call, written):
        self._call = call
        self._written = written
        self.__name__ = f"{call}"

    def __repr__(self):
        return self.__name__

    def __call__(self, *args, **kwargs):
        for position, name in self._written:
            value = args[position] if position < len(args) else kwargs.get(name)
            for target in value if isinstance(value, (list, tuple)) else [value]:
                self._require_unobserved(target, name)
        return self._call(*args, **kwargs)

    def _require_unobserved(self, target, name):
        origin = origin_of(target)
        if origin is None or all(source.expired() for source in origin.sources):
            if origin is not None:
                origin.version = None  # the write changes it
            return
        raise RuntimeError(
            f"{self.__name__} writes into `{name}`, a view that is a copy: its "
            "source was redistributed to make it, so that the write would not reach "
            "the source. Redistribute the source first, so that the viewed dims are "
            "not sharded, or write into the source itself (torch.where, "
            "torch.slice_scatter, torch.select_scatter)"
        )


def _storages(tensor) -> list:
    parts = (
        tensor._local_tensors.values() if isinstance(tensor, LocalTensor) else [tensor]
    )
    return [part.untyped_storage() for part in parts]


def _note_origin(views, source) -> None:
    before = origin_of(source)
    sources = {storage._cdata: storage for storage in _storages(source)}
    made = None
    for view in views:
        shared = {storage._cdata for storage in _storages(view)}
        copied_from = [s for address, s in sources.items() if address not in shared]
        if not copied_from:
            if before is not None:
                setattr(view, _ORIGIN, before)
            continue
        if made is None:
            known = () if before is None else before.sources
            made = Origin((*known, *map(StorageWeakRef, copied_from)))
        setattr(view, _ORIGIN, made)


def _each_spec(value: Any, change) -> Any:
    if isinstance(value, DTensorSpec):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)([_each_spec(item, change) for item in value])
    return value


def _marked(made: Any) -> Any:
    return _each_spec(made, lambda spec: _copied(MovedViewSpec, spec))


def _copied(cls, spec: DTensorSpec) -> DTensorSpec:
    strided = spec.use_strided_shard_as_shard_order
    return cls(
        spec.mesh,
        spec.placements,
        tensor_meta=spec.tensor_meta,
        shard_order=None if strided else spec.shard_order,
        use_strided_shard_as_shard_order=strided,
    )


def _is_marked(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_is_marked(item) for item in value)
    return isinstance(value, MovedViewSpec)


def _without_marks(op_schema: OpSchema) -> OpSchema:
    """Returns the call with ordinary specs, or the call itself if it has no others."""
    kwargs = op_schema.kwargs_schema
    if not _is_marked(op_schema.args_schema) and not _is_marked([*kwargs.values()]):
        return op_schema

    def plain(spec):
        return _copied(DTensorSpec, spec) if _is_marked(spec) else spec

    return OpSchema(
        op_schema.op,
        _each_spec(op_schema.args_schema, plain),
        {name: _each_spec(value, plain) for name, value in kwargs.items()},
        schema_info=op_schema.schema_info,
    )


def _is_write(declared) -> bool:
    return declared.alias_info is not None and declared.alias_info.is_write


def _is_view(declared) -> bool:
    return declared.alias_info is not None and not declared.alias_info.is_write


def _writes_elements(op_schema: OpSchema) -> bool:
    """Returns whether the call writes into a marked operand."""
    declared = op_schema.op._schema.arguments
    given = dict(zip((a.name for a in declared), op_schema.args_schema))
    given.update(op_schema.kwargs_schema)
    return any(_is_write(a) and _is_marked(given.get(a.name)) for a in declared)


def _copies(sharding: OutputSharding) -> bool:
    """Returns whether the ranks may run another operation than a view of their local
    tensor."""
    run = sharding.redistribute_schema
    if run is None or not sharding.needs_redistribute:
        return False
    return isinstance(run.op, MovedCall) and run.op.copies()


def _moves_by_stock(op_schema: OpSchema, sharding: OutputSharding) -> bool:
    """Returns whether DTensor's dispatcher moves the operands, which it does if specs
    differ."""
    run = sharding.redistribute_schema
    if run is None or not sharding.needs_redistribute or isinstance(run.op, MovedCall):
        return False
    return any(
        isinstance(given, DTensorSpec) and given != wanted
        for given, wanted in zip(op_schema.args_schema, run.args_schema)
    )


def _moved_by_us(op_schema: OpSchema, sharding: OutputSharding) -> OutputSharding:
    """Returns the same answer with the moves in a call that has access to the
    source."""
    run = sharding.redistribute_schema
    operands = Operands(op_schema)
    wanted = Operands(OpSchema(op_schema.op, run.args_schema, op_schema.kwargs_schema))
    moves = {}
    for index, (src, dst) in enumerate(zip(operands.specs, wanted.specs)):
        if src != dst:
            require_reassembled(src)
            moves[index] = Walk([src, dst])
    call = MovedCall(op_schema.op, moves, operands.slots)
    return unmoved_by_dispatcher(call, op_schema, sharding)
