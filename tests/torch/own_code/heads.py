"""These programs shard attention by heads, in fused and shared weights."""

import torch
import torch.nn.functional as F
from torch import nn

from . import moves
from .cases import Code, case

WIDTH, SIZE = 8, 4


class Attention(nn.Module):
    """Attention has four query heads, two key heads, and one weight for all of them."""

    def __init__(self, mistake=""):
        super().__init__()
        self.queries, self.keys = 4, 2
        self.qkv = nn.Linear(WIDTH, 8 * SIZE)
        self.out = nn.Linear(4 * SIZE, WIDTH, bias=False)
        self.group, self.mistake = None, mistake

    def forward(self, x):
        if self.group is not None:
            x = moves.copy(x, self.group)
        sizes = [self.queries * SIZE, self.keys * SIZE, self.keys * SIZE]
        q, k, v = (
            part.unflatten(-1, (-1, SIZE)).transpose(1, 2)
            for part in self.qkv(x).split(sizes, -1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        y = self.out(y.transpose(1, 2).flatten(2))
        return y if self.group is None else moves.reduce(y, self.group)

    def shard(self, group):
        """Gives each rank its heads of each part of the fused weight."""
        self.group = group
        size, rank = group.size(), group.rank()
        parts = []
        for tensor in (self.qkv.weight.data, self.qkv.bias.data):
            q, k, v = tensor.split([4 * SIZE, 2 * SIZE, 2 * SIZE])
            # Two ranks share a head of keys if there are more ranks than heads.
            own = min(size, 2)
            key = rank * own // size
            if self.mistake == "heads":
                key = 1 - key
            parts.append(torch.cat([
                q.chunk(size)[rank], k.chunk(own)[key], v.chunk(own)[key]
            ]))
        self.qkv.weight.data, self.qkv.bias.data = parts
        self.queries, self.keys = 4 // size, max(2 // size, 1)
        moves.shard(self.out.weight, 1, group)


def _code(mistake, reduces=True):
    def parallelize(model, mesh):
        model.shard(mesh.get_group("tp"))

    def step(model, x):
        loss = model(x).square().mean()
        loss.backward()
        group = model.group
        if group is not None and group.size() == 4 and reduces:
            # The gradients of shared heads are terms on both ranks that hold them.
            for parameter in model.qkv.parameters():
                shared = parameter.grad[SIZE:].contiguous()
                every = moves.gather(shared, 0, group).chunk(4)
                pair = group.rank() // 2 * 2
                parameter.grad[SIZE:] = every[pair] + every[pair + 1]
        return loss

    def given():
        torch.manual_seed(7)
        return torch.randn(2, 5, WIDTH)

    return Code(lambda: Attention(mistake), parallelize, step, given)


@case("tp=2", ("input", "out"), "holds rows in another order")
def heads_of_other_rank(mistake):
    return _code("heads" if mistake else "")


@case("tp=4", ("output gradient", "qkv"), "No layout makes it right")
def gradient_of_shared_heads_not_reduced(mistake):
    return _code("", reduces=not mistake)
