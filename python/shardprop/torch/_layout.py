"""These functions give layouts in PyTorch's terms, and the local tensor of a rank."""

import math
import re

import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import _StridedShard

from .. import _core

DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u64": torch.uint64,
    "u32": torch.uint32,
    "u16": torch.uint16,
    "u8": torch.uint8,
    "f8e4m3fn": torch.float8_e4m3fn,
    "f8e4m3fnuz": torch.float8_e4m3fnuz,
    "f8e5m2": torch.float8_e5m2,
    "f8e5m2fnuz": torch.float8_e5m2fnuz,
    "f8e8m0fnu": torch.float8_e8m0fnu,
    "bool": torch.bool,
    "c32": torch.complex32,
    "c64": torch.complex64,
    "c128": torch.complex128,
}


def layout_text(entry: dict) -> str:
    """Returns the notation of an entry of shardings.json: S(0)@1,S(0)@0."""
    texts = list(entry["placements"])
    for cuts in entry["shard_order"].values():
        in_mesh_order = sorted(cuts, key=entry["mesh_dims"].index)
        if cuts == in_mesh_order:
            continue
        for place, name in enumerate(cuts):
            texts[entry["mesh_dims"].index(name)] += f"@{place}"
    return ",".join(texts)


def placements(entry: dict, sizes: "dict[str, int]") -> tuple:
    """Returns DTensor's placements. In DTensor, a mesh dim that shards before an outer
    one is a strided shard: S(0)@1,S(0)@0 on (2, 4) is _StridedShard(0, 4), Shard(0).
    """
    result = []
    for text, mesh_dim in zip(entry["placements"], entry["mesh_dims"]):
        kind, inner = re.fullmatch(r"(\w+)(?:\(([\w,]+)\))?", text).groups()
        if kind == "R":
            result.append(Replicate())
        elif kind == "P":
            result.append(Partial(inner))
        elif kind == "SS":
            dim, factor = map(int, inner.split(","))
            result.append(_StridedShard(dim, split_factor=factor))
        else:
            cuts = entry["shard_order"][inner]
            before = cuts[: cuts.index(mesh_dim)]
            position = entry["mesh_dims"].index
            factor = math.prod(
                sizes[name] for name in before if position(name) > position(mesh_dim)
            )
            if factor > 1:
                result.append(_StridedShard(int(inner), split_factor=factor))
            else:
                result.append(Shard(int(inner)))
    return tuple(result)


def local_part(
    whole: torch.Tensor, entry: dict, mesh: str, index: int
) -> torch.Tensor:
    """Returns the part of a full tensor for the rank at row-major `index` of the mesh.

    The tensor may be any object that can be narrowed, so that a file is read only in
    the slices of this part.
    """
    regions = _core.local_region(
        mesh, entry["shape"], entry["dtype"], layout_text(entry), index
    )
    part = whole
    for dim, intervals in enumerate(regions):
        if intervals == [(0, entry["shape"][dim])]:
            continue
        pieces = [part.narrow(dim, begin, end - begin) for begin, end in intervals]
        if not pieces:
            pieces = [part.narrow(dim, 0, 0)]
        part = pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim)
    return part
