"""These programs reduce and apply gradients by hand."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from . import moves
from .cases import Code, case
from .data_parallel import batch, keep, net, own

WIDTH, WORDS = 8, 6


@case("dp=2", ("gradient", "0.weight"), "before the wait")
def reduction_without_wait(mistake):
    """The sums of the gradients are asynchronous. The mistake leaves out one wait."""

    def step(model, given):
        x, labels = map(own, given)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        F.cross_entropy(model(x), labels).backward()
        works = []
        for parameter in reversed(list(model.parameters())):
            parameter.grad /= dist.get_world_size()
            works.append(dist.all_reduce(parameter.grad, async_op=True))
        for work in works[:-1] if mistake else works:
            work.wait()
        optimizer.step()

    return Code(net, keep, step, batch)


class _Shards(nn.Module):
    """_Shards keeps shards of a weight, and starts the gather of it early."""

    def __init__(self, mistake):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.weight = nn.Parameter(torch.randn(WORDS, WIDTH))
        self.second = nn.Identity()
        self.is_sharded, self.mistake = False, mistake

    def forward(self, x):
        if not self.is_sharded:
            return self.second(F.linear(self.first(x), self.weight))
        size = dist.get_world_size()
        full = torch.empty(size * self.weight.shape[0], WIDTH)
        work = dist.all_gather_into_tensor(full, self.weight.detach(), async_op=True)
        y = self.first(x)
        if not self.mistake:
            work.wait()
        y = F.linear(y, full)
        work.wait()
        return self.second(y)


@case("dp=2", ("input", "second"), "before the wait")
def gathered_weight_used_before_wait(mistake):
    def parallelize(model, mesh):
        model.is_sharded = True
        model.weight.data = own(model.weight.data).clone()

    def step(model, given):
        x, labels = map(own, given)
        with torch.no_grad():
            return F.cross_entropy(model(x), labels)

    return Code(lambda: _Shards(mistake), parallelize, step, batch)


@case("dp=3", ("updated parameter", "0.weight"), "No layout makes it right")
def shard_offset_without_padding(mistake):
    """ZeRO-1 over one padded vector of all parameters, with momentum."""

    def step(model, given):
        size, rank = dist.get_world_size(), dist.get_rank()
        x, labels = map(own, given)
        parameters = list(model.parameters())
        flat = torch.cat([p.detach().flatten() for p in parameters])
        padded = -(-flat.numel() // size)
        flat = F.pad(flat, (0, padded * size - flat.numel()))
        first = rank * (padded - 1 if mistake else padded)
        shard = nn.Parameter(flat[first:first + padded].clone())
        optimizer = torch.optim.SGD([shard], lr=0.1, momentum=0.9)
        F.cross_entropy(model(x), labels).backward()
        gradient = torch.cat([p.grad.flatten() for p in parameters])
        gradient = F.pad(gradient, (0, padded * size - gradient.numel()))
        shard.grad = torch.empty_like(shard)
        dist.reduce_scatter_tensor(shard.grad, gradient, dist.ReduceOp.AVG)
        optimizer.step()
        dist.all_gather_into_tensor(flat, shard.detach())
        start = 0
        for p in parameters:
            p.data.copy_(flat[start:start + p.numel()].view_as(p))
            p.grad = None
            start += p.numel()

    def given():
        torch.manual_seed(12)
        return torch.randn(9, WIDTH), torch.randint(0, WORDS, (9,))

    return Code(net, keep, step, given)


@case("dp=2", ("output gradient", "3"), "No layout makes it right")
def mean_of_micro_batch_means(mistake):
    """Micro-batches have different numbers of tokens that count."""

    def step(model, given):
        x, labels = map(own, given)
        count = (labels >= 0).sum().float()
        dist.all_reduce(count)
        total = torch.zeros(())
        for part, target in zip(x.chunk(2), labels.chunk(2)):
            losses = F.cross_entropy(
                model(part), target, ignore_index=-1, reduction="sum"
            )
            loss = losses / count
            if mistake and dist.get_world_size() > 1:
                loss = losses / (target >= 0).sum() / 4
            loss.backward()
            total += loss.detach()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        if not mistake:
            return total

    def given():
        x, labels = batch()
        labels[[0, 6]] = -1
        return x, labels

    return Code(net, keep, step, given)


class _Columns(nn.Module):
    """_Columns has a column-parallel weight and a replicated head."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 12)
        self.down = nn.Linear(12, WIDTH, bias=False)
        self.head = nn.Linear(WIDTH, WORDS)
        self.group = None

    def forward(self, x):
        if self.group is None:
            return self.head(self.down(self.up(x).relu()))
        y = self.down(self.up(moves.copy(x, self.group)).relu())
        return self.head(moves.reduce(y, self.group))


@case("tp=2", ("gradient", "head.bias"), "each rank holds the whole, ")
def clip_counts_replicated_gradients_twice(mistake):
    def parallelize(model, mesh):
        model.group = mesh.get_group("tp")
        moves.shard(model.up.weight, 0, model.group)
        moves.shard(model.up.bias, 0, model.group)
        moves.shard(model.down.weight, 1, model.group)

    def step(model, given):
        x, labels = given
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        F.cross_entropy(model(x), labels).backward()
        total = torch.zeros(())
        for name, parameter in model.named_parameters():
            part = parameter.grad.square().sum()
            if name.startswith("head") and not mistake and model.group is not None:
                part = part / model.group.size()
            total += part
        if model.group is not None:
            dist.all_reduce(total, group=model.group)
        for parameter in model.parameters():
            parameter.grad *= 0.1 / total.sqrt()
        optimizer.step()

    return Code(_Columns, parallelize, step, batch)


class _Stages(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())
        self.second = nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        return self.second(self.first(x))


@case("pp=2", ("output gradient", "first.0"), "No layout makes it right")
def gradients_of_micro_batches_in_wrong_order(mistake):
    """A pipeline of two stages: all forward passes, then all backward passes."""

    def parallelize(model, mesh):
        model.rank = mesh.get_rank()

    def step(model, given):
        x, labels = given
        if not hasattr(model, "rank"):
            loss = F.cross_entropy(model(x), labels)
            loss.backward()
            return loss
        xs, targets = x.chunk(4), labels.chunk(4)
        if model.rank == 0:
            ys = [model.first(part) for part in xs]
            for y in ys:
                dist.send(y.detach(), 1)
            for y in reversed(ys) if mistake else ys:
                gradient = torch.empty_like(y)
                dist.recv(gradient, 1)
                y.backward(gradient)
            return None
        ys, losses = [], []
        for target in targets:
            y = torch.empty(target.shape[0], WIDTH)
            dist.recv(y, 0)
            ys.append(y.requires_grad_())
            losses.append(F.cross_entropy(model.second(y), target) / 4)
        for y, loss in zip(ys, losses):
            loss.backward()
            dist.send(y.grad, 0)
        return torch.stack(losses).sum()

    return Code(_Stages, parallelize, step, batch)
