"""Each of these graphs shows one feature."""

import torch
from torch import nn
from torch.nn import functional as F

from exporting.program import Example


class Mlp(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


def mlp_dynamic():
    """Splits a batch of any size from 2 to 64 and concatenates the halves."""

    class Folded(Mlp):
        def forward(self, x):
            batch, steps, features = x.shape
            folded = super().forward(x.reshape(batch * steps, features))
            return folded.reshape(batch, steps, -1)

    batch = torch.export.Dim("batch", min=2, max=64)
    return Example(
        Folded(12, 24, 10), (torch.zeros(4, 6, 12),), dynamic_shapes=({0: batch},)
    )


class Block(nn.Module):
    """A transformer block written with composite and in-place operators."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.proj = nn.Linear(hidden, hidden)
        self.norm2 = nn.LayerNorm(hidden)
        self.mlp = Mlp(hidden, 2 * hidden, hidden)

    def forward(self, x):
        batch, sequence, hidden = x.shape
        qkv = self.qkv(self.norm1(x))
        qkv = qkv.view(batch, sequence, 3, self.heads, hidden // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attention = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        attention = attention.transpose(1, 2).reshape(batch, sequence, hidden)
        y = self.proj(attention)
        y += x
        return y + self.mlp(self.norm2(y))


def block_composite():
    return Block(12, 6), (torch.zeros(4, 6, 12),)
