"""Graphs are exported programs that are read for planning."""

import io
import os
import zipfile
from typing import (
    Any,
    BinaryIO,
    Iterable,
    Mapping,
    Optional,
    Protocol,
    Sequence,
    Union,
    runtime_checkable,
)

from . import _core
from ._error import Error
from ._texts import rule_texts

Graph = _core.Graph

MAX_INPUT_BYTES = 2 << 30
# The place of the other exports among the arguments of _core.load_graph().
_OTHERS = 4


@runtime_checkable
class ExportedProgram(Protocol):
    """A torch.export.ExportedProgram, recognised by its attributes: torch need not be
    installed."""

    @property
    def graph_module(self) -> Any: ...

    @property
    def graph_signature(self) -> Any: ...


GraphLike = Union[str, "os.PathLike[str]", bytes, BinaryIO, ExportedProgram]


def load_graph(
    source: GraphLike,
    *,
    program: str = "",
    max_input_bytes: int = MAX_INPUT_BYTES,
    bounds: Optional[Mapping[str, int]] = None,
    sizes: Optional[Mapping[str, int]] = None,
    other_sizes: Union[GraphLike, Sequence[GraphLike]] = (),
    blocks: Union[int, Sequence[int], None] = None,
    rules: Union[Iterable[str], Mapping[str, str]] = (),
) -> Graph:
    """Reads a file of torch.export.save, or a program's .json or .json.gz.

    `source` is a path, the bytes of a file, an open binary file, or an ExportedProgram.
    Weights are not read. `program` names one of several in an archive. At most
    `max_input_bytes` of JSON are read, after decompression. `bounds` gives values to
    sizes that depend on data: {"u0": 128}. `sizes` gives other values to sizes than the
    export: {"batch": 64, "seq": 8192} for dims 0 and 1 of the inputs, {"image.2": 224}
    for dim 2 of the input image, {"s72": 128} for a symbol. If the export has fixed
    sizes, `other_sizes` is the same program exported at other sizes: a source like the
    first one, or several. It shows which numbers follow the sizes.

    With `blocks=80` the repeated block of the graph stands for 80, so that an export of a
    few layers suffices: the graph is that of the deep model. A model with two rows of
    equal blocks, such as an encoder and a decoder, needs a number for each: [24, 24].

    `rules` are those of plan(). A rule that states which operands an operator writes is
    needed here.

    Raises Error if the source cannot be read or is not a graph.
    """
    if isinstance(other_sizes, (list, tuple)):
        others = [_other_export(other) for other in other_sizes]
    else:
        others = [_other_export(other_sizes)]
    how = (
        max_input_bytes,
        program,
        list((bounds or {}).items()),
        list((sizes or {}).items()),
        others,
        _blocks_text(blocks),
        rule_texts(rules),
    )
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        graph = _core.load_graph(path, *how)
        # The file may have changed when the graph is pickled: _reduced() checks it.
        graph._read_from = (os.path.abspath(path), how)
        return graph
    data, name = _content(source)
    return _of_bytes(data, name, how)


def _blocks_text(blocks: Union[int, Sequence[int], None]) -> str:
    if blocks is None:
        return ""
    if isinstance(blocks, int):
        return str(blocks)
    return ",".join(str(count) for count in blocks)


def _content(source: GraphLike) -> "tuple[bytes, str]":
    """Returns the bytes of a source that is no path, and its name."""
    if isinstance(source, ExportedProgram):
        from .torch import to_json

        return to_json(source), type(source.graph_module).__name__
    name = getattr(source, "name", "graph")
    data = source.read() if hasattr(source, "read") else source
    if not isinstance(data, bytes):
        raise TypeError(
            "a graph is a path, bytes, an open binary file or an ExportedProgram, "
            f"not a {type(source).__name__}; shardprop.torch.export() makes one of "
            "a module"
        )
    return data, str(name)


def _other_export(source: GraphLike) -> "tuple[str, Optional[bytes]]":
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source), None
    data, name = _content(source)
    return name, data


def _of_bytes(data: bytes, name: str, how: "tuple[Any, ...]") -> Graph:
    graph = _core.read_graph(data, name, *how)
    graph._read_from = (data, how)
    return graph


def _without_weights(archive: "Union[str, BinaryIO]") -> bytes:
    """Returns a .pt2 archive that has only the records that planning reads."""
    out = io.BytesIO()
    with zipfile.ZipFile(archive) as whole:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as kept:
            for name in whole.namelist():
                if name.endswith(".json"):
                    kept.writestr(name, whole.read(name))
    return out.getvalue()


def _with_exports(how: "tuple[Any, ...]") -> "tuple[Any, ...]":
    """Returns `how` with the bytes of other exports in place of their paths."""
    held = []
    for name, data in how[_OTHERS]:
        if data is None:
            data = _file_bytes(name)
        elif data.startswith(b"PK"):
            data = _without_weights(io.BytesIO(data))
        held.append((name, data))
    return how[:_OTHERS] + (held,) + how[_OTHERS + 1 :]


def _file_bytes(path: str) -> bytes:
    """Returns a graph's file without weights."""
    try:
        with open(path, "rb") as file:
            is_archive = file.read(2) == b"PK"
            file.seek(0)
            return _without_weights(file) if is_archive else file.read()
    except (OSError, zipfile.BadZipFile) as failure:
        raise Error(
            "SP0401",
            f"the graph's file cannot be read again: {failure}",
            path,
            [],
            "a graph is pickled as the file that it was read from: keep the file, or "
            "give load_graph() its bytes",
        ) from None


def _reduced(graph: Graph) -> "tuple[Any, ...]":
    """Graph.__reduce__() returns the bytes of its source without weights.

    A graph that was read from a file reads it again. It raises Error if the file is
    gone or holds another program.
    """
    source, how = graph._read_from
    how = _with_exports(how)
    if isinstance(source, bytes):
        data = source
        if data.startswith(b"PK"):
            data = _without_weights(io.BytesIO(data))
        return _unpickled, (data, graph.name, how, graph.hash)
    data = _file_bytes(source)
    _unpickled(data, graph.name, how, graph.hash, source)
    return _unpickled, (data, graph.name, how, graph.hash)


def _unpickled(
    data: bytes,
    name: str,
    how: "tuple[Any, ...]",
    hash: str,
    source: str = "",
) -> Graph:
    graph = _of_bytes(data, name, how)
    if graph.hash != hash:
        raise Error(
            "SP0708",
            "the graph's file holds another program than the graph",
            source,
            [f"graph: {hash}", f"file: {graph.hash}"],
            "load the graph again",
        )
    return graph


def _shown(graph: Graph) -> str:
    """Graph.__repr__()."""
    passes = "forward and backward" if graph.has_backward else "forward"
    return (
        f"<Graph {graph.name}: {len(graph)} operators, {len(graph.inputs)} inputs, "
        f"{passes}>"
    )


def _itself(graph: Graph, memo: Any = None) -> Graph:
    """Graph.__copy__() and __deepcopy__() return the graph, which never changes."""
    return graph


Graph.__reduce__ = _reduced  # type: ignore[method-assign]
Graph.__repr__ = _shown  # type: ignore[method-assign]
Graph.__copy__ = _itself  # type: ignore[attr-defined]
Graph.__deepcopy__ = _itself  # type: ignore[attr-defined]
