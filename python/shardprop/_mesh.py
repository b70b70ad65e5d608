"""These functions read meshes in the notations of users."""

from collections.abc import Mapping, Sequence
from typing import Any, Optional, Protocol, Union

from ._error import Error


class DeviceMesh(Protocol):
    """The attributes of torch.distributed.DeviceMesh that this module reads."""

    @property
    def mesh_dim_names(self) -> "Optional[tuple[str, ...]]": ...

    @property
    def shape(self) -> "tuple[int, ...]": ...

    @property
    def mesh(self) -> Any: ...


# "dp=2,tp=4" or {"dp": 2, "tp": 4}; (2, 4), whose dims are d0 and d1; 8, of one
# dim; a torch.distributed.DeviceMesh.
MeshLike = Union[str, Mapping[str, int], Sequence[int], int, DeviceMesh]


def mesh_text(mesh: MeshLike) -> str:
    """Returns the notation of a mesh, dp=2,tp=4. Raises Error if it is not a mesh."""
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
    _check_order(mesh)
    names = mesh.mesh_dim_names or [f"d{dim}" for dim in range(len(mesh.shape))]
    return ",".join(f"{name}={size}" for name, size in zip(names, mesh.shape))


def _check_order(mesh: DeviceMesh) -> None:
    """Raises Error unless the ranks of a DeviceMesh ascend.

    The notation of a mesh has no order of ranks. Another order would be priced with
    wrong neighbours.
    """
    # Since there is a DeviceMesh, torch is installed.
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily():
        ranks = mesh.mesh.flatten().tolist()
    if ranks != sorted(ranks):
        raise Error(
            "SP0001",
            "the ranks of the DeviceMesh do not ascend",
            "mesh",
            [str(ranks[:64])],
            "make it with init_device_mesh, which numbers ranks row by row",
        )
