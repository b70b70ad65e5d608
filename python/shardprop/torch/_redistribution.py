"""install() makes DTensor redistribute by our plans.

Our plan is a path of layouts. DTensor's own collectives execute each step, one mesh dim
at a time. On a mesh that the user has flattened, DTensor would merge several dims into
one, which is wrong for sizes that do not divide.
"""

import torch
from torch.distributed._local_tensor import enabled_local_tensor_mode
from torch.distributed.tensor import _api, _dispatch, _redistribute
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.utils._debug_mode import get_active_debug_mode

from .._error import Error
from ._moves import into_partials, moves_between
from ._specs import NotOurs, is_lost

stock = _redistribute.redistribute_local_tensor
_HOLDERS = (_redistribute, _dispatch, _api)
_MERGES_OFF = "_DISABLE_REDISTRIBUTE_TRANSFORM_OPTIMIZATION"
# Its value before install(): a user may have set it.
_merges_off_before = False


def path_of(specs, src: DTensorSpec, steps: list) -> "list[DTensorSpec]":
    """Returns the specs on the path of a plan, `src` first."""
    path = [src]
    path.extend(specs.theirs(layout, src.tensor_meta) for _, _, layout in steps)
    return path


class Walk:
    """A walk turns the local tensor of path[0] into that of path[-1]."""

    def __init__(self, path: "list[DTensorSpec]"):
        self.path = path
        self._moves = {}

    def __call__(self, local: torch.Tensor) -> torch.Tensor:
        if get_active_debug_mode() is not None:
            return self.by_stock(local)
        # One process may first run its own rank and later simulate all ranks.
        simulated = enabled_local_tensor_mode() is not None
        moves = self._moves.get(simulated)
        if moves is None:
            moves = self._moves[simulated] = [
                move
                for src, dst in zip(self.path, self.path[1:])
                for move in moves_between(src, dst)
            ]
        for move in moves:
            local = move(local)
        return local

    def by_stock(self, local: torch.Tensor, **options) -> torch.Tensor:
        """Does the same with DTensor's own code, for moves that are observed or
        asynchronous."""
        for src, dst in zip(self.path, self.path[1:]):
            partials, src = into_partials(src, dst)
            for move in partials:
                local = move(local)
            if src.placements != dst.placements:
                local = stock(local, src, dst, **options)
        return local


def install(specs_of) -> None:
    """Makes every redistribution follow our plans. `specs_of` returns the MeshSpecs of
    a mesh."""
    paths = {}

    def path_between(src, dst):
        try:
            specs = specs_of(src.mesh)
            if is_lost(src) or is_lost(dst):
                return None
            steps = specs.core.redistribute(specs.ours(src), specs.ours(dst))
            path = path_of(specs, src, steps)
        except (Error, NotOurs):
            return None
        # Our last layout may have another notation than `dst`, but both mean the same.
        return Walk([*path[:-1], dst]) if steps else None

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
        walk = paths[key]
        if walk is None:
            return stock(local_tensor, current_spec, target_spec, **options)
        if options.get("async_op"):
            return walk.by_stock(local_tensor, **options)
        return walk(local_tensor)

    global _merges_off_before
    for holder in _HOLDERS:
        holder.redistribute_local_tensor = redistribute_local_tensor
    _merges_off_before = getattr(_redistribute, _MERGES_OFF)
    setattr(_redistribute, _MERGES_OFF, True)


def uninstall() -> None:
    """Undoes install(), which must have run."""
    for holder in _HOLDERS:
        holder.redistribute_local_tensor = stock
    setattr(_redistribute, _MERGES_OFF, _merges_off_before)
