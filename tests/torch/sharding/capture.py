"""The distinct operator calls of exported programs.

Read from the program's JSON alone (torch._export's schema, major 8): names,
argument values, and shape, strides and dtype of every tensor. Devices are left
out. A symbolic size stands as its hint.
"""

import dataclasses
import gzip
import json
from typing import NamedTuple

import torch

# torch._export.serde.schema.ScalarType
DTYPES = {
    1: "u8", 2: "i8", 3: "i16", 4: "i32", 5: "i64", 6: "f16", 7: "f32", 8: "f64",
    10: "c64", 11: "c128", 12: "bool", 13: "bf16", 28: "u16", 29: "f8e4m3fn",
    30: "f8e5m2", 33: "f8e8m0fnu", 34: "u32", 35: "u64",
}  # fmt: skip
TORCH_DTYPES = {
    "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32,
    "i64": torch.int64, "f16": torch.float16, "f32": torch.float32,
    "f64": torch.float64, "c64": torch.complex64, "c128": torch.complex128,
    "bool": torch.bool, "bf16": torch.bfloat16, "u16": torch.uint16,
    "u32": torch.uint32, "u64": torch.uint64, "f8e4m3fn": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2, "f8e8m0fnu": torch.float8_e8m0fnu,
}  # fmt: skip
# torch._export.serde.schema.MemoryFormat
_MEMORY_FORMATS = {
    1: "contiguous_format",
    2: "channels_last",
    3: "channels_last_3d",
    4: "preserve_format",
}


class Meta(NamedTuple):
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


@dataclasses.dataclass(frozen=True)
class Operand:
    """A tensor argument: its place among the operands of the call."""

    index: int


class Call(NamedTuple):
    op: str  # aten.mm.default
    args: tuple[tuple[str, object], ...]  # by declared name, in declared order
    inputs: tuple[Meta, ...]
    outputs: tuple[Meta, ...]

    def arg(self, name, default=None):
        return dict(self.args).get(name, default)


_NAMES = {TORCH_DTYPES[name]: name for name in DTYPES.values()}
_FORMAT_NAMES = {getattr(torch, name): name for name in _MEMORY_FORMATS.values()}


def meta_of(tensor):
    return Meta(tuple(tensor.shape), tensor.stride(), _NAMES[tensor.dtype])


def flat_tensors(results):
    """The tensors among an operator's results, lists opened."""
    if isinstance(results, torch.Tensor):
        return [results]
    if results is None or isinstance(results, (int, float, torch.SymInt)):
        return []
    return [tensor for result in results for tensor in flat_tensors(result)]


def call_of(op, given, results):
    """(call, its operands) of an operator that was given values by name, and of
    what it returned."""
    tensors = []

    def value(held):
        if isinstance(held, torch.Tensor):
            tensors.append(held)
            return Operand(len(tensors) - 1)
        if isinstance(held, torch.dtype):
            return _NAMES[held]
        if isinstance(held, torch.memory_format):
            return _FORMAT_NAMES[held]
        return tuple(map(value, held)) if isinstance(held, (list, tuple)) else held

    names = [argument.name for argument in torch_op(op)._schema.arguments]
    args = tuple((name, value(given[name])) for name in names if name in given)
    inputs = tuple(map(meta_of, tensors))
    outputs = tuple(map(meta_of, flat_tensors(results)))
    return Call(op, args, inputs, outputs), tensors


def arguments_of(call, tensors):
    """The call's arguments by name, with these tensors for its operands."""

    def value(held):
        if isinstance(held, Operand):
            return tensors[held.index]
        if isinstance(held, tuple):
            return [value(element) for element in held]
        return TORCH_DTYPES.get(held, held) if isinstance(held, str) else held

    given = {name: value(held) for name, held in call.args}
    if given.get("memory_format") is not None:
        given["memory_format"] = getattr(torch, given["memory_format"])
    return given


def torch_op(name):
    namespace, base, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), base), overload)


def number(value):
    """Returns a float, which JSON writes as text if it is not finite."""
    special = {"Infinity": float("inf"), "-Infinity": -float("inf")}
    if value == "NaN":
        return float("nan")
    return special.get(value, value) if isinstance(value, str) else value


