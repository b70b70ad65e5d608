"""moves_between() returns the steps of a redistribution as functions of the local
tensor.

The functions compute the group, the sizes and the evenness of shards once, while
DTensor computes them on every call. For uneven or strided shards DTensor's own code
runs.
"""

import math

import torch
from torch._prims_common import make_contiguous_strides_for
from torch.distributed._local_tensor import enabled_local_tensor_mode, tensor_map
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._redistribute import (
    _gen_transform_infos,
    redistribute_local_tensor as stock,
)

_c10d = torch.ops._c10d_functional
_all_gather = _c10d.all_gather_into_tensor.default
_all_reduce = _c10d.all_reduce.default
_all_to_all = _c10d.all_to_all_single.default
_reduce_scatter = _c10d.reduce_scatter_tensor.default
_wait = _c10d.wait_tensor.default


# Every backend sends these dtypes; other dtypes are sent as bytes.
_SENT = {
    *(torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
}


def _send(collective, local, *args):
    """Runs a collective that moves elements without changing them."""
    if local.dtype in _SENT:
        return _wait(collective(local, *args))
    as_bytes = local.unsqueeze(-1).view(torch.uint8)
    return _wait(collective(as_bytes, *args)).view(local.dtype).squeeze(-1)


def moves_between(src: DTensorSpec, dst: DTensorSpec) -> list:
    """Returns functions that turn the local tensor of `src` into that of `dst`, in
    order."""
    moves, src = into_partials(src, dst)
    if src.placements == dst.placements:
        return moves
    changes = [
        (info.mesh_dim, *info.src_dst_placements)
        for info in _gen_transform_infos(src, dst)
    ]
    changes = [(m, a, b) for m, a, b in changes if a != b and src.mesh.size(m) > 1]
    lean = [_lean(src.mesh, *change) for change in changes]
    if None in lean or not _all_even(src, dst, changes):
        moves.append(lambda local: stock(local, src, dst))
        # An all-to-all leaves parts in the order of their arrival; kernels need
        # row-major memory.
        meta = src.tensor_meta
        if tuple(meta.stride) == make_contiguous_strides_for(meta.shape):
            moves.append(lambda local: local.contiguous())
        return moves
    return moves + lean


def _all_even(src, dst, changes):
    """Returns whether every shard on the way is as large as its neighbours."""
    cuts = {}
    for placements in (src.placements, dst.placements):
        for mesh_dim, placement in enumerate(placements):
            if isinstance(placement, Shard):
                cuts.setdefault(placement.dim, set()).add(mesh_dim)
    for mesh_dim, *ends in changes:
        for placement in ends:
            if isinstance(placement, Shard):
                cuts.setdefault(placement.dim, set()).add(mesh_dim)
    shape = src.tensor_meta.shape
    return all(
        isinstance(shape[dim], int)
        and shape[dim] > 0
        and shape[dim] % math.prod(src.mesh.size(m) for m in mesh_dims) == 0
        for dim, mesh_dims in cuts.items()
    )


def into_partials(src, dst):
    """Handles moves that DTensor refuses or supports for floats only: into a sum, from
    sum to average and back. Returns the functions and the remaining spec."""
    mesh, now, moves = src.mesh, list(src.placements), []
    for dim, (before, after) in enumerate(zip(src.placements, dst.placements)):
        if before == after or not after.is_partial():
            continue
        kinds = (getattr(before, "reduce_op", "R"), after.reduce_op)
        if kinds == ("sum", "avg"):
            moves.append(lambda local, n=mesh.size(dim): local * n)
        elif kinds == ("avg", "sum"):
            moves.append(lambda local, n=mesh.size(dim): local / n)
        elif kinds == ("R", "sum") and before.is_replicate():
            moves.append(_to_sum(mesh, dim))
        elif not before.is_replicate() or kinds[1] not in ("avg", "max", "min"):
            continue
        now[dim] = after
    return moves, DTensorSpec(mesh, tuple(now), tensor_meta=src.tensor_meta)


def _to_sum(mesh, dim):
    """Returns the move into a sum: only the first rank along `dim` keeps its values."""
    if enabled_local_tensor_mode() is None:
        first = mesh.get_coordinate()[dim] == 0
        return (lambda local: local) if first else torch.zeros_like
    places = dict(zip(mesh.mesh.flatten().tolist(), _coordinates(mesh, dim)))

    def part(rank, shard):
        return shard if places[rank] == 0 else torch.zeros_like(shard)

    return lambda local: tensor_map(local, part)


def _coordinates(mesh, dim):
    along = torch.arange(mesh.size(dim)).reshape(
        [-1 if d == dim else 1 for d in range(mesh.ndim)]
    )
    return along.expand(tuple(mesh.shape)).flatten().tolist()


def _lean(mesh, mesh_dim, before, after):
    """Returns one collective or slice over one mesh dim, for even shards. Returns None
    if the move needs more."""
    kinds = (type(before), type(after))
    size = mesh.size(mesh_dim)
    group = mesh._dim_group_names[mesh_dim]
    if kinds == (Partial, Replicate):
        return reduction(before.reduce_op, group)
    if kinds == (Shard, Replicate):
        return gather(before.dim, size, group)
    if kinds == (Partial, Shard):
        return _scatter(before.reduce_op, after.dim, size, group)
    if kinds == (Shard, Shard):
        return _exchange(before.dim, after.dim, size, group)
    if kinds == (Replicate, Shard):
        return _cut(mesh, mesh_dim, after)
    return None


def reduction(op, group):
    """Returns the reduction `op` over all ranks of a group."""
    return lambda local: _wait(_all_reduce(local, op, group))


def gather(dim, size, group):
    """Returns the gather of equal parts of all ranks of a group along a tensor dim."""

    def move(local):
        made = _send(_all_gather, local.contiguous(), size, group)
        return made if dim == 0 else _joined(made.unflatten(0, (size, -1)), dim)

    return move


def _scatter(op, dim, size, group):
    def move(local):
        if dim != 0:
            local = _parts(local, dim, size).flatten(0, 1)
        return _wait(_reduce_scatter(local.contiguous(), op, size, group))

    return move


def _exchange(given, wanted, size, group):
    def move(local):
        parts = _parts(local, wanted, size).contiguous()
        each = [1] * size
        return _joined(_send(_all_to_all, parts, each, each, group), given)

    return move


def _cut(mesh, mesh_dim, shard):
    if enabled_local_tensor_mode() is not None:
        return lambda local: shard._replicate_to_shard(
            local, mesh, mesh_dim, mesh._sym_get_coordinate(mesh_dim)
        )
    dim, size = shard.dim, mesh.size(mesh_dim)
    place = mesh.get_coordinate()[mesh_dim]

    def move(local):
        extent = local.size(dim) // size
        return local.narrow(dim, place * extent, extent).clone()

    return move


def _parts(local, dim, size):
    """Returns [size, ...]: the parts of `local` along `dim`."""
    return local.unflatten(dim, (size, -1)).movedim(dim, 0)


def _joined(parts, dim):
    """Returns the inverse of _parts(): it concatenates the first dim of `parts` along
    `dim`."""
    return parts.movedim(0, dim).flatten(dim, dim + 1).contiguous()
