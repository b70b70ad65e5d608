"""What DTensor's dispatcher is told: which arguments its caches are to compare,
and what it runs in place of an operator."""

from typing import Optional

import torch
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._op_schema import (
    OpSchema,
    OutputSharding,
    RuntimeSchemaInfo,
)


class Infos(dict):
    """What of a call its cached answer depends on: everything, by default."""

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


class _AsItLies(DTensorSpec):
    """Equal to any spec: the dispatcher, which compares, moves nothing."""

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = DTensorSpec.__hash__


def _unmoved(value):
    if isinstance(value, DTensorSpec):
        return _AsItLies(value.mesh, value.placements, tensor_meta=value.tensor_meta)
    if isinstance(value, (list, tuple)):
        return type(value)(_unmoved(item) for item in value)
    return value


def through(call, op_schema: OpSchema, output_spec) -> OutputSharding:
    """Has the dispatcher call `call` on the local arguments."""
    args = _unmoved(op_schema.args_schema)
    schema = OpSchema(call, args, op_schema.kwargs_schema)
    return OutputSharding(output_spec, schema, needs_redistribute=True)


def in_numbers(op, args, op_schema: OpSchema, output_spec) -> OutputSharding:
    """Has the dispatcher call `op` on the local tensors and these numbers."""
    schema = OpSchema(op, _unmoved(tuple(args)), op_schema.kwargs_schema)
    return OutputSharding(
        output_spec,
        schema,
        needs_redistribute=True,
        use_val_from_redistribute_schema=True,
    )


class _Measured(OutputSharding):
    """What comes out is known when the call has run, anew each time."""

    @property
    def output_spec(self):
        return self.redistribute_schema.op.output_spec

    @output_spec.setter
    def output_spec(self, spec):
        pass


def measured(call, op_schema: OpSchema) -> OutputSharding:
    """As through(), of a call that says after each run what came out."""
    args = _unmoved(op_schema.args_schema)
    schema = OpSchema(call, args, op_schema.kwargs_schema)
    return _Measured(None, schema, needs_redistribute=True)
