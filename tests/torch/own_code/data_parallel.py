"""These programs shard the batch or the optimizer by hand over dp."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from .cases import Code, case

WIDTH, WORDS = 8, 6


def net():
    return nn.Sequential(
        nn.Linear(WIDTH, 12), nn.GELU(), nn.LayerNorm(12), nn.Linear(12, WORDS)
    )


def batch():
    torch.manual_seed(1)
    return torch.randn(8, WIDTH), torch.randint(0, WORDS, (8,))


def own(tensor):
    return tensor.chunk(dist.get_world_size())[dist.get_rank()]


def mean_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def keep(model, mesh):
    pass


@case("dp=4", ("gradient", "3.bias"), "mean over dp is missing")
def gradient_not_reduced(mistake):
    def step(model, given):
        x, labels = map(own, given)
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        for name, parameter in model.named_parameters():
            if mistake and name.endswith("bias"):
                continue
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        return loss

    return Code(net, keep, step, batch)


@case("dp=2", ("gradient", "3.bias"), "The factor is 2: the size of dp")
def sum_of_means(mistake):
    def step(model, given):
        x, labels = map(own, given)
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            if not mistake:
                parameter.grad /= dist.get_world_size()
        return loss

    return Code(net, keep, step, batch)


@case("dp=2", ("output gradient", "3"), "each rank holds another multiple")
def wrong_token_count(mistake):
    """The ranks have different numbers of tokens that count."""

    def step(model, given):
        x, labels = map(own, given)
        counted = labels >= 0
        count = counted.sum().float()
        if not mistake:
            dist.all_reduce(count)
        else:
            count = count * dist.get_world_size()
        losses = F.cross_entropy(model(x), labels.clamp(min=0), reduction="none")
        loss = (losses * counted).sum() / count
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        if not mistake:
            return loss

    def given():
        x, labels = batch()
        labels[[0, 1, 6]] = -1
        return x, labels

    return Code(net, keep, step, given)


@case("dp=2", ("updated parameter", "0.weight"), "No layout makes it right")
def clipped_by_local_norm(mistake):
    """ZeRO-1: each rank updates its shard of each parameter, and gathers the others."""

    def step(model, given):
        x, labels = map(own, given)
        F.cross_entropy(model(x), labels).backward()
        mean_gradients(model)
        total = torch.zeros(())
        for parameter in model.parameters():
            total += own(parameter.grad).square().sum()
        if not mistake:
            dist.all_reduce(total)
        scale = 0.1 / total.sqrt()
        with torch.no_grad():
            for parameter in model.parameters():
                updated = own(parameter) - scale * own(parameter.grad)
                parts = [
                    torch.empty_like(part)
                    for part in parameter.chunk(dist.get_world_size())
                ]
                dist.all_gather(parts, updated.contiguous())
                parameter.copy_(torch.cat(parts))

    return Code(net, keep, step, batch)


class Normed(nn.Module):
    """Normed is a batch norm over all ranks, with running statistics."""

    def __init__(self, mistake):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))
        self.register_buffer("running", torch.zeros(WIDTH))
        self.mistake = mistake

    def forward(self, x):
        mean = x.mean(0)
        mean = mean.detach().clone()
        if not self.mistake:
            dist.all_reduce(mean)
            mean /= dist.get_world_size()
        self.running.mul_(0.9).add_(0.1 * mean)
        return x * self.weight


@case("dp=2", ("updated buffer", "0.running"), "mean over dp is missing")
def buffer_not_synchronized(mistake):
    def step(model, given):
        x, labels = map(own, given)
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        mean_gradients(model)
        return loss

    return Code(
        lambda: nn.Sequential(Normed(mistake), nn.Linear(WIDTH, WORDS)),
        keep, step, batch,
    )


class Gathered(nn.Module):
    """Gathered keeps shards of a weight, and the gathered weight in a cache."""

    def __init__(self, mistake):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WORDS, WIDTH))
        self.is_sharded, self.mistake, self.cached = False, mistake, None

    def full(self):
        if not self.is_sharded:
            return self.weight
        if self.cached is None or not self.mistake:
            parts = [torch.empty_like(self.weight) for _ in range(2)]
            dist.all_gather(parts, self.weight.detach())
            self.cached = torch.cat(parts)
        return self.cached

    def forward(self, x):
        weight = self.full().detach().requires_grad_()
        self.used = weight
        return F.linear(x, weight)


@case("dp=2", ("output", "0"), "No layout makes it right")
def stale_gather(mistake):
    def parallelize(model, mesh):
        model[0].is_sharded = True
        model[0].weight.data = own(model[0].weight.data).clone()

    def step(model, given):
        x, labels = map(own, given)
        for _ in range(2):
            loss = F.cross_entropy(model(x), labels)
            loss.backward()
            gradient = model[0].used.grad
            dist.all_reduce(gradient)
            gradient = gradient / dist.get_world_size()
            with torch.no_grad():
                part = own(gradient) if model[0].is_sharded else gradient
                model[0].weight -= part
        return loss

    return Code(lambda: nn.Sequential(Gathered(mistake)), parallelize, step, batch)
