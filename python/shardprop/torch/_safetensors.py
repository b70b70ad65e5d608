"""opened() reads weights in .safetensors files, and only the requested parts."""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterator, Mapping

import torch

from .._error import Error

_INDEX = "model.safetensors.index.json"


def _files(path: pathlib.Path) -> "list[pathlib.Path]":
    """Returns the files of a path: the file itself, the files that an index names, or
    the files of a folder."""
    if path.is_dir():
        index = path / _INDEX
        return _files(index) if index.exists() else sorted(path.glob("*.safetensors"))
    if path.name.endswith(".index.json"):
        named = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
        return [path.with_name(name) for name in sorted(set(named.values()))]
    return [path]


@contextlib.contextmanager
def opened(
    path: "str | os.PathLike[str]",
) -> "Iterator[Mapping[str, LazyTensor]]":
    """Yields the tensors of the files by name, before their values are read."""
    from safetensors import safe_open

    files = _files(pathlib.Path(path))
    if not files:
        raise Error(
            "SP0401",
            "no .safetensors files were found",
            os.fspath(path),
            [],
            "name a file, an index or a folder that holds some",
        )
    with contextlib.ExitStack() as open_files:
        held = {}
        for file in files:
            reader = open_files.enter_context(safe_open(file, framework="pt"))
            held.update(
                (name, LazyTensor(reader.get_slice(name))) for name in reader.keys()
            )
        yield held


# The keys are the dtype names of safetensors.
_DTYPES = {
    **{"F64": torch.float64, "F32": torch.float32, "F16": torch.float16},
    **{"BF16": torch.bfloat16, "BOOL": torch.bool, "C64": torch.complex64},
    **{"I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8},
    **{"U64": torch.uint64, "U32": torch.uint32, "U16": torch.uint16},
    **{"U8": torch.uint8, "F8_E4M3": torch.float8_e4m3fn},
    **{"F8_E5M2": torch.float8_e5m2, "F8_E8M0": torch.float8_e8m0fnu},
}


class LazyTensor:
    """A tensor of a file. narrow() only records the requested part; torch.cat() and
    copy_() read it."""

    def __init__(self, source, ranges=None):
        self._source = source
        shape = source.get_shape()
        self._ranges = ranges or [(0, size) for size in shape]

    @property
    def shape(self) -> torch.Size:
        return torch.Size(end - begin for begin, end in self._ranges)

    @property
    def dtype(self) -> torch.dtype:
        name = self._source.get_dtype()
        return _DTYPES[name] if name in _DTYPES else self.read().dtype

    def narrow(self, dim: int, start: int, length: int) -> "LazyTensor":
        ranges = list(self._ranges)
        begin = ranges[dim][0] + start
        ranges[dim] = (begin, begin + length)
        return LazyTensor(self._source, ranges)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        args = torch.utils._pytree.tree_map_only(LazyTensor, LazyTensor.read, args)
        return function(*args, **(kwargs or {}))

    def read(self) -> torch.Tensor:
        return self._source[tuple(slice(a, b) for a, b in self._ranges)]
