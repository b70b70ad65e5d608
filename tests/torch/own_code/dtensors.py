"""These programs use DTensor, parallelize_module, local_map and fully_shard."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
)
from torch.distributed.tensor.experimental import local_map
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from .cases import Code, case
from .data_parallel import own

WIDTH, WORDS = 8, 6


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 12)
        self.down = nn.Linear(12, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Mlp() for _ in range(2))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def batch():
    torch.manual_seed(1)
    return torch.randn(4, 6, WIDTH), torch.randint(0, WORDS, (4, 6))


def step(model, given):
    x, labels = given
    loss = F.cross_entropy(model(x).flatten(0, 1), labels.flatten())
    loss.backward()
    return loss


@case("tp=2", ("output", "layers.0"), "a sum over tp is missing")
def parallelize_module_with_local_bias(mistake):
    """The mistake wraps a partial product as replicated."""

    class Row(RowwiseParallel):
        @staticmethod
        def _prepare_output_fn(output_layouts, use_local_output, module, outputs, mesh):
            if mistake and isinstance(outputs, DTensor):
                outputs = DTensor.from_local(
                    outputs.to_local(), mesh, (Replicate(),), run_check=False
                )
            return RowwiseParallel._prepare_output_fn(
                output_layouts, use_local_output, module, outputs, mesh
            )

    def parallelize(model, mesh):
        for layer in model.layers:
            parallelize_module(layer, mesh, {"up": ColwiseParallel(), "down": Row()})

    return Code(Net, parallelize, step, batch)


@case("tp=2", ("gradient", "layers.1.norm.weight"), "sum over tp is missing")
def sequence_parallel_module(mistake):
    """The mistake leaves a norm over sharded tokens out of the plan."""

    def parallelize(model, mesh):
        for layer in model.layers:
            plan = {
                "norm": SequenceParallel(use_local_output=True),
                "up": ColwiseParallel(input_layouts=Shard(1)),
                "down": RowwiseParallel(output_layouts=Shard(1)),
            }
            if mistake:
                del plan["norm"]
            parallelize_module(layer, mesh, plan)
        model.group = mesh.get_group()

    def run(model, given):
        x, labels = given
        if hasattr(model, "group"):
            size, rank = model.group.size(), model.group.rank()
            x, labels = x.chunk(size, 1)[rank], labels.chunk(size, 1)[rank]
        losses = F.cross_entropy(
            model(x).flatten(0, 1), labels.flatten(), reduction="sum"
        )
        loss = losses / 24
        loss.backward()
        if hasattr(model, "group"):
            for parameter in model.head.parameters():
                torch.distributed.all_reduce(parameter.grad, group=model.group)
        return loss

    return Code(Net, parallelize, run, batch)


class Mapped(nn.Module):
    """Mapped multiplies local tensors in local_map."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.function = None

    def forward(self, x):
        if self.function is None:
            return self.norm(torch.mm(x, self.weight))
        mesh = self.weight.device_mesh
        x = distribute_tensor(x, mesh, [Shard(1)])
        y = self.function(x, self.weight).redistribute(placements=[Replicate()])
        return self.norm(y.to_local())


@case("tp=2", ("output", "norm"), "sum over tp is missing")
def local_map_states_wrong_layout(mistake):
    def parallelize(model, mesh):
        model.weight = nn.Parameter(distribute_tensor(model.weight, mesh, [Shard(0)]))
        model.function = local_map(
            torch.mm,
            out_placements=[Replicate()] if mistake else [Partial()],
            in_placements=([Shard(1)], [Shard(0)]),
            device_mesh=mesh,
        )

    def run(model, x):
        loss = model(x).square().mul(x.abs()).sum()
        loss.backward()
        return loss

    def given():
        torch.manual_seed(2)
        return torch.randn(5, WIDTH)

    return Code(Mapped, parallelize, run, given)


@case("dp=2", ("gradient", "head.bias"), "The factor is 1/2")
def fully_shard_with_wrong_scale(mistake):
    def parallelize(model, mesh):
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)

    def run(model, given):
        x, labels = map(own, given)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        loss = F.cross_entropy(model(x).flatten(0, 1), labels.flatten())
        if mistake:
            loss = loss / torch.distributed.get_world_size()
        loss.backward()
        optimizer.step()
        return loss

    return Code(Net, parallelize, run, batch)


@case("tp=2", ("gradient", "layers.1.down.bias"), "No rank has this gradient")
def gradient_lost_by_detach(mistake):
    def parallelize(model, mesh):
        for layer in model.layers:
            plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
            parallelize_module(layer, mesh, plan)
            if mistake:
                layer.down.bias.requires_grad_(False)

    return Code(Net, parallelize, step, batch)


@case("dp=2,tp=2", ("gradient", "head.bias"), "mean over dp is missing")
def tensor_parallel_and_data_parallel(mistake):
    """HSDP-like: DTensor over tp, gradients reduced by hand over dp."""

    def parallelize(model, mesh):
        for layer in model.layers:
            parallelize_module(layer, mesh["tp"], {
                "up": ColwiseParallel(), "down": RowwiseParallel(),
            })
        model.mesh = mesh

    def run(model, given):
        x, labels = given
        group = None
        if hasattr(model, "mesh"):
            group = model.mesh.get_group("dp")
            x = x.chunk(group.size())[group.rank()]
            labels = labels.chunk(group.size())[group.rank()]
        loss = F.cross_entropy(model(x).flatten(0, 1), labels.flatten())
        loss.backward()
        if group is None:
            return loss
        for name, parameter in model.named_parameters():
            if mistake and name == "head.bias":
                continue
            gradient = parameter.grad
            if isinstance(gradient, DTensor):
                gradient = gradient.to_local()
            torch.distributed.all_reduce(gradient, group=group)
            gradient /= group.size()
        return loss

    return Code(Net, parallelize, run, batch)
