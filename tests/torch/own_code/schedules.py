"""These programs run in steps: pipelines, accumulation, tied weights, optimizers."""

import copy

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from .cases import Code, case

WIDTH, WORDS = 8, 6


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        for layer in self.layers:
            if layer is not None:
                x = layer(x).tanh()
        return x if self.head is None else self.head(x)


def batch():
    torch.manual_seed(1)
    return torch.randn(8, WIDTH), torch.randint(0, WORDS, (8,))


def _stage(model, mesh):
    """Returns this rank's half of the model."""
    rank = mesh.get_local_rank("pp")
    stage = copy.deepcopy(model)
    for index in range(4):
        if index // 2 != rank:
            stage.layers[index] = None
    if rank == 0:
        stage.head = None
    return stage


class Pipeline:
    def __init__(self, model, mesh, scales):
        self.rank = mesh.get_local_rank("pp")
        self.stage_module = _stage(model, mesh)
        stage = PipelineStage(
            self.stage_module, self.rank, 2, torch.device("cpu"),
            group=mesh.get_group("pp"),
        )
        self.schedule = Schedule1F1B(
            stage, 4, loss_fn=F.cross_entropy, scale_grads=scales
        )


@case("pp=2", ("gradient", "head.bias"), "The factor is 4")
def pipeline_without_scale(mistake):
    def parallelize(model, mesh):
        return Pipeline(model, mesh, not mistake)

    def step(model, given):
        x, labels = given
        if isinstance(model, nn.Module):
            loss = F.cross_entropy(model(x), labels)
            loss.backward()
            return loss
        if model.rank == 0:
            model.schedule.step(x)
            return None
        losses = []
        model.schedule.step(target=labels, losses=losses)
        return torch.stack(losses).mean()

    return Code(Net, parallelize, step, batch)


class Tied(nn.Module):
    """Tied has one table at both ends of a two-stage pipeline."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(WORDS, WIDTH))
        self.middle = nn.Linear(WIDTH, WIDTH)

    def forward(self, ids):
        return F.linear(self.middle(F.embedding(ids, self.table)), self.table)


@case("pp=2", ("gradient", "table"), "sum over pp is missing")
def tied_gradient_not_reduced(mistake):
    def parallelize(model, mesh):
        model.rank = mesh.get_local_rank("pp")

    def step(model, ids):
        if not hasattr(model, "rank"):
            loss = F.cross_entropy(model(ids), ids.roll(1))
            loss.backward()
            return loss
        if model.rank == 0:
            y = model.middle(F.embedding(ids, model.table))
            dist.send(y.detach(), 1)
            gradient = torch.empty_like(y)
            dist.recv(gradient, 1)
            y.backward(gradient)
            loss = None
        else:
            y = torch.empty(ids.shape[0], WIDTH)
            dist.recv(y, 0)
            y.requires_grad_()
            loss = F.cross_entropy(F.linear(y, model.table), ids.roll(1))
            loss.backward()
            dist.send(y.grad, 0)
            for parameter in model.middle.parameters():
                parameter.grad = torch.zeros_like(parameter)
        for name, parameter in model.named_parameters():
            if not mistake or name != "table":
                dist.all_reduce(parameter.grad)
        return loss

    def ids():
        torch.manual_seed(3)
        return torch.randint(0, WORDS, (5,))

    return Code(Tied, parallelize, step, ids)


def _small():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WORDS))


@case("dp=2", ("gradient", "2.bias"), "The factor is 2")
def accumulation_without_scale(mistake):
    """Each rank accumulates the gradients of two micro-batches."""

    def parallelize(model, mesh):
        model.micro_batches = 2

    def step(model, given):
        x, labels = (
            t.chunk(dist.get_world_size())[dist.get_rank()] for t in given
        )
        count = getattr(model, "micro_batches", 1)
        for part, target in zip(x.chunk(count), labels.chunk(count)):
            loss = F.cross_entropy(model(part), target)
            (loss if mistake else loss / count).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()

    return Code(_small, parallelize, step, batch)


@case("dp=2", ("updated parameter", "0.weight"), "")
def gathered_in_wrong_order(mistake):
    """ZeRO-1 with an optimizer hook that gathers the updated shards."""

    def parallelize(model, mesh):
        model.sharded = True

    def step(model, given):
        rank, size = dist.get_rank(), dist.get_world_size()
        x, labels = (t.chunk(size)[rank] for t in given)
        F.cross_entropy(model(x), labels).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= size

        def gather(optimizer, args, kwargs):
            for parameter in model.parameters():
                parts = [torch.empty_like(p) for p in parameter.chunk(size)]
                dist.all_gather(parts, parameter.detach().chunk(size)[rank].clone())
                if mistake:
                    parts.reverse()
                parameter.data.copy_(torch.cat(parts))

        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        optimizer.register_step_post_hook(gather)
        optimizer.step()

    return Code(_small, parallelize, step, batch)
