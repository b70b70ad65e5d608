"""Calls on which strategies were once wrong: reproducers.jsonl, one a line.

    {"class": "G", "call": {"op": …, "mesh": [2], "args": […]},
     "values": {"1": [0, -1]}}

`call` is a line that `shardprop propagate` reads; `values` are those of some
operands, and the others are sampled. `class` is a letter of failure_classes;
`report` names the report against PyTorch's own sharding, which is right here.
"""

import json
import pathlib
import random

import torch
from torch.utils import _pytree as pytree

from .capture import TORCH_DTYPES, call_of, number, torch_op
from .drawn_calls import Drawn
from .drawn_calls.drawer import Drawer
from .op_samples import exact_copy

_FILE = pathlib.Path(__file__).with_suffix(".jsonl")


def _drawn(line):
    op = line["call"]["op"]
    d = Drawer(op, random.Random(0))
    values = line.get("values", {})
    count = 0

    def value(held, declared):
        nonlocal count
        if isinstance(held, dict):
            dtype = TORCH_DTYPES[held["dtype"]]
            shape, strides = tuple(held["shape"]), held.get("strides")
            given = values.get(str(count))
            count += 1
            if given is not None:
                drawn = torch.tensor(given, dtype=dtype).reshape(shape)
                if strides is None:
                    return drawn
                return torch.empty_strided(shape, strides, dtype=dtype).copy_(drawn)
            if strides is None:
                return d.values(shape, dtype)
            # Elements may have gaps between them, or share memory.
            span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
            return d.values((span,), dtype).as_strided(shape, strides)
        if isinstance(held, list):
            return [value(element, None) for element in held]
        if declared is not None and "ScalarType" in str(declared.real_type):
            return TORCH_DTYPES.get(held)
        return number(held)

    declared = torch_op(op)._schema.arguments
    given = dict(
        zip((a.name for a in declared), line["call"].get("args", ()), strict=False)
    )
    given |= line["call"].get("kwargs", {})
    args = {a.name: value(given[a.name], a) for a in declared if a.name in given}
    copies = pytree.tree_map_only(torch.Tensor, exact_copy, args)
    call, inputs = call_of(op, args, torch_op(op)(**copies))
    return Drawn(call, tuple(inputs))


def reproducers():
    """[(class, mesh, Drawn)]"""
    lines = [json.loads(text) for text in _FILE.read_text().splitlines()]
    return [
        (line["class"], tuple(line["call"]["mesh"]), _drawn(line)) for line in lines
    ]
