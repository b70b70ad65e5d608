"""Lists the layouts that DTensor's own propagator accepts unchanged, on one
mesh dim.

    takes(call, ("R", "P(max)"))    # False: it would redistribute, or knows none
"""

import functools

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._op_schema import OpSchema

from .capture import TORCH_DTYPES, Operand, torch_op
from .layouts import parse

_RANKS = 2


@functools.cache
def _mesh():
    if not dist.is_initialized():
        dist.init_process_group("fake", rank=0, world_size=_RANKS)
    return dist.device_mesh.init_device_mesh("cpu", (_RANKS,))


def _placement(text):
    placement = parse(text)
    if placement.kind == "R":
        return Replicate()
    if placement.kind == "S":
        return Shard(placement.dim)
    return Partial(placement.op)


def _specs(call, inputs):
    return [
        DTensorSpec(
            _mesh(),
            (_placement(text),),
            TensorMeta(
                torch.Size(meta.shape), meta.strides, TORCH_DTYPES[meta.dtype]
            ),
        )
        for meta, text in zip(call.inputs, inputs, strict=True)
    ]


def takes(call, inputs):
    if any(text in ("P(bor)", "P(band)") for text in inputs):
        return False  # DTensor has none
    specs = _specs(call, inputs)

    def value(held):
        if isinstance(held, Operand):
            return specs[held.index]
        return [value(h) for h in held] if isinstance(held, tuple) else held

    op = torch_op(call.op)
    given = {name: value(held) for name, held in call.args}
    positional = []
    for argument in op._schema.arguments:
        if argument.kwarg_only or argument.name not in given:
            break
        positional.append(given.pop(argument.name))
    propagator = DTensor._op_dispatcher.sharding_propagator
    try:
        answer = propagator.propagate_op_sharding_non_cached(
            OpSchema(op, tuple(positional), given)
        )
    except Exception:  # noqa: BLE001  (it refuses by any exception)
        return False
    return not answer.needs_redistribute
