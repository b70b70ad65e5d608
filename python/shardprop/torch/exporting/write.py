"""Writes an ExportedProgram as .pt2, bare .json or .json.gz."""

import contextlib
import gzip
import json
import pathlib

from torch._export.serde.serialize import serialize
from torch.export.pt2_archive import constants
from torch.export.pt2_archive._package import PT2ArchiveWriter
from torch.utils._pytree import TreeSpec, treespec_dumps

SUFFIXES = (".pt2", ".json", ".json.gz")
_NO_PAYLOAD = json.dumps({"config": {}})


def to_json(program, device):
    """Returns the program's JSON text; every device in it is `device`."""
    with _written_structure(program):
        artifact = serialize(
            program,
            serialize_state_dict=False,
            serialize_constants=False,
            serialize_example_inputs=False,
        )
    document = json.loads(artifact.exported_program)
    _set_device(document, device)
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def _writable(spec):
    """Returns a structure in which types without a name in a file, such as torch.max's,
    are tuples."""
    children = [_writable(child) for child in spec.children()]
    kind, context = spec.type, spec.context
    if not spec.is_leaf():
        try:
            treespec_dumps(TreeSpec(kind, context, []))
        except NotImplementedError:
            kind, context = tuple, None
    return TreeSpec(kind, context, children)


@contextlib.contextmanager
def _written_structure(program):
    called = program.module_call_graph[0].signature
    own = called.in_spec, called.out_spec
    called.in_spec, called.out_spec = map(_writable, own)
    try:
        yield
    finally:
        called.in_spec, called.out_spec = own


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


def _write_archive(path, text):
    """Writes the archive of torch.export.save without weights, since there are none."""
    model = "model"
    with PT2ArchiveWriter(str(path)) as archive:
        archive.write_bytes(constants.MODELS_FILENAME_FORMAT.format(model), text)
        for payload in (
            constants.WEIGHTS_CONFIG_FILENAME_FORMAT,
            constants.CONSTANTS_CONFIG_FILENAME_FORMAT,
        ):
            archive.write_string(payload.format(model), _NO_PAYLOAD)


def is_writable_name(path):
    return str(path).endswith(SUFFIXES)


def write(program, path, device="cpu"):
    """Writes the form that the suffix names; the same program gives the same bytes.

    Precondition: is_writable_name(path).
    """
    path = pathlib.Path(path)
    text = to_json(program, device)
    if path.name.endswith(".json.gz"):
        path.write_bytes(gzip.compress(text, compresslevel=9, mtime=0))
    elif path.suffix == ".json":
        path.write_bytes(text)
    else:
        _write_archive(path, text)
