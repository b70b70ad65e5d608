"""Writes an ExportedProgram as .pt2, bare .json or .json.gz."""

import gzip
import json
import pathlib

import torch
from torch._export.serde.serialize import serialize


def to_json(program, device):
    """The program's JSON text; every device in it reads `device`."""
    artifact = serialize(
        program,
        serialize_state_dict=False,
        serialize_constants=False,
        serialize_example_inputs=False,
    )
    document = json.loads(artifact.exported_program)
    _set_device(document, device)
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def _set_device(value, device):
    if isinstance(value, dict):
        if value.keys() == {"type", "index"}:
            value["type"] = device
            value["index"] = 0 if device == "cuda" else None
            return
        value = value.values()
    elif not isinstance(value, list):
        return
    for element in value:
        _set_device(element, device)


def write(program, path, device="cpu"):
    """Writes by suffix. The same program gives the same bytes, .pt2 aside."""
    path = pathlib.Path(path)
    if path.name.endswith(".json.gz"):
        data = gzip.compress(to_json(program, device), compresslevel=9, mtime=0)
        path.write_bytes(data)
    elif path.suffix == ".json":
        path.write_bytes(to_json(program, device))
    elif path.suffix == ".pt2":
        torch.export.save(program, path)
    else:
        raise ValueError(f"{path}: the name must end in .pt2, .json or .json.gz")
