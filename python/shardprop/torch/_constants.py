"""A program itself contains some values: constants made in forward, and buffers that no
state dict holds."""

import os
import pathlib
import re
import zipfile
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.export.pt2_archive import constants as names
from torch.export.pt2_archive._package import (
    PT2ArchiveReader,
    _load_constants,
    _load_payload_config,
)


def _is_real(value):
    return (
        isinstance(value, torch.Tensor)
        and not isinstance(value, FakeTensor)
        and value.device.type != "meta"
    )


def _model_of(records: "list[str]") -> str:
    """Returns the program that load_graph() reads: the only one, or `model`."""
    found = {
        pathlib.PurePath(record).stem
        for record in records
        if re.search(r"(^|/)models/[^/]+\.json$", record)
    }
    return found.pop() if len(found) == 1 else "model"


def _of_archive(path):
    """Returns the constants of an archive that have bytes. It unpickles nothing.

    Archives of PyTorch before 2.8 store constants pickled: the result is empty.
    """
    with zipfile.ZipFile(path) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    model = _model_of(list(sizes))
    config_file = names.CONSTANTS_CONFIG_FILENAME_FORMAT.format(model)
    if not any(record.endswith(f"/{config_file}") for record in sizes):
        return {}
    with PT2ArchiveReader(path) as archive:
        config = _load_payload_config(archive, config_file).config
        if any(
            payload.use_pickle
            or not payload.path_name.startswith(names.TENSOR_CONSTANT_FILENAME_PREFIX)
            for payload in config.values()
        ):
            return {}
        found = _load_constants(archive, model)
    # A fake tensor was saved without bytes and would be read as zeros.
    bytes_of = {
        pathlib.PurePath(record).name: size
        for record, size in sizes.items()
        if names.CONSTANTS_DIR in record
    }
    return {
        name: value
        for name, value in found.items()
        if bytes_of[config[name].path_name] or value.numel() == 0
    }


def carried(exported: Any) -> "dict[str, torch.Tensor]":
    """Returns the real values of an ExportedProgram or an archive, by name."""
    if hasattr(exported, "graph_signature"):
        held = {**exported.state_dict, **exported.constants}
        return {name: value for name, value in held.items() if _is_real(value)}
    if isinstance(exported, (str, os.PathLike)):
        path = os.fspath(exported)
        if path.endswith(".pt2"):
            return _of_archive(path)
    return {}
