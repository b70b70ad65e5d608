"""Redistributions of DTensors by our plans.

A plan of ours is a path of layouts; DTensor's own collectives take each of its
steps, a mesh dim at a time: where the user has flattened the mesh DTensor would
merge several dims into one, which is wrong for sizes that do not divide.
"""

import torch
from torch.distributed._local_tensor import tensor_map
from torch.distributed.tensor import _api, _dispatch, _redistribute
from torch.distributed.tensor._dtensor_spec import DTensorSpec

from .._error import Error
from ._specs import NotOurs

stock = _redistribute.redistribute_local_tensor
_HOLDERS = (_redistribute, _dispatch, _api)
_MERGES_OFF = "_DISABLE_REDISTRIBUTE_TRANSFORM_OPTIMIZATION"


def path_of(specs, src: DTensorSpec, steps: list) -> "list[DTensorSpec]":
    """The specs that a plan of ours goes through, `src` first."""
    path = [src]
    path.extend(specs.theirs(layout, src.tensor_meta) for _, _, layout in steps)
    return path


def walk(local: torch.Tensor, path: "list[DTensorSpec]", **options) -> torch.Tensor:
    """Takes the local part of path[0] to that of path[-1]."""
    for src, dst in zip(path, path[1:]):
        local, src = _local_steps(local, src, dst)
        if src.placements != dst.placements:
            local = stock(local, src, dst, **options)
    return local


def _local_steps(local, src, dst):
    """What DTensor refuses, or does in floats only: into a sum, sum to average
    and back. Returns the local tensor and the spec that is left."""
    mesh, now = src.mesh, list(src.placements)
    for dim, (before, after) in enumerate(zip(src.placements, dst.placements)):
        if before == after or not after.is_partial():
            continue
        kinds = (getattr(before, "reduce_op", "R"), after.reduce_op)
        if kinds == ("sum", "avg"):
            local = local * mesh.size(dim)
        elif kinds == ("avg", "sum"):
            local = local / mesh.size(dim)
        elif kinds == ("R", "sum") and before.is_replicate():
            local = tensor_map(local, _first_keeps(mesh, dim))
        elif not before.is_replicate() or kinds[1] not in ("avg", "max", "min"):
            continue
        now[dim] = after
    if tuple(now) == src.placements:
        return local, src
    return local, DTensorSpec(mesh, tuple(now), tensor_meta=src.tensor_meta)


def _first_keeps(mesh, dim):
    def part(rank, shard):
        at = (mesh.mesh == rank).nonzero()[0, dim].item()
        return shard if at == 0 else torch.zeros_like(shard)

    return part


def install(specs_of) -> None:
    """Puts our plans under every redistribution; `specs_of` a mesh."""
    paths = {}

    def path_between(src, dst):
        try:
            specs = specs_of(src.mesh)
            steps = specs.core.redistribute(specs.ours(src), specs.ours(dst))
            path = path_of(specs, src, steps)
        except (Error, NotOurs):
            return None
        # Where our last layout says it otherwise it is the same.
        return [*path[:-1], dst] if steps else None

    def redistribute_local_tensor(local_tensor, current_spec, target_spec, **options):
        if (
            current_spec.mesh != target_spec.mesh
            or options.get("use_graph_based_transform") is not None
            or not current_spec.mesh._is_current_rank_part_of_mesh()
        ):
            return stock(local_tensor, current_spec, target_spec, **options)
        key = (current_spec, target_spec)
        if key not in paths:
            if len(paths) > 1 << 14:
                paths.clear()
            paths[key] = path_between(current_spec, target_spec)
        path = paths[key]
        if path is None:
            return stock(local_tensor, current_spec, target_spec, **options)
        return walk(local_tensor, path, **options)

    for holder in _HOLDERS:
        holder.redistribute_local_tensor = redistribute_local_tensor
    setattr(_redistribute, _MERGES_OFF, True)


def uninstall() -> None:
    for holder in _HOLDERS:
        holder.redistribute_local_tensor = stock
    setattr(_redistribute, _MERGES_OFF, False)
