"""The process groups that a program's collectives name."""

import torch
import torch.distributed as dist

from .._error import Error

_register = torch._C._distributed_c10d._register_process_group
_registered: dict = {}


def check_mesh(mesh: dict, device_mesh) -> None:
    """Whether a DeviceMesh is the one that a plan was made for."""
    planned = {dim["name"]: dim["size"] for dim in mesh["dims"]}
    names = device_mesh.mesh_dim_names or [
        f"d{i}" for i in range(device_mesh.mesh.ndim)
    ]
    given = dict(zip(names, device_mesh.mesh.shape))
    if planned != given or list(planned) != list(given):
        raise Error(
            "SP0709",
            "the plan was made for another mesh",
            "device_mesh",
            [f"plan: {planned}", f"device_mesh: {given}"],
            "make the mesh with the plan's dims, in order: init_device_mesh("
            "..., mesh_dim_names=(...))",
        )
    ranks = device_mesh.mesh.flatten().tolist()
    if ranks != sorted(ranks):
        raise Error(
            "SP0709",
            "the ranks of the mesh do not ascend",
            "device_mesh",
            [str(ranks)],
            "make it with init_device_mesh, which numbers ranks row by row",
        )


def register_groups(groups: "list[dict]", device_mesh) -> None:
    """Makes and names the groups, every rank of the mesh at once.

    A mesh dim has its group already; sets of mesh dims get groups of their own.
    The mesh itself is never flattened: DTensor would then merge collectives of
    uneven shards, which corrupts them.
    """
    ranks = device_mesh.mesh.flatten().tolist()
    rank = dist.get_rank()
    for group in groups:
        key = (group["name"], tuple(ranks))
        if _registered.get(group["name"]) == key[1]:
            continue
        if group["name"] in _registered:
            torch._C._distributed_c10d._unregister_process_group(group["name"])
        if len(group["mesh_dims"]) == 1:
            names = device_mesh.mesh_dim_names
            dim = names.index(group["mesh_dims"][0]) if names else int(
                group["mesh_dims"][0][1:]
            )
            mine = device_mesh.get_group(dim)
        else:
            mine = None
            for members in group["ranks"]:
                made = dist.new_group([ranks[member] for member in members])
                if rank in [ranks[member] for member in members]:
                    mine = made
        _register(group["name"], mine)
        _registered[group["name"]] = key[1]
