"""This module creates the process groups that a program's collectives name."""

import datetime

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch._subclasses.fake_tensor import unset_fake_temporarily

from .._error import Error

_register = torch._C._distributed_c10d._register_process_group
_registered: dict = {}


def mesh_ranks(device_mesh) -> "list[int]":
    """Returns the global ranks of a DeviceMesh, row by row, also under
    FakeTensorMode."""
    with unset_fake_temporarily():
        return device_mesh.mesh.flatten().tolist()


def _timeout_of(group) -> "datetime.timedelta | None":
    """Returns the time that a collective of a group waits for a rank, if it is
    known."""
    found = []
    for device in group._device_types:
        options = getattr(group._get_backend(device), "options", None)
        found.append(getattr(options, "_timeout", None))
    return min((one for one in found if one is not None), default=None)


def world_timeout() -> datetime.timedelta:
    """Returns the timeout of init_process_group()."""
    group = dist.group.WORLD
    timeout = None if dist.get_backend() == "fake" else _timeout_of(group)
    return timeout or distributed_c10d.default_pg_timeout


def _inherit_timeout(group) -> None:
    """Gives a group with the default timeout the timeout of init_process_group(), which
    init_device_mesh() and new_group() ignore."""
    if group is dist.group.WORLD or dist.get_backend(group) == "fake":
        return
    own, world = _timeout_of(group), world_timeout()
    backend = dist.get_backend(group)
    if own == distributed_c10d._get_default_timeout(backend) and own != world:
        distributed_c10d._set_pg_timeout(world, group)


def check_mesh(mesh: dict, device_mesh) -> None:
    """Raises Error unless a DeviceMesh equals the mesh of the plan."""
    planned = {dim["name"]: dim["size"] for dim in mesh["dims"]}
    names = device_mesh.mesh_dim_names or [
        f"d{i}" for i in range(device_mesh.ndim)
    ]
    given = dict(zip(names, device_mesh.shape))
    if planned != given or list(planned) != list(given):
        raise Error(
            "SP0709",
            "the plan was made for another mesh",
            "device_mesh",
            [f"plan: {planned}", f"device_mesh: {given}"],
            "make the mesh with the plan's dims, in order: init_device_mesh("
            "..., mesh_dim_names=(...))",
        )
    ranks = mesh_ranks(device_mesh)
    if ranks != sorted(ranks):
        raise Error(
            "SP0709",
            "the ranks of the mesh do not ascend",
            "device_mesh",
            [str(ranks)],
            "make it with init_device_mesh, which numbers ranks row by row",
        )


def register_groups(groups: "list[dict]", device_mesh) -> None:
    """Creates and names the groups; every rank of the mesh must call it.

    A mesh dim already has its group; sets of mesh dims get groups of their own. The
    mesh itself is never flattened: DTensor would then merge collectives of uneven
    shards, which corrupts them.
    """
    ranks = mesh_ranks(device_mesh)
    for group in groups:
        # Groups end together with the process group that contains them.
        wanted = (dist.group.WORLD, tuple(ranks))
        known = _registered.get(group["name"])
        if known == wanted:
            continue
        if known is not None and known[0] is dist.group.WORLD:
            torch._C._distributed_c10d._unregister_process_group(group["name"])
        _register(group["name"], _made(group, ranks, device_mesh))
        _registered[group["name"]] = wanted


def _made(group: dict, ranks: "list[int]", device_mesh):
    """Returns this rank's group over the mesh dims of `group`."""
    if len(group["mesh_dims"]) == 1:
        name = group["mesh_dims"][0]
        names = device_mesh.mesh_dim_names
        held = device_mesh.get_group(names.index(name) if names else int(name[1:]))
        _inherit_timeout(held)
        return held
    mine = None
    for members in group["ranks"]:
        in_world = [ranks[member] for member in members]
        made = dist.new_group(in_world, timeout=world_timeout())
        if dist.get_rank() in in_world:
            mine = made
    return mine
