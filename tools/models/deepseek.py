"""This is a DeepSeek-style decoder: latent attention, experts of fixed capacity.

Keys and values are computed from one narrow latent vector for each token. Every expert
reads `capacity` tokens of a sequence. One-hot matmuls dispatch tokens to experts and
combine the results, as in GShard, so that all sizes are fixed. If experts are sharded,
these matmuls become the exchange of tokens by all-to-all.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F


class LatentAttention(nn.Module):
    def __init__(self, hidden, heads, head_dim, latent):
        super().__init__()
        self.heads, self.head_dim = heads, head_dim
        inner = heads * head_dim
        self.query = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(hidden, latent, bias=False)
        self.norm = nn.RMSNorm(latent)
        self.up = nn.Linear(latent, 2 * inner, bias=False)
        self.out = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        def by_head(t):
            return t.unflatten(-1, (self.heads, self.head_dim)).transpose(1, 2)

        key, value = self.up(self.norm(self.down(x))).chunk(2, -1)
        made = F.scaled_dot_product_attention(
            by_head(self.query(x)), by_head(key), by_head(value), is_causal=True
        )
        return self.out(made.transpose(1, 2).flatten(2))


class Experts(nn.Module):
    """Applies the `top_k` best experts, stacked in dim 0, to each token."""

    def __init__(self, hidden, inner, experts, top_k, capacity):
        super().__init__()
        self.top_k, self.capacity = top_k, capacity
        self.gate = nn.Linear(hidden, experts, bias=False)
        self.up = nn.Parameter(torch.empty(experts, hidden, 2 * inner))
        self.down = nn.Parameter(torch.empty(experts, inner, hidden))

    def forward(self, x):
        chances = F.softmax(self.gate(x).float(), dim=-1)
        best = torch.topk(chances, self.top_k, dim=-1).values[..., -1:]
        kept = chances * (chances >= best)
        # The place is the index of a token among the tokens of its expert, by sequence.
        place = (kept > 0).float().cumsum(1) - 1
        places = torch.arange(self.capacity, device=x.device, dtype=place.dtype)
        slots = (place.unsqueeze(-1) == places).to(x.dtype)
        combine = kept.to(x.dtype).unsqueeze(-1) * slots
        dispatch = (combine > 0).to(x.dtype)
        tokens = torch.einsum("gsec,gsh->egch", dispatch, x)
        gates, values = torch.einsum("egch,ehi->egci", tokens, self.up).chunk(2, -1)
        made = torch.einsum("egci,eih->egch", F.silu(gates) * values, self.down)
        return torch.einsum("gsec,egch->gsh", combine, made)


class Layer(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        hidden = sizes["hidden"]
        self.attention_norm = nn.RMSNorm(hidden)
        self.attention = LatentAttention(
            hidden, sizes["heads"], sizes["head_dim"], sizes["latent"]
        )
        self.experts_norm = nn.RMSNorm(hidden)
        self.experts = Experts(
            hidden,
            sizes["inner"],
            sizes["experts"],
            sizes["top_k"],
            sizes["capacity"],
        )

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.experts(self.experts_norm(x))


class Decoder(nn.Module):
    def __init__(self, training, sizes):
        super().__init__()
        self.with_loss = training
        self.embed = nn.Embedding(sizes["vocabulary"], sizes["hidden"])
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes["layers"]))
        self.norm = nn.RMSNorm(sizes["hidden"])
        self.head = nn.Linear(sizes["hidden"], sizes["vocabulary"], bias=False)

    def forward(self, ids, targets):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x))
        if not self.with_loss:
            return logits
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def _decoder(training, batch, sequence, dtype, **sizes):
    share = sequence * sizes["top_k"] / sizes["experts"]
    sizes["capacity"] = max(1, math.ceil(1.25 * share))
    model = Decoder(training, sizes).to(dtype).train(training)
    ids = torch.zeros(batch, sequence, dtype=torch.int64)
    return model, (ids, ids.clone())


def deepseek_moe_64(training):
    return _decoder(
        training,
        batch=32,
        sequence=4096,
        dtype=torch.bfloat16,
        layers=4,
        hidden=2048,
        heads=16,
        head_dim=128,
        latent=512,
        inner=1408,
        experts=64,
        top_k=6,
        vocabulary=32000,
    )


def deepseek_moe_8(training):
    """Returns two layers with the two best of 8 experts; the graph remains small."""
    return _decoder(
        training,
        batch=8,
        sequence=2048,
        dtype=torch.bfloat16,
        layers=2,
        hidden=2048,
        heads=16,
        head_dim=128,
        latent=512,
        inner=5632,
        experts=8,
        top_k=2,
        vocabulary=32000,
    )


def deepseek_moe_tiny(training):
    return _decoder(
        training,
        batch=4,
        sequence=6,
        dtype=torch.float32,
        layers=2,
        hidden=24,
        heads=6,
        head_dim=4,
        latent=12,
        inner=8,
        experts=4,
        top_k=2,
        vocabulary=30,
    )
