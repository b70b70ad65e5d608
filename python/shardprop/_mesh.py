"""Meshes as users write them."""

from collections.abc import Mapping, Sequence
from typing import Optional, Protocol, Union

from ._error import Error


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
    """The notation of a mesh: dp=2,tp=4. Raises Error: what is no mesh."""
    if isinstance(mesh, (str, int)) and not isinstance(mesh, bool):
        return str(mesh)
    if isinstance(mesh, Mapping):
        return ",".join(f"{name}={size}" for name, size in mesh.items())
    if isinstance(mesh, Sequence):
        return ",".join(str(size) for size in mesh)
    if not hasattr(mesh, "mesh_dim_names"):
        raise Error(
            "SP0001",
            f"a {type(mesh).__name__} is not a mesh",
            "mesh",
            [],
            "write 'dp=2,tp=4', {'dp': 2, 'tp': 4}, (2, 4) or 8, or give a DeviceMesh",
        )
    names = mesh.mesh_dim_names or [f"d{dim}" for dim in range(len(mesh.shape))]
    return ",".join(f"{name}={size}" for name, size in zip(names, mesh.shape))
