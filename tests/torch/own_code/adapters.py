"""These programs shard heads and adapters, and replicate a part of them."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from . import moves
from .cases import Code, case

WIDTH, HEADS, SHARED, SIZE = 16, 4, 2, 4


class Attention(nn.Module):
    """This attention has fewer heads of keys than of queries, and norms of both."""

    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, HEADS * SIZE, bias=False)
        self.key = nn.Linear(WIDTH, SHARED * SIZE, bias=False)
        self.value = nn.Linear(WIDTH, SHARED * SIZE, bias=False)
        self.query_norm, self.key_norm = nn.RMSNorm(SIZE), nn.RMSNorm(SIZE)
        self.out = nn.Linear(HEADS * SIZE, WIDTH, bias=False)
        self.group = None

    def forward(self, x):
        if self.group is not None:
            x = moves.copy(x, self.group)
        q, k, v = (
            layer(x).unflatten(-1, (-1, SIZE)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        q, k = self.query_norm(q), self.key_norm(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        y = self.out(y.transpose(1, 2).flatten(2))
        return y if self.group is None else moves.reduce(y, self.group)


def tokens():
    torch.manual_seed(1)
    return torch.randn(2, 6, WIDTH)


def heads(model, mesh):
    """Each rank has a head of queries. Two ranks have the same head of keys."""
    model.group = group = mesh.get_group()
    moves.shard(model.query.weight, 0, group)
    moves.shard(model.out.weight, 1, group)
    shared = model.group.rank() * SHARED // group.size()
    for layer in (model.key, model.value):
        layer.weight.data = layer.weight.data.chunk(SHARED)[shared].clone()


def sums(model, mesh, left_out):
    """Sums the gradients of what several ranks have."""
    if model.group is None:
        return
    rank = model.group.rank()
    pairs = [dist.new_group(pair) for pair in ([0, 1], [2, 3])]
    for name, parameter in model.named_parameters():
        if name == left_out:
            continue
        if name.startswith(("key.", "value.")):
            dist.all_reduce(parameter.grad, group=pairs[rank // 2])
        elif "norm" in name:
            dist.all_reduce(parameter.grad, group=model.group)


def step_without(left_out):
    def step(model, x, mesh):
        loss = model(x).square().mean()
        loss.backward()
        sums(model, mesh, left_out)
        torch.optim.AdamW(model.parameters(), 0.01).step()
        return loss

    return step


@case("tp=4", ("gradient", "key_norm.weight"), "sum over tp is missing")
def norm_of_keys_on_each_head(mistake):
    left_out = "key_norm.weight" if mistake else ""
    return Code(Attention, heads, step_without(left_out), tokens)


@case("tp=4", ("gradient", "value.weight"), "No layout makes it right")
def shared_head_of_values(mistake):
    return Code(Attention, heads, step_without("value.weight" if mistake else ""), tokens)


class Adapted(nn.Module):
    """An Adapted layer is frozen and has an adapter of low rank."""

    def __init__(self, width, out):
        super().__init__()
        self.layer = nn.Linear(width, out, bias=False).requires_grad_(False)
        self.down = nn.Linear(width, 2, bias=False)
        self.up = nn.Linear(2, out, bias=False)

    def forward(self, x, group=None, copies=True):
        low = self.down(x)
        if group is not None and copies:
            low = moves.copy(low, group)
        return self.layer(x) + self.up(low)


class Adapters(nn.Module):
    def __init__(self, mistake):
        super().__init__()
        self.first, self.second = Adapted(WIDTH, 12), Adapted(12, WIDTH)
        self.group, self.mistake = None, mistake

    def forward(self, x):
        if self.group is None:
            return self.second(self.first(x).relu())
        y = self.first(x, self.group, copies=not self.mistake).relu()
        wide = self.second
        low = moves.reduce(wide.down(y), self.group)
        return moves.reduce(wide.layer(y), self.group) + wide.up(low)


@case("tp=2", ("gradient", "first.down.weight"), "sum over tp is missing")
def adapter_of_column_layer(mistake):
    def parallelize(model, mesh):
        model.group = group = mesh.get_group()
        for parameter, dim in (
            (model.first.layer.weight, 0), (model.first.up.weight, 0),
            (model.second.layer.weight, 1), (model.second.down.weight, 1),
        ):
            moves.shard(parameter, dim, group)

    def step(model, x):
        loss = model(x).square().mean()
        loss.backward()
        trained = [p for p in model.parameters() if p.requires_grad]
        torch.optim.AdamW(trained, 0.01).step()
        return loss

    return Code(lambda: Adapters(mistake), parallelize, step, tokens)
