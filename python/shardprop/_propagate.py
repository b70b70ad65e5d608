"""propagate() finds the sharding of one operator on sharded tensors."""

import atexit
import functools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _core
from ._mesh import MeshLike, mesh_text
from ._texts import dtype_text, is_torch, operator_text, rule_texts, topology_text

_TENSOR = re.compile(r"\s*[a-z]+\d*\w*\[[\d,\s]*\]")


@dataclass(frozen=True)
class OpSharding:
    """OpSharding has the layouts with which an operator runs."""

    inputs: "tuple[str, ...]"  # layouts the operator needs, "S(0),R"
    outputs: "tuple[str, ...]"  # "f32[16,4] P(sum)"
    #: Inputs that must move, with the collectives that move them.
    moves: "dict[int, tuple[str, ...]]"
    redistribute_us: float
    inside_us: float  # collectives inside the operator

    def __str__(self) -> str:
        lines = [f"inputs   {', '.join(self.inputs)}"]
        for index, steps in self.moves.items():
            lines.append(f"move     input {index}: {', '.join(steps)}")
        lines.append(f"outputs  {', '.join(self.outputs)}")
        return "\n".join(lines)


def _file_versions(paths: "Iterable[str]") -> "tuple[tuple[Any, ...], ...]":
    """Returns what changes if one of the files is another file or is edited."""
    versions: "list[tuple[Any, ...]]" = []
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            continue
        versions.append((os.path.abspath(path), found.st_mtime_ns, found.st_size))
    return tuple(versions)


@functools.lru_cache(maxsize=64)
def _propagator(
    mesh: str,
    topology: str,
    rules: "tuple[str, ...]",
    files: "tuple[tuple[Any, ...], ...]",
) -> _core.Propagator:
    """Returns a propagator, which has read the files that the texts name. `files` is
    only a part of the key: an edited file is read again."""
    dims = []
    for index, entry in enumerate(mesh.split(",")):
        name, _, size = entry.rpartition("=")
        try:
            dims.append((name.strip() or f"d{index}", int(size)))
        except ValueError:
            # It reports the error of the notation.
            _core.canonical(mesh, [1], "R")
            raise
    return _core.Propagator(dims, [], topology, rules)


# Propagators must be freed before the extension is unloaded.
atexit.register(_propagator.cache_clear)


def propagate(
    mesh: MeshLike,
    op: Any,
    args: "Sequence[Any]",
    kwargs: "Optional[Mapping[str, Any]]" = None,
    *,
    topology: Union[str, "os.PathLike[str]"] = "dgx-h100",
    rules: Union[Iterable[Any], Mapping[str, str]] = (),
) -> OpSharding:
    """Returns the sharding of least cost for one operator on sharded tensors.

    >>> print(propagate("tp=2", "aten.mm.default", ["f32[16,8] S(1)", "f32[8,4] R"]))
    inputs   S(1), S(0)
    move     input 1: slice R -> S(0)
    outputs  f32[16,4] P(sum)

    `op` is a name or torch.ops.aten.mm.default. A tensor is written as dtype, sizes and
    layout. Dtypes, devices and memory formats are names or torch's objects, and all
    other values are themselves. `rules` are those of plan(). Raises Error.
    """
    machine, texts = topology_text(topology), tuple(rule_texts(rules))
    paths = [machine, *(text[1:] for text in texts if text.startswith("@"))]
    propagator = _propagator(mesh_text(mesh), machine, texts, _file_versions(paths))

    def given(value: Any) -> Any:
        if isinstance(value, str):
            if not _TENSOR.match(value):
                return dtype_text(value)
            dtype, bracket, rest = value.partition("[")
            return propagator.parse(dtype_text(dtype.strip()) + bracket + rest)
        if is_torch(value, "dtype", "device", "layout", "memory_format"):
            return dtype_text(value)
        if isinstance(value, (list, tuple)):
            return [given(item) for item in value]
        return value

    found = propagator.propagate(
        operator_text(op),
        [given(value) for value in args],
        {name: given(value) for name, value in (kwargs or {}).items()},
    )
    return OpSharding(
        inputs=tuple(found.inputs),
        outputs=tuple(
            f"{dtype}[{','.join(map(str, shape))}] {layout}"
            for shape, _, dtype, layout in found.outputs
        ),
        moves={
            index: tuple(f"{kind} {src} -> {dst}" for kind, src, dst in steps)
            for index, steps in found.moves.items()
        },
        redistribute_us=found.redistribute_us,
        inside_us=found.inside_us,
    )
