"""These programs are PyTorch's reports of wrong values of DTensor without an error.

Each returns the value that the report is about, from one tensor of the batch.
"""

import dataclasses
from typing import Callable

import torch
from torch import nn
from torch.distributed.tensor import (
    DTensor,
    Replicate,
    Shard,
    distribute_tensor,
)
from torch.distributed.tensor.placement_types import _StridedShard

from .cases import Code

R, S = Replicate(), Shard


@dataclasses.dataclass
class Report:
    number: int
    mesh: str
    code: Code


REPORTS: "list[Report]" = []


class Model(nn.Module):
    """A Model applies a function to a tensor, or to the DTensor that `make` returns."""

    def __init__(self, function: Callable, make: Callable):
        super().__init__()
        self.function, self.make, self.mesh = function, make, None

    def forward(self, x):
        if self.mesh is None:
            return self.function(x)
        return self.function(self.make(x, self.mesh))


def report(number: int, mesh: str, shape: "tuple[int, ...]", placements=None, make=None):
    """Adds a function of a tensor to the reports."""

    def add(function):
        def distributed(x, mesh):
            return distribute_tensor(x, mesh, placements)

        def parallelize(model, mesh):
            model.mesh = mesh

        def given():
            torch.manual_seed(1)
            return torch.randn(shape)

        code = Code(
            lambda: Model(function, make or distributed),
            parallelize, lambda model, x: model(x), given,
        )
        REPORTS.append(Report(number, mesh, code))
        return function

    return add


@report(162692, "x=2", (5, 3), [S(0)])
def mean_of_uneven_shards(x):
    return x.mean(0)


@report(179502, "x=4", (12, 8), [S(1)])
def view_of_sharded_dim(x):
    return x.view(-1, 6)


@report(166598, "x=2,y=2", (8, 8), [S(1), S(1)])
def contraction_of_two_orders(x):
    if not isinstance(x, DTensor):
        return x @ x.t()
    mesh = x.device_mesh
    strided = [_StridedShard(0, split_factor=2), Shard(0)]
    other = distribute_tensor(x.full_tensor().t().contiguous(), mesh, [R, R])
    return x @ other.redistribute(placements=strided)


@report(168134, "x=2,y=2", (7, 3), [R, R])
def uneven_strided_shard(x):
    if not isinstance(x, DTensor):
        return x.clone()
    strided = x.redistribute(placements=[_StridedShard(0, split_factor=2), Shard(0)])
    return strided.redistribute(placements=[R, R])


def _unlike_chunk(x, mesh):
    sizes = [1, 4]
    local = x.split(sizes)[mesh.get_local_rank()]
    return DTensor.from_local(
        local, mesh, [S(0)], run_check=False, shape=x.shape, stride=x.stride()
    )


@report(144109, "x=2", (5, 3), make=_unlike_chunk)
def full_tensor_of_other_shards(x):
    return x.full_tensor() if isinstance(x, DTensor) else x.clone()


def _without_shape(x, mesh):
    local = x.chunk(mesh.size())[mesh.get_local_rank()]
    return DTensor.from_local(local, mesh, [S(0)], run_check=False)


@report(103306, "x=2", (5, 3), make=_without_shape)
def from_local_of_uneven_shards(x):
    return x.full_tensor() if isinstance(x, DTensor) else x.clone()


def _flattened(x, mesh):
    mesh._flatten()
    return distribute_tensor(x, mesh, [S(0), S(0)])


@report(194457, "x=2,y=2", (5, 3), make=_flattened)
def gather_over_a_flattened_mesh(x):
    if isinstance(x, DTensor):
        return x.redistribute(placements=[R, R]).to_local()
    return x.clone()


@report(186282, "x=2,y=2", (8, 3), [S(0), S(0)])
def unflatten_of_two_mesh_dims(x):
    return x.view(2, 4, 3)


@report(118836, "x=2", (3, 5), [S(1)])
def stride_of_uneven_shards(x):
    y = x.t() * 2
    if isinstance(y, DTensor):
        assert y.to_local().stride() is not None
    return y.contiguous()


@report(172350, "x=2", (4, 3), [S(0)])
def index_put_on_sharded_rows(x):
    index = torch.tensor([0, 3])
    value = torch.ones(2, 3)
    if isinstance(x, DTensor):
        index = distribute_tensor(index, x.device_mesh, [R])
        value = distribute_tensor(value, x.device_mesh, [R])
    return x.index_put((index,), value)


@report(167977, "x=2", (4, 3), [S(0)])
def tensor_in_keyword(x):
    return torch.add(input=x, other=x.flip(0))
