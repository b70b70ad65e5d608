"""These functions turn objects of PyTorch and pathlib into the library's texts.

This module does not import torch: it recognises its objects by their attributes.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional, Protocol, Union

from ._error import Error


class Placement(Protocol):
    """The methods of torch.distributed.tensor.Placement that this module calls."""

    def is_replicate(self) -> bool: ...

    def is_partial(self, reduce_op: Optional[str] = None) -> bool: ...

    def is_shard(self, dim: Optional[int] = None) -> bool: ...


# "S(0),R", or one entry for each mesh dim: ["S(0)", "R"], (Shard(0), Replicate()).
LayoutLike = Union[str, Iterable[Union[str, Placement]]]

# The library's dtypes by their names in torch and NumPy.
_DTYPES = {
    "bfloat16": "bf16",
    "bool": "bool",
    "complex128": "c128",
    "complex32": "c32",
    "complex64": "c64",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e4m3fnuz": "f8e4m3fnuz",
    "float8_e5m2": "f8e5m2",
    "float8_e5m2fnuz": "f8e5m2fnuz",
    "float8_e8m0fnu": "f8e8m0fnu",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "int8": "i8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "uint8": "u8",
}


def dtype_text(dtype: Any) -> str:
    """Returns f32 for torch.float32, "float32" and "f32".

    An unknown name is returned unchanged: the library reports it.
    """
    name = str(dtype).removeprefix("torch.")
    return _DTYPES.get(name, name)


def is_torch(value: Any, *kinds: str) -> bool:
    """Returns whether a value is a torch.dtype, torch.device, ..., by the kind's
    name."""
    return type(value).__module__ == "torch" and type(value).__name__ in kinds


def _placement_text(value: Any) -> str:
    """Returns S(0), R or P(sum) for a Placement of DTensor."""
    if isinstance(value, str):
        return value
    if callable(getattr(value, "is_replicate", None)):
        if value.is_replicate():
            return "R"
        # Other reductions (masked, norms) have types of their own.
        if type(value).__name__ == "Partial":
            return f"P({value.reduce_op})"
        if type(value).__name__ == "_StridedShard":
            return f"SS({value.dim},{value.split_factor})"
        if type(value).__name__ == "Shard":
            return f"S({value.dim})"
    raise Error(
        "SP0001",
        f"{value!r} is not a placement",
        "",
        [],
        "write S(0), R or P(sum), or give Shard(0), Replicate() or Partial()",
    )


def layout_text(layout: "LayoutLike") -> str:
    """Returns S(0),R for a text, or for placements in the order of the mesh dims."""
    if isinstance(layout, str):
        return layout
    if isinstance(layout, Iterable):
        return ",".join(map(_placement_text, layout))
    return _placement_text(layout)


def topology_text(topology: Union[str, "os.PathLike[str]"]) -> str:
    """Returns the name of a preset, or the path of a topology file."""
    return os.fspath(topology)


def operator_text(op: Any) -> str:
    """Returns aten.mm.default for a text or for torch.ops.aten.mm.default."""
    if isinstance(op, str):
        return op
    if hasattr(op, "_overloadname"):
        return str(op)
    help = "give one overload: 'aten.mm.default' or torch.ops.aten.mm.default"
    if not callable(getattr(op, "overloads", None)):
        raise Error("SP0001", f"{op!r} is not an operator", "op", [], help)
    overloads = op.overloads()
    if len(overloads) == 1:
        return f"{op}.{overloads[0]}"
    names = [f"{op}.{overload}" for overload in overloads]
    raise Error("SP0001", f"`{op}` has several overloads", "op", names, help)


def pair_texts(
    name: str,
    given: "Union[str, Iterable[Any], Mapping[str, Any], None]",
    text_of: "Callable[[Any], str]",
) -> "list[str]":
    """Returns WHAT=HOW for each entry of a text, texts, pairs or a dict.

    `text_of` returns the text of a HOW. Raises Error for any other input.
    """
    if given is None:
        return []
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable):
        raise _no_pairs(name, given)
    texts = []
    for pair in given.items() if isinstance(given, Mapping) else given:
        if isinstance(pair, str):
            texts.append(pair)
        elif isinstance(pair, Sequence) and len(pair) == 2:
            what, how = pair
            texts.append(f"{what}={text_of(how)}")
        else:
            raise _no_pairs(name, pair)
    return texts


def _no_pairs(name: str, given: Any) -> Error:
    return Error(
        "SP0001",
        f"{given!r} does not say WHAT=HOW",
        name,
        [],
        "give a dict, or texts: pins={'lm_head.weight': 'S(0),R'} or "
        "['lm_head.weight=S(0),R'], rules={'mylib.swiglu': 'pointwise()'}",
    )


def _rule_text(rule: Any) -> str:
    if isinstance(rule, str):
        return rule
    raise _no_pairs("rules", rule)


def _file_or_rule(rule: Any) -> Any:
    if isinstance(rule, os.PathLike):
        return "@" + os.path.abspath(os.fspath(rule))
    return rule


def rule_texts(
    rules: "Union[str, os.PathLike[str], Iterable[Any], Mapping[str, Any], None]",
) -> "list[str]":
    """Returns the rules in the notation of the command line: OP=ROW, or @FILE of a path."""
    if isinstance(rules, os.PathLike):
        rules = [_file_or_rule(rules)]
    elif isinstance(rules, Iterable) and not isinstance(rules, (str, Mapping)):
        rules = [_file_or_rule(rule) for rule in rules]
    return pair_texts("rules", rules, _rule_text)
