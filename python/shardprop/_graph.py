"""Graphs: exported programs, read for planning."""

import io
import os
from typing import TYPE_CHECKING, Union

from . import _core

if TYPE_CHECKING:
    import torch

Graph = _core.Graph

_MAX_INPUT_BYTES = 2 << 30


def load_graph(
    source: "Union[str, os.PathLike[str], bytes, io.IOBase, torch.export.ExportedProgram]",
    *,
    program: str = "",
    max_input_bytes: int = _MAX_INPUT_BYTES,
) -> Graph:
    """Reads what torch.export.save wrote, or a program's .json or .json.gz.

    `source` is a path, the bytes of a file, an open binary file, or an
    ExportedProgram. Weights are not read. `program` names one of several in an archive; at most
    `max_input_bytes` of JSON are read, after decompression.
    """
    if isinstance(source, (str, os.PathLike)):
        return _core.load_graph(os.fspath(source), max_input_bytes, program)
    if hasattr(source, "graph_signature"):
        from .torch import to_json

        name = type(source.graph_module).__name__
        return _core.read_graph(to_json(source), name, max_input_bytes, program)
    name = getattr(source, "name", "graph")
    data = source if isinstance(source, bytes) else source.read()
    return _core.read_graph(bytes(data), str(name), max_input_bytes, program)
