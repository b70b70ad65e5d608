"""Graphs: exported programs, read for planning."""

import os
from typing import Any, BinaryIO, Mapping, Optional, Protocol, Union, runtime_checkable

from . import _core

Graph = _core.Graph

_MAX_INPUT_BYTES = 2 << 30


@runtime_checkable
class ExportedProgram(Protocol):
    """A torch.export.ExportedProgram, told by what it holds: torch need not be
    there."""

    @property
    def graph_module(self) -> Any: ...

    @property
    def graph_signature(self) -> Any: ...


GraphLike = Union[str, "os.PathLike[str]", bytes, BinaryIO, ExportedProgram]


def load_graph(
    source: GraphLike,
    *,
    program: str = "",
    max_input_bytes: int = _MAX_INPUT_BYTES,
    bounds: Optional[Mapping[str, int]] = None,
) -> Graph:
    """Reads what torch.export.save wrote, or a program's .json or .json.gz.

    `source` is a path, the bytes of a file, an open binary file, or an
    ExportedProgram. Weights are not read. `program` names one of several in an
    archive; at most `max_input_bytes` of JSON are read, after decompression.
    `bounds` says how large sizes are that depend on data: {"u0": 128}.

    Raises Error: what cannot be read, or is no graph.
    """
    how = (max_input_bytes, program, dict(bounds or {}))
    if isinstance(source, (str, os.PathLike)):
        return _core.load_graph(os.fspath(source), *how)
    if isinstance(source, ExportedProgram):
        from .torch import to_json

        name = type(source.graph_module).__name__
        return _core.read_graph(to_json(source), name, *how)
    name = getattr(source, "name", "graph")
    data = source.read() if hasattr(source, "read") else source
    if not isinstance(data, bytes):
        raise TypeError(
            "a graph is a path, bytes, an open binary file or an ExportedProgram, "
            f"not a {type(source).__name__}; shardprop.torch.export() makes one of "
            "a module"
        )
    return _core.read_graph(data, str(name), *how)
