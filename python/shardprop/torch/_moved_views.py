"""Views whose source had to move: copies, into which nothing may be written.

DTensor's views share memory with their source as long as no rank moves anything.
Where the source is redistributed first, or a local program makes the view, the
result is a copy: a write into it would be lost. Such a view carries a spec of its
own class. That keeps it apart in the caches of DTensor's dispatcher, so that every
operator that would write into it is asked for here, and is refused.
"""

from typing import Any

from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._op_schema import OpSchema, OutputSharding
import torch

from ._local_call import MovedCall


class MovedViewSpec(DTensorSpec):
    """The spec of a view that is a copy. It equals no other spec."""

    def __eq__(self, other):
        return isinstance(other, MovedViewSpec) and super().__eq__(other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((super().__hash__(), "a view that is a copy"))


def _copied(cls, spec: DTensorSpec) -> DTensorSpec:
    strided = spec.use_strided_shard_as_shard_order
    return cls(
        spec.mesh,
        spec.placements,
        tensor_meta=spec.tensor_meta,
        shard_order=None if strided else spec.shard_order,
        use_strided_shard_as_shard_order=strided,
    )


def _each_spec(value: Any, change) -> Any:
    if isinstance(value, DTensorSpec):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_each_spec(item, change) for item in value)
    return value


def _holds_moved_view(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_moved_view(item) for item in value)
    return isinstance(value, MovedViewSpec)


def _unmarked(spec: DTensorSpec) -> DTensorSpec:
    return _copied(DTensorSpec, spec) if isinstance(spec, MovedViewSpec) else spec


def _given(op_schema: OpSchema) -> "list[tuple]":
    """The declared arguments that a call gives, with their values."""
    given = list(zip(op_schema.op._schema.arguments, op_schema.args_schema))
    for argument in op_schema.op._schema.arguments:
        if argument.name in op_schema.kwargs_schema:
            given.append((argument, op_schema.kwargs_schema[argument.name]))
    return given


def has_any(op_schema: OpSchema) -> bool:
    """Whether an operand of a call is such a view."""
    return _holds_moved_view(op_schema.args_schema) or _holds_moved_view(
        list(op_schema.kwargs_schema.values())
    )


def refuse_writes(op_schema: OpSchema) -> None:
    """Raises RuntimeError: the call writes into such a view."""
    if torch.Tag.inplace_view in op_schema.op.tags:
        return  # writes no element
    for argument, value in _given(op_schema):
        alias = argument.alias_info
        if alias is not None and alias.is_write and _holds_moved_view(value):
            raise RuntimeError(
                f"{op_schema.op} writes into `{argument.name}`, a view that is a "
                "copy: its source was redistributed to make it, so that the write "
                "would not reach the source. Redistribute the source first, so "
                "that the viewed dims are not sharded, or write into the source "
                "itself (torch.where, torch.slice_scatter, torch.select_scatter)"
            )


def unmarked(op_schema: OpSchema) -> OpSchema:
    """The call with ordinary specs in place of those of such views."""
    return OpSchema(
        op_schema.op,
        _each_spec(op_schema.args_schema, _unmarked),
        {
            name: _each_spec(value, _unmarked)
            for name, value in op_schema.kwargs_schema.items()
        },
        schema_info=op_schema.schema_info,
    )


def mark(op_schema: OpSchema, sharding: OutputSharding, from_copy: bool) -> None:
    """Gives results that alias an operand their own kind of spec, if `sharding`
    copies it or the operand is a copy itself (`from_copy`)."""
    returns = op_schema.op._schema.returns
    if not any(_is_view(returned) for returned in returns):
        return
    if not (from_copy or _copies(op_schema, sharding)):
        return
    made = sharding.output_spec
    if isinstance(made, DTensorSpec):
        sharding.output_spec = _copied(MovedViewSpec, made)
    elif isinstance(made, (list, tuple)):
        views = [_is_view(returned) for returned in returns]
        if len(views) == 1:
            views *= len(made)  # a list of views
        sharding.output_spec = type(made)(
            _copied(MovedViewSpec, spec)
            if view and isinstance(spec, DTensorSpec)
            else spec
            for view, spec in zip(views, made)
        )


def _is_view(returned) -> bool:
    return returned.alias_info is not None and not returned.alias_info.is_write


def _copies(op_schema: OpSchema, sharding: OutputSharding) -> bool:
    """Whether the ranks run something else than the view of what they hold."""
    moved = sharding.redistribute_schema
    if moved is None or not sharding.needs_redistribute:
        return False
    if isinstance(moved.op, MovedCall):
        return moved.op.copies()
    # DTensor's dispatcher moves the operands whose specs differ.
    return any(
        isinstance(given, DTensorSpec) and given != wanted
        for given, wanted in zip(op_schema.args_schema, moved.args_schema)
    )
