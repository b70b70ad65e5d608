"""MeshSpecs converts DTensor's specs to ours, and back."""

import functools
import math
import re
from typing import Any, Optional

import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor.placement_types import _StridedShard

from .. import _core
from ._layout import DTYPES

NAMES = {dtype: name for name, dtype in DTYPES.items()}


class NotOurs(Exception):
    """A call that our propagator leaves to DTensor's own."""


class NotReassembled(NotOurs):
    """A layout whose tensors DTensor cannot reassemble."""


def dtype_name(dtype: torch.dtype) -> str:
    """Returns f32 for torch.float32."""
    if dtype not in NAMES:
        raise NotOurs(f"{dtype} has no name here")
    return NAMES[dtype]


def placement_text(placement: Any, place: Optional[int] = None) -> str:
    """Returns S(0), SS(0,4), P(sum) or R; `place` adds the place of its shard order."""
    if isinstance(placement, Replicate):
        return "R"
    if isinstance(placement, _StridedShard):
        return f"SS({placement.dim},{placement.split_factor})"
    if isinstance(placement, Shard):
        cut = "" if place is None else f"@{place}"
        return f"S({placement.dim}){cut}"
    # Subclasses (masked, norms) have another meaning.
    if type(placement) is Partial:
        return f"P({placement.reduce_op})"
    raise NotOurs(f"the placement {placement} has no counterpart")


def layout_text(spec: DTensorSpec) -> str:
    """Returns the notation of a DTensorSpec's placements: S(0)@1,S(0)@0."""
    places = {}
    if not spec.use_strided_shard_as_shard_order and spec.shard_order:
        for entry in spec.shard_order:
            if list(entry.mesh_dims) != sorted(entry.mesh_dims):
                places.update({dim: i for i, dim in enumerate(entry.mesh_dims)})
    return ",".join(
        placement_text(placement, places.get(dim))
        for dim, placement in enumerate(spec.placements)
    )


@functools.lru_cache(maxsize=4096)
def _entries(text: str) -> tuple:
    """Returns, per mesh dim, its kind, tensor dim or operator, split factor and
    place."""
    entries = []
    for entry in re.findall(r"\w+(?:\([^)]*\))?(?:@\d+)?", text):
        kind, inner, place = re.fullmatch(
            r"(\w+)(?:\(([\w,]+)\))?(?:@(\d+))?", entry
        ).groups()
        parts = (inner or "").split(",")
        if kind == "P":
            if len(parts) > 1:
                raise NotOurs(f"{entry} reduces in another dtype")
            entries.append((kind, parts[0], 1, None))
        elif kind in ("S", "SS"):
            factor = int(parts[1]) if kind == "SS" else 1
            entries.append(
                (kind, int(parts[0]), factor, None if place is None else int(place))
            )
        else:
            entries.append((kind, None, 1, None))
    return tuple(entries)


def placements_of(text: str, mesh_shape: tuple, shape: tuple) -> tuple:
    """Returns DTensor's placements for one of our layouts and a tensor of `shape`.

    DTensor shards mesh dim by mesh dim. If a mesh dim shards after a later one, it is a
    strided shard in DTensor. Both are the same only if every shard is even.

    >>> placements_of("S(0)@1,S(0)@0", (2, 4), (8,))    # SS(0,4), S(0)
    >>> placements_of("SS(0,2)@1,S(0)@0", (2, 2), (24,))    # SS(0,4), S(0)
    """
    entries = _entries(text)
    result = []
    for mesh_dim, (kind, value, factor, place) in enumerate(entries):
        if kind == "R":
            result.append(Replicate())
            continue
        if kind == "P":
            result.append(Partial(value))
            continue
        if place is not None:
            factor *= _pieces_before(mesh_dim, entries, mesh_shape)
            _require_even(text, value, entries, mesh_shape, shape)
        if factor > 1 or kind == "SS":
            result.append(_StridedShard(value, split_factor=factor))
        else:
            result.append(Shard(value))
    return tuple(result)


def _pieces_before(mesh_dim: int, entries: tuple, mesh_shape: tuple) -> int:
    """Returns the number of shards of a dim before `mesh_dim` shards it."""
    _, value, _, place = entries[mesh_dim]
    pieces = 1
    for other, (kind, dim, _, other_place) in enumerate(entries):
        if kind not in ("S", "SS") or dim != value or other <= mesh_dim:
            continue
        if other_place is None or other_place >= place:
            continue
        if kind == "SS":
            raise NotReassembled(
                "a strided shard comes before the shard of an outer mesh dim"
            )
        pieces *= mesh_shape[other]
    return pieces


