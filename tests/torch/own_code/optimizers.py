"""These programs have optimizers whose steps need more than a rank's shard."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from . import moves
from .cases import Code, case

WIDTH, HIDDEN = 8, 12


def net():
    return nn.Sequential(
        nn.Linear(WIDTH, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, WIDTH, bias=False)
    )


def given():
    torch.manual_seed(1)
    return torch.randn(12, WIDTH), torch.randn(12, WIDTH)


def own(tensor, parts):
    rank = dist.get_rank() * parts // dist.get_world_size()
    return tensor.chunk(parts)[rank] if dist.get_world_size() > 1 else tensor


def loss_of(model, batch, parts):
    x, labels = (own(tensor, parts) for tensor in batch)
    loss = (model(x) - labels).square().mean()
    loss.backward()
    return loss


def shard_all(model, mesh):
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def orthogonal(matrix):
    """Returns the nearest orthogonal matrix, as Muon approximates it."""
    x = matrix / matrix.norm()
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x


@case("dp=2", ("updated parameter", "0.weight"), "No layout makes it right")
def muon_on_shards(mistake):
    def step(model, batch):
        loss_of(model, batch, 2)
        for parameter in model.parameters():
            gradient = parameter.grad
            if parameter.dim() == 2:
                if not isinstance(gradient, DTensor):
                    gradient = orthogonal(gradient)
                elif mistake:
                    local = orthogonal(gradient.to_local())
                    gradient = DTensor.from_local(
                        local, gradient.device_mesh, gradient.placements
                    )
                else:
                    gradient = distribute_tensor(
                        orthogonal(gradient.full_tensor()),
                        gradient.device_mesh, gradient.placements,
                    )
            with torch.no_grad():
                parameter.add_(gradient, alpha=-0.1)

    return Code(net, shard_all, step, given)


@case("dp=2,tp=2", ("gradient", "norm.weight"), "The factor is")
def norm_counts_replicated_gradients(mistake):
    """The mistake counts the gradient that all ranks of `tp` hold once for each."""

    def build():
        model = net()
        model.add_module("norm", nn.LayerNorm(WIDTH))
        return model

    def shard(model, mesh):
        plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
        parallelize_module(model, mesh["tp"], plan)
        fully_shard(model, mesh=mesh["dp"])

    def step(model, batch):
        loss_of(model, batch, 2)
        total = torch.zeros(())
        for parameter in model.parameters():
            gradient, copies = parameter.grad, 1
            if isinstance(gradient, DTensor):
                copies = 2 if gradient.device_mesh.ndim == 1 else 1
                gradient = gradient.to_local()
            total += gradient.square().sum() / (1 if mistake else copies)
        if dist.get_world_size() > 1:
            dist.all_reduce(total)
        for parameter in model.parameters():
            parameter.grad.mul_(0.1 / total.sqrt())
        torch.optim.SGD(model.parameters(), 0.5).step()

    return Code(build, shard, step, given)


def by_hand(model, mesh):
    """Shards the hidden dim, without collectives in the model."""
    moves.shard(model[0].weight, 0, mesh.get_group())
    moves.shard(model[0].bias, 0, mesh.get_group())
    moves.shard(model[2].weight, 1, mesh.get_group())
    up, down = model[0].forward, model[2].forward
    model[0].forward = lambda x: up(moves.copy(x, mesh.get_group()))
    model[2].forward = lambda x: moves.reduce(down(x), mesh.get_group())


@case("tp=3", ("updated parameter", "0.weight"), "No layout makes it right")
def trust_ratio_of_shards(mistake):
    """LAMB scales each update by the norm of the whole parameter."""

    def norm(tensor):
        total = tensor.square().sum()
        if dist.get_world_size() > 1 and not mistake:
            dist.all_reduce(total)
        return total.sqrt()

    def step(model, batch):
        loss_of(model, batch, 1)
        with torch.no_grad():
            for parameter in model.parameters():
                update = parameter.grad + 0.1 * parameter
                parameter -= 0.1 * norm(parameter) / norm(update) * update

    return Code(net, by_hand, step, given)


@case("tp=2", ("updated parameter", "0.weight"), "No layout makes it right")
def factored_moments_of_shards(mistake):
    """Adafactor keeps means of the squares of rows and columns."""

    def step(model, batch):
        loss_of(model, batch, 1)
        is_parallel = dist.get_world_size() > 1
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.dim() < 2:
                    continue
                squares = parameter.grad.square()
                rows, columns = squares.mean(1), squares.mean(0)
                if is_parallel and not mistake:
                    # The hidden dim is sharded: rows of "0", columns of "2".
                    split = columns if name == "0.weight" else rows
                    dist.all_reduce(split, dist.ReduceOp.AVG)
                mean = rows.mean()
                if is_parallel and name == "0.weight":
                    dist.all_reduce(mean, dist.ReduceOp.AVG)
                factored = rows[:, None] * columns[None] / mean
                parameter -= 0.01 * parameter.grad / factored.sqrt()

    return Code(net, by_hand, step, given)


@case("dp=2", ("result", ""), "No layout makes it right")
def average_of_weights(mistake):
    """The mistake takes the average of the weights before the step on rank 1."""

    def step(model, batch):
        average = [parameter.detach().clone() for parameter in model.parameters()]
        optimizer = torch.optim.SGD(model.parameters(), 0.5)
        is_late = mistake and dist.get_world_size() > 1 and dist.get_rank() == 1
        loss_of(model, batch, 2)
        if not is_late:
            optimizer.step()
        with torch.no_grad():
            for mean, parameter in zip(average, model.parameters()):
                mean.lerp_(parameter, 0.25)
        if is_late:
            optimizer.step()
        return [
            mean.full_tensor() if isinstance(mean, DTensor) else mean
            for mean in average
        ]

    return Code(net, shard_all, step, given)


@case("dp=2", ("output", "0"), "only rank 0 is wrong")
def overflow_on_one_rank(mistake):
    """A step is skipped on all ranks if one rank has infinite gradients."""

    def step(model, batch):
        x, labels = batch
        optimizer = torch.optim.SGD(model.parameters(), 0.5)
        for factor in (1e38, 1.0):
            optimizer.zero_grad()
            scale = torch.ones(12, 1)
            scale[8:] = factor
            y = model(own(x * scale, 2)) - own(labels, 2)
            (own(scale, 2) * y).square().mean().backward()
            found = torch.zeros(())
            for parameter in model.parameters():
                found += (~torch.isfinite(parameter.grad)).any()
            if dist.get_world_size() > 1:
                if not mistake:
                    dist.all_reduce(found)
                for parameter in model.parameters():
                    parameter.grad.nan_to_num_(0, 0, 0)
                    dist.all_reduce(parameter.grad, dist.ReduceOp.AVG)
            if not found:
                optimizer.step()

    return Code(net, lambda model, mesh: None, step, given)
