"""These programs shard the tokens by hand: sequence and context parallel."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from . import moves
from .cases import Code, case

WIDTH, HEADS, TOKENS = 8, 2, 8


def rotated(x, positions):
    """Rotates pairs of features by the position of their token (RoPE)."""
    half = x.shape[-1] // 2
    speeds = 1.0 / 10 ** (torch.arange(half) / half)
    angles = positions[:, None] * speeds
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Attention(nn.Module):
    """Attention has the tokens of this rank; it gathers the keys and values."""

    def __init__(self, mistake=""):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.group, self.mistake = None, mistake

    def forward(self, x):
        count = x.shape[1]
        first = 0 if self.group is None else count * self.group.rank()
        positions = torch.arange(count, dtype=x.dtype) + (
            0 if self.mistake == "rope" else first
        )
        q, k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in self.qkv(x).chunk(3, -1)
        )
        q, k = rotated(q, positions), rotated(k, positions)
        if self.group is not None:
            dim = 1 if self.mistake == "dim" else 2
            k = moves.gather(k, dim, self.group, terms=True)
            v = moves.gather(v, dim, self.group, terms=True)
            if self.mistake == "dim":
                k = k.reshape(q.shape[0], HEADS, -1, q.shape[-1])
                v = v.reshape(k.shape)
            if self.mistake == "swapped":
                k = torch.cat(list(reversed(k.chunk(self.group.size(), 2))), 2)
        if self.mistake == "mask":
            first = 0
        rows = torch.arange(count)[:, None] + first
        mask = rows >= torch.arange(k.shape[2])
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, mistake=""):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = Attention(mistake)

    def forward(self, x):
        return x + self.attention(self.norm(x))


def batch():
    torch.manual_seed(5)
    return torch.randn(2, TOKENS, WIDTH)


def _context(mistake):
    def parallelize(model, mesh):
        model.attention.group = mesh.get_group("cp")

    def step(model, x):
        group = model.attention.group
        if group is not None:
            x = x.chunk(group.size(), 1)[group.rank()]
        loss = model(x).square().mean()
        loss.backward()
        if group is not None:
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad, group=group)
                parameter.grad /= group.size()
        return loss

    return Code(lambda: Block(mistake), parallelize, step, batch)


@case("cp=2", ("input", "attention.out"), "No layout makes it right")
def wrong_rope_offset(mistake):
    return _context("rope" if mistake else "")


@case("cp=2", ("input", "attention.out"), "only rank 1 is wrong")
def wrong_mask_offset(mistake):
    return _context("mask" if mistake else "")


@case("cp=2", ("input", "attention.out"), "No layout makes it right")
def gather_of_wrong_dim(mistake):
    return _context("dim" if mistake else "")


@case("cp=2", ("input", "attention.out"), "No layout makes it right")
def swapped_shard_order(mistake):
    return _context("swapped" if mistake else "")


class Sequenced(nn.Module):
    """Sequenced is a sequence-parallel block: the norm sees a part of the tokens."""

    def __init__(self, mistake):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 12, bias=False)
        self.down = nn.Linear(12, WIDTH, bias=False)
        self.group, self.mistake = None, mistake

    def forward(self, x):
        y = self.norm(x)
        if self.group is None:
            return x + self.down(F.gelu(self.up(y)))
        y = moves.gather(y, 1, self.group, terms=True)
        y = self.down(F.gelu(self.up(y)))
        return x + moves.reduce_scatter(y, 1, self.group)


@case("tp=2", ("gradient", "norm.weight"), "sum over tp is missing")
def norm_gradient_not_reduced(mistake):
    def parallelize(model, mesh):
        model.group = group = mesh.get_group("tp")
        moves.shard(model.up.weight, 0, group)
        moves.shard(model.down.weight, 1, group)

    def step(model, x):
        group = model.group
        if group is not None:
            x = x.chunk(group.size(), 1)[group.rank()]
        loss = model(x).square().sum() / (2 * TOKENS)
        loss.backward()
        if group is not None and not mistake:
            dist.all_reduce(model.norm.weight.grad, group=group)
            dist.all_reduce(model.norm.bias.grad, group=group)
        return loss

    return Code(lambda: Sequenced(mistake), parallelize, step, batch)


class Padded(nn.Module):
    """Padded gathers an uneven number of tokens: shards are padded for the gather."""

    def __init__(self, mistake):
        super().__init__()
        self.one = nn.Linear(WIDTH, WIDTH)
        self.two = nn.Linear(WIDTH, WIDTH)
        self.group, self.mistake = None, mistake

    def forward(self, x):
        y = self.one(x)
        if self.group is not None:
            counts = [c.shape[0] for c in torch.empty(7).tensor_split(self.group.size())]
            most = max(counts)
            y = F.pad(y, (0, 0, 0, most - y.shape[0]))
            y = moves.gather(y, 0, self.group, terms=False)
            if self.mistake:
                y = y[:7]
            else:
                y = torch.cat([
                    part[:count] for part, count in zip(y.split(most), counts)
                ])
        return self.two(y.cumsum(0))


@case("tp=3", ("input", "two"), "No layout makes it right")
def padding_leaked(mistake):
    def parallelize(model, mesh):
        model.group = mesh.get_group("tp")

    def given():
        torch.manual_seed(6)
        return torch.randn(7, WIDTH)

    def step(model, x):
        if model.group is not None:
            x = x.tensor_split(model.group.size())[model.group.rank()]
        loss = model(x).square().mean()
        loss.backward()
        if model.group is not None:
            for parameter in model.one.parameters():
                dist.all_reduce(parameter.grad, group=model.group)
        return loss

    return Code(lambda: Padded(mistake), parallelize, step, given)
