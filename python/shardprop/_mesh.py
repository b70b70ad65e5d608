"""Meshes as users write them."""

from collections.abc import Mapping, Sequence
from typing import Union

# "dp=2,tp=4", {"dp": 2, "tp": 4} or (2, 4), whose dims are d0 and d1; a
# torch.distributed.DeviceMesh too.
MeshLike = Union[str, Mapping, Sequence]


def mesh_text(mesh: MeshLike) -> str:
    """The notation of a mesh: dp=2,tp=4."""
    if isinstance(mesh, str):
        return mesh
    if isinstance(mesh, Mapping):
        return ",".join(f"{name}={size}" for name, size in mesh.items())
    names = getattr(mesh, "mesh_dim_names", None)
    shape = getattr(mesh, "shape", mesh)
    if names is not None:
        return ",".join(f"{name}={size}" for name, size in zip(names, shape))
    return ",".join(str(size) for size in shape)
