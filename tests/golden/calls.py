"""Reads tests/golden/index_spaces.list: operator calls as text.

    aten.sum.dim_IntList(f32[4,6], [1], keepdim=True) => ...

    parse('aten.mm.default(f32[4,6], f32[6,8])')
    Call(op='aten.mm.default', args=[Tensor('f32', (4, 6), None), ...], kwargs={})
"""

import ast
import pathlib
import re
from typing import NamedTuple

LIST = pathlib.Path(__file__).resolve().parent / "index_spaces.list"
_TENSOR = re.compile(r"\b([a-z]+\d\w*|bool)\[([\d,]*)\](?:\{([\d,]*)\})?")


class Tensor(NamedTuple):
    dtype: str
    shape: tuple
    strides: tuple | None  # None: contiguous


class Call(NamedTuple):
    op: str
    args: list
    kwargs: dict


def _numbers(text):
    return tuple(int(part) for part in text.split(",") if part)


def _value(node, tensors):
    if isinstance(node, ast.List):
        return [_value(element, tensors) for element in node.elts]
    if isinstance(node, ast.Name):
        return tensors.get(node.id, node.id)  # a dtype by its name
    return ast.literal_eval(node)


def parse(text):
    tensors = {}

    def stand_in(match):
        dtype, shape, strides = match.groups()
        name = f"tensor_{len(tensors)}"
        tensors[name] = Tensor(
            dtype, _numbers(shape), None if strides is None else _numbers(strides)
        )
        return name

    op, arguments = text.split("(", 1)
    call = ast.parse("f(" + _TENSOR.sub(stand_in, arguments), mode="eval").body
    return Call(
        op,
        [_value(node, tensors) for node in call.args],
        {word.arg: _value(word.value, tensors) for word in call.keywords},
    )


def lines():
    """(the call, what stands behind the arrow) of every line."""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            call, _, said = line.partition(" => ")
            yield parse(call), said