def _require_even(text, value, entries, mesh_shape, shape) -> None:
    """Raises NotOurs if shards in another order than the mesh's are uneven."""
    pieces = math.prod(
        mesh_shape[mesh_dim] * factor
        for mesh_dim, (kind, dim, factor, _) in enumerate(entries)
        if kind in ("S", "SS") and dim == value
    )
    if shape[value] % pieces:
        raise NotReassembled(f"{text} of {list(shape)} is sharded unevenly")


def can_reassemble(placements: tuple, mesh, shape: tuple) -> bool:
    """Returns whether DTensor correctly reassembles a tensor of these placements.

    DTensor has two algorithms for strided shards. If all placements can be decoded as a
    shard order, it follows that order, which is the same if every shard is even.
    Otherwise it gathers mesh dim by mesh dim from the last to the first, and assumes
    that no earlier strided shard shards the tensor. A strided shard must therefore be
    the last one of its dim, and the ranks of the mesh dims before it must hold equally
    many elements.

    >>> # on a 2x2 mesh: S(0),SS(0,3) of 8 rows: yes; of 7 rows: no
    >>> # SS(0,7),SS(0,7): no, whatever the size
    """
    sharded = {}  # the mesh dims that shard each strided dim, outermost first
    for mesh_dim, placement in enumerate(placements):
        if isinstance(placement, (Shard, _StridedShard)) and mesh.size(mesh_dim) > 1:
            sharded.setdefault(placement.dim, []).append(mesh_dim)
    strided = [
        dim
        for dim, mesh_dims in sharded.items()
        if any(isinstance(placements[m], _StridedShard) for m in mesh_dims)
    ]
    if not strided:
        return True

    def pieces(mesh_dims):
        return math.prod(mesh.size(m) for m in mesh_dims)

    if _is_shard_order(placements, mesh):
        return all(shape[dim] % pieces(sharded[dim]) == 0 for dim in strided)
    return all(
        shape[dim] % pieces(sharded[dim][:-1]) == 0
        and not any(
            isinstance(placements[m], _StridedShard) for m in sharded[dim][:-1]
        )
        for dim in strided
    )


def is_lost(spec: DTensorSpec) -> bool:
    """Returns whether DTensor cannot reassemble a tensor of this spec."""
    meta = spec.tensor_meta
    return meta is not None and not can_reassemble(
        spec.placements, spec.mesh, tuple(meta.shape)
    )


def _is_shard_order(placements: tuple, mesh) -> bool:
    """Returns whether DTensor decodes strided shards as shards in another order."""
    decode = DTensorSpec._maybe_convert_StridedShard_to_shard_order
    return decode(placements, mesh) is not None


class MeshSpecs:
    """MeshSpecs converts the specs of one DeviceMesh in both directions."""

    def __init__(self, mesh, topology: str):
        names = mesh.mesh_dim_names or [f"d{i}" for i in range(mesh.ndim)]
        self.mesh = mesh
        self.ranks = mesh.mesh.flatten().tolist()
        self.index = {rank: i for i, rank in enumerate(self.ranks)}
        self.core = _core.Propagator(
            list(zip(names, mesh.shape)), self.ranks, topology
        )
        self._ours = {}

    def ours(self, spec: DTensorSpec):
        """Returns our Spec of a DTensorSpec. Raises NotOurs, Error."""
        meta = spec.tensor_meta
        if meta is None:
            raise NotOurs("a spec has no sizes")
        found = self._ours.get(spec)
        if found is None:
            if any(not isinstance(n, int) for n in (*meta.shape, *meta.stride)):
                raise NotOurs("a size is symbolic")
            found = self.core.spec(
                list(meta.shape),
                list(meta.stride),
                dtype_name(meta.dtype),
                layout_text(spec),
            )
            if len(self._ours) > 1 << 16:
                self._ours.clear()
            self._ours[spec] = found
        return found

    def theirs(self, layout: str, meta: TensorMeta) -> DTensorSpec:
        """Returns a DTensorSpec that DTensor can reassemble. Raises NotOurs."""
        shape = tuple(meta.shape)
        placements = placements_of(layout, tuple(self.mesh.shape), shape)
        if not can_reassemble(placements, self.mesh, shape):
            raise NotReassembled(
                f"DTensor cannot reassemble {layout} of {list(shape)}"
            )
        return DTensorSpec(self.mesh, placements, tensor_meta=meta)
