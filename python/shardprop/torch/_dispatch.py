"""This module builds answers for DTensor's dispatcher: the arguments that its caches
compare, and the call that it runs in place of an operator."""

from typing import Optional

import torch
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._op_schema import (
    OpSchema,
    OutputSharding,
    RuntimeSchemaInfo,
)


class Infos(dict):
    """The arguments that a cached answer depends on: by default all of them."""

    def get(self, op, default=None):
        found = super().get(op)
        if found is None and isinstance(op, torch._ops.OpOverload):
            found = self[op] = whole_key(op, None)
        return found


def whole_key(op, info: Optional[RuntimeSchemaInfo]) -> RuntimeSchemaInfo:
    keywords = [
        a.name for a in op._schema.arguments if a.kwarg_only and not a.is_out
    ]
    return RuntimeSchemaInfo(
        static_argnum=0,
        static_kwargkey=keywords + ["out"] if keywords else None,
        needs_pytree=info is not None and info.needs_pytree,
    )


class AsItLies(DTensorSpec):
    """This spec equals any spec, so that the dispatcher, which compares, moves no
    operand."""

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = DTensorSpec.__hash__


def _unmoved(value):
    if isinstance(value, DTensorSpec):
        return AsItLies(value.mesh, value.placements, tensor_meta=value.tensor_meta)
    if isinstance(value, (list, tuple)):
        return type(value)([_unmoved(item) for item in value])
    return value


def through(call, op_schema: OpSchema, output_spec) -> OutputSharding:
    """Makes the dispatcher call `call` on the local arguments."""
    args = _unmoved(op_schema.args_schema)
    schema = OpSchema(call, args, op_schema.kwargs_schema)
    return OutputSharding(output_spec, schema, needs_redistribute=True)


def in_numbers(op, args, op_schema: OpSchema, output_spec) -> OutputSharding:
    """Makes the dispatcher call `op` on the local tensors and these numbers."""
    schema = OpSchema(op, _unmoved(tuple(args)), op_schema.kwargs_schema)
    return OutputSharding(
        output_spec,
        schema,
        needs_redistribute=True,
        use_val_from_redistribute_schema=True,
    )


def instead(op_schema: OpSchema, sharding: OutputSharding, wrap) -> OutputSharding:
    """Returns the answer `sharding` with wrap(call) in place of the call that the
    ranks run. The dispatcher still moves the operands that it moves for
    `sharding`."""
    run = sharding.redistribute_schema if sharding.needs_redistribute else None
    if run is None:
        return through(wrap(op_schema.op), op_schema, sharding.output_spec)
    args = _unmoved_if_equal(op_schema.args_schema, run.args_schema)
    return OutputSharding(
        sharding.output_spec,
        OpSchema(wrap(run.op), args, op_schema.kwargs_schema),
        needs_redistribute=True,
        use_val_from_redistribute_schema=sharding.use_val_from_redistribute_schema,
    )


def _unmoved_if_equal(given, wanted):
    if isinstance(wanted, DTensorSpec):
        return _unmoved(wanted) if wanted == given else wanted
    if isinstance(wanted, (list, tuple)) and isinstance(given, (list, tuple)):
        # DTensor may append arguments of its own.
        made = [
            _unmoved_if_equal(given[i], item) if i < len(given) else item
            for i, item in enumerate(wanted)
        ]
        return type(wanted)(made)
    return wanted


def unmoved_by_dispatcher(
    call, op_schema: OpSchema, sharding: OutputSharding
) -> OutputSharding:
    """Returns the answer `sharding`, but runs `call` on the unmoved local arguments,
    with the numbers of `sharding`."""
    run = sharding.redistribute_schema
    return OutputSharding(
        sharding.output_spec,
        OpSchema(call, _unmoved(run.args_schema), op_schema.kwargs_schema),
        needs_redistribute=True,
        use_val_from_redistribute_schema=sharding.use_val_from_redistribute_schema,
    )


class _Measured(OutputSharding):
    """The spec of the output is known after each run of the call, and may differ."""

    @property
    def output_spec(self):
        return self.redistribute_schema.op.output_spec

    @output_spec.setter
    def output_spec(self, spec):
        pass


def measured(call, op_schema: OpSchema) -> OutputSharding:
    """Does the same as through() for a call that reports its output after each run."""
    args = _unmoved(op_schema.args_schema)
    schema = OpSchema(call, args, op_schema.kwargs_schema)
    return _Measured(None, schema, needs_redistribute=True)
