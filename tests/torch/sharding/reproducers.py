"""Calls on which strategies were once wrong: reproducers.jsonl, one a line.

    {"class": "G", "call": {"op": …, "mesh": [2], "args": […]},
     "values": {"1": [0, -1]}}

`call` is what `shardprop propagate` reads; `values` are those of some operands, the
others are drawn. `class` is a letter of failure_classes; `report` names what was
reported against PyTorch's own sharding, and is right here.
"""

import json
import pathlib
import random

import torch

from .capture import TORCH_DTYPES, call_of, number, torch_op
from .drawn_calls import Drawn
from .drawn_calls.drawer import Drawer

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
            given = values.get(str(count))
            count += 1
            if given is None:
                drawn = d.values(tuple(held["shape"]), dtype)
            else:
                drawn = torch.tensor(given, dtype=dtype).reshape(held["shape"])
            if "strides" not in held:
                return drawn
            laid_out = torch.empty_strided(held["shape"], held["strides"], dtype=dtype)
            return laid_out.copy_(drawn)
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
    copies = {
        n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in args.items()
    }
    call, inputs = call_of(op, args, torch_op(op)(**copies))
    return Drawn(call, tuple(inputs))


def reproducers():
    """[(class, mesh, Drawn)]"""
    lines = [json.loads(text) for text in _FILE.read_text().splitlines()]
    return [
        (line["class"], tuple(line["call"]["mesh"]), _drawn(line)) for line in lines
    ]