def _size(size):
    if "as_int" in size:
        return size["as_int"]
    return size["as_expr"]["hint"]["as_int"]


class _Program:
    def __init__(self, graph):
        self.graph = graph

    def meta(self, name):
        tensor = self.graph["tensor_values"][name]
        return Meta(
            tuple(map(_size, tensor["sizes"])),
            tuple(map(_size, tensor["strides"])),
            DTYPES[tensor["dtype"]],
        )

    def sym_int(self, arg):
        if "as_int" in arg:
            return arg["as_int"]
        return _size(self.graph["sym_int_values"][arg["as_name"]])

    def value(self, arg, inputs):
        """An argument; its tensors are appended to `inputs`."""
        ((kind, held),) = arg.items()

        def operand(name):
            inputs.append(self.meta(name))
            return Operand(len(inputs) - 1)

        if kind in ("as_tensor", "as_optional_tensor"):
            return operand(held["name"]) if "name" in held else None
        if kind == "as_tensors":
            return tuple(operand(tensor["name"]) for tensor in held)
        if kind == "as_optional_tensors":
            return tuple(self.value(tensor, inputs) for tensor in held)
        if kind in ("as_none", "as_device", "as_layout"):
            return None
        if kind == "as_scalar_type":
            return DTYPES[held]
        if kind == "as_memory_format":
            return _MEMORY_FORMATS[held]
        if kind == "as_sym_int":
            return self.sym_int(held)
        if kind == "as_sym_ints":
            return tuple(map(self.sym_int, held))
        if kind in ("as_float", "as_floats"):
            return tuple(map(number, held)) if kind[-1] == "s" else number(held)
        return tuple(held) if isinstance(held, list) else held

    def calls(self):
        for node in self.graph["nodes"]:
            name = node["target"].removeprefix("torch.ops.")
            if not name.startswith("aten.") or name.startswith("aten.sym_"):
                continue
            given = {i["name"]: i["arg"] for i in node["inputs"]}
            inputs, args = [], []
            for declared in torch_op(name)._schema.arguments:
                if declared.name in given:
                    value = self.value(given[declared.name], inputs)
                    if value is not None or not declared.has_default_value():
                        args.append((declared.name, value))
            outputs = []
            for output in node["outputs"]:
                if "as_tensor" in output:
                    outputs.append(self.meta(output["as_tensor"]["name"]))
                elif "as_tensors" in output:
                    outputs += [self.meta(t["name"]) for t in output["as_tensors"]]
            yield Call(name, tuple(args), tuple(inputs), tuple(outputs))


def distinct_calls(paths):
    """Every call of the programs once, by operator name."""
    calls = {}
    for path in paths:
        with gzip.open(path) as file:
            graph = json.load(file)["graph_module"]["graph"]
        calls.update(dict.fromkeys(_Program(graph).calls()))
    return sorted(calls, key=lambda call: call.op)


def batch_line(call, mesh, *, outputs=True, placements=None, shardings=None):
    """The call as a line for `shardprop propagate --batch`, with or without its
    results; `placements` are those of every operand, or, by operand, lists of them.
    `shardings` are factor shardings that strategies may have."""
    by_operand = placements if placements and isinstance(placements[0], list) else None

    def placed(index):
        if placements is None:
            return {}
        return {"placements": by_operand[index] if by_operand else placements}

    def tensor(meta):
        return {
            "shape": list(meta.shape),
            "strides": list(meta.strides),
            "dtype": meta.dtype,
        }

    def value(held):
        if isinstance(held, Operand):
            return tensor(call.inputs[held.index]) | placed(held.index)
        if isinstance(held, tuple):
            return [value(element) for element in held]
        if isinstance(held, float) and held in (float("inf"), -float("inf")):
            return "Infinity" if held > 0 else "-Infinity"
        return held

    line = {
        "op": call.op,
        "mesh": list(mesh),
        "kwargs": {name: value(held) for name, held in call.args},
    }
    if shardings:
        line["factor_shardings"] = shardings
    return line | ({"outputs": list(map(tensor, call.outputs))} if outputs else {})
