"""load_weights() fills a planned module; each rank reads its own part."""

import difflib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed.tensor import DTensor

from .._error import Error
from . import _constants, _layout, _safetensors

if TYPE_CHECKING:
    from ._parallel import ParallelModule

WeightSource = Union[
    nn.Module,
    torch.export.ExportedProgram,
    Mapping[str, torch.Tensor],
    str,
    "os.PathLike[str]",
]

_MOST_SHOWN = 10


def load_weights(
    module: "ParallelModule", source: WeightSource, *, strict: bool = True
) -> "list[str]":
    """Fills a module from the unsharded model, its state dict, another planned
    module, or a program that was exported with its weights. A path names a
    .safetensors file, an index (model.safetensors.index.json) or a folder of them.

    Each rank reads only its own part of a file. DTensors of another layout are
    gathered: all ranks call this together.

    With `strict` the source must have every tensor of the module, apart from
    constants that the program carries. A state dict or file must have no other
    tensor; a model may have tensors that the program does not use. Otherwise the module
    keeps the tensors that the source lacks, and this returns their names. A state
    dict lacks the buffers that are not persistent.

    Raises Error with the names of missing and unknown tensors, and of those with
    another shape or dtype. The module is unchanged then.
    """
    if hasattr(source, "graph_signature"):
        return fill(module, _constants.carried(source), strict, may_hold_more=True)
    if isinstance(source, nn.Module):
        tensors = dict(source.named_buffers(remove_duplicate=False))
        tensors.update(source.named_parameters(remove_duplicate=False))
        return fill(module, tensors, strict, may_hold_more=True)
    if isinstance(source, (str, os.PathLike)):
        with _safetensors.opened(source) as tensors:
            return fill(module, tensors, strict, os.fspath(source))
    if not isinstance(source, Mapping):
        raise Error(
            "SP0001",
            f"weights cannot be read from a {type(source).__name__}",
            "load_weights()",
            [],
            "give the model, its state dict, an ExportedProgram, or the path of a "
            ".safetensors file, of its index or of a folder",
        )
    return fill(module, source, strict)


def fill(
    module: "ParallelModule",
    source: "Mapping[str, Any]",
    strict: bool = True,
    place: str = "load_weights()",
    may_hold_more: bool = False,
) -> "list[str]":
    """Does the work of load_weights() for tensors by name; errors have `place`."""
    entries = {
        entry["name"]: entry
        for entry in module._shardings["inputs"]
        if entry["kind"] in ("parameter", "buffer", "constant")
    }
    missing = [
        name
        for name in entries
        if name not in source and name not in module._carried
    ]
    if strict:
        unknown = [] if may_hold_more else _unknown(entries, source)
        _check_names(entries, missing, unknown, place)
    known = {name: entry for name, entry in entries.items() if name in source}
    for name, entry in known.items():
        _check(source[name], entry, module._tensor(name), place)
    with torch.no_grad():
        for name, entry in known.items():
            part = _part(module, source[name], entry)
            module._tensor(name).to_local().copy_(part)
    return missing


def _unknown(
    entries: "Mapping[str, dict]", source: "Mapping[str, Any]"
) -> "list[str]":
    """Returns names that the module lacks, apart from further names of tied tensors."""
    names = [name for name in source if name not in entries]
    if not names:
        return []
    tied = {_memory(source[name]) for name in entries if name in source}
    return [name for name in names if _memory(source[name]) not in tied]


def _check_names(
    entries: "Mapping[str, dict]",
    missing: "Sequence[str]",
    unknown: "Sequence[str]",
    place: str,
) -> None:
    if not missing and not unknown:
        return
    counts = []
    if missing:
        counts.append(f"lack {len(missing)} of the module's {_tensors(len(entries))}")
    if unknown:
        counts.append(f"hold {_tensors(len(unknown))} that the module has not")
    raise Error(
        "SP0001",
        "the weights " + " and ".join(counts),
        place,
        _named("missing", missing, unknown) + _named("unknown", unknown, missing),
        "strict=False skips them: what is missing keeps its value, zeros at first; "
        "buffers that no state dict holds come from the model itself, "
        "load_weights(module, dict(model.named_buffers()), strict=False)",
    )


def _tensors(count: int) -> str:
    return f"{count} tensor{'' if count == 1 else 's'}"


def _named(what: str, names: "Sequence[str]", others: "Sequence[str]") -> "list[str]":
    """Returns a note for each of the first names, with the most similar of `others`."""
    notes = []
    for name in names[:_MOST_SHOWN]:
        near = difflib.get_close_matches(name, others[:1000], 1, cutoff=0.8)
        notes.append(f"{what}: {name}" + (f" (similar: {near[0]})" if near else ""))
    if len(names) > _MOST_SHOWN:
        notes.append(f"{what}: {len(names) - _MOST_SHOWN} more")
    return notes


def _memory(value: Any) -> Any:
    """Returns a key that tied tensors share, and that no two other values share."""
    if isinstance(value, DTensor):
        value = value.to_local()
    if not isinstance(value, torch.Tensor):
        return id(value)
    storage = value.untyped_storage()._cdata
    return storage, value.storage_offset(), tuple(value.shape)


def _check(value: Any, entry: dict, target: DTensor, place: str) -> None:
    """Raises Error unless a value can fill a tensor of the module."""
    name, shape = entry["name"], tuple(entry["shape"])

    def refuse(message: str, help: str) -> None:
        raise Error("SP0001", f"`{name}` {message}", place, [], help)

    if not isinstance(value, (torch.Tensor, _safetensors.LazyTensor)):
        refuse(f"is a {type(value).__name__} in the weights", "give a torch.Tensor")
    if tuple(value.shape) != shape:
        raise Error(
            "SP0001",
            f"`{name}` has another shape in the weights than in the plan",
            place,
            [f"weights: {list(value.shape)}", f"plan: {list(shape)}"],
            "load the weights of the model that was planned, or plan this one",
        )
    dtype = target.dtype
    if not torch.can_cast(value.dtype, dtype):
        refuse(
            f"is {value.dtype} in the weights and {dtype} in the plan",
            "convert it where nothing is lost",
        )
    if isinstance(value, torch.Tensor) and not isinstance(
        target.to_local(), FakeTensor
    ):
        if value.is_meta or isinstance(value, FakeTensor):
            refuse(
                "has no values in the weights: it is a meta or fake tensor",
                "load a model that was made on a device, or a checkpoint",
            )


def _part(module: "ParallelModule", value: Any, entry: dict) -> Any:
    """Returns this rank's part of a value."""
    if isinstance(value, DTensor):
        target = module._tensor(entry["name"])
        if value._spec.mesh == target._spec.mesh and (
            value.placements == target.placements
        ):
            return value.to_local()
        value = value.full_tensor()
    return _layout.local_part(value, entry, module._mesh, module._index)
