"""Meshes as users write them."""

from collections.abc import Mapping, Sequence
from typing import Optional, Protocol, Union


class DeviceMesh(Protocol):
    """A torch.distributed.DeviceMesh, as far as it is looked at here."""

    @property
    def mesh_dim_names(self) -> "Optional[tuple[str, ...]]": ...

    @property
    def shape(self) -> "tuple[int, ...]": ...


# "dp=2,tp=4" or {"dp": 2, "tp": 4}; (2, 4), whose dims are d0 and d1; 8, of one
# dim; a torch.distributed.DeviceMesh.
MeshLike = Union[str, Mapping[str, int], Sequence[int], int, DeviceMesh]


def mesh_text(mesh: MeshLike) -> str:
    """The notation of a mesh: dp=2,tp=4."""
    if isinstance(mesh, (str, int)):
        return str(mesh)
    if isinstance(mesh, Mapping):
        return ",".join(f"{name}={size}" for name, size in mesh.items())
    if isinstance(mesh, Sequence):
        return ",".join(str(size) for size in mesh)
    names = mesh.mesh_dim_names or [f"d{dim}" for dim in range(len(mesh.shape))]
    return ",".join(f"{name}={size}" for name, size in zip(names, mesh.shape))
