"""These programs compute attention of tokens that several ranks have: a ring of blocks,
an exchange of heads for tokens, and tokens in two parts for each rank."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from . import moves
from .cases import Code, case
from .layouts_of_tokens import rotated

WIDTH, HEADS, TOKENS = 12, 6, 12


class _Pass(torch.autograd.Function):
    """Passes a tensor to the next rank of a ring; its gradient goes back."""

    @staticmethod
    def forward(ctx, value, group):
        ctx.group = group
        return _passed(value, group, 1)

    @staticmethod
    def backward(ctx, gradient):
        return _passed(gradient, ctx.group, -1), None


def _passed(value, group, step):
    rank, size = group.rank(), group.size()
    result = torch.empty_like(value)
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, value.contiguous(), (rank + step) % size, group),
        dist.P2POp(dist.irecv, result, (rank - step) % size, group),
    ])
    for work in works:
        work.wait()
    return result


class _Exchange(torch.autograd.Function):
    """Shards one dim and gathers another one by all_to_all."""

    @staticmethod
    def forward(ctx, value, split, joined, group, is_reversed):
        ctx.dims, ctx.group, ctx.is_reversed = (split, joined), group, is_reversed
        parts = [part.contiguous() for part in value.chunk(group.size(), split)]
        received = [torch.empty_like(part) for part in parts]
        dist.all_to_all(received, parts, group=group)
        if is_reversed:
            received.reverse()
        return torch.cat(received, joined)

    @staticmethod
    def backward(ctx, gradient):
        split, joined = ctx.dims
        parts = list(gradient.chunk(ctx.group.size(), joined))
        if ctx.is_reversed:
            parts.reverse()
        received = [torch.empty_like(part) for part in parts]
        parts = [part.contiguous() for part in parts]
        dist.all_to_all(received, parts, group=ctx.group)
        return torch.cat(received, split), None, None, None, None


class Attention(nn.Module):
    def __init__(self, kind, mistake):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.group, self.kind, self.mistake = None, kind, mistake

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in self.qkv(x).chunk(3, -1)
        )
        kind = "none" if self.group is None else self.kind
        y = getattr(self, f"of_{kind}")(q, k, v)
        return self.out(y.transpose(1, 2).flatten(2))

    def of_none(self, q, k, v):
        if self.kind == "parts":
            positions = torch.arange(q.shape[2], dtype=q.dtype)
            q, k = rotated(q, positions), rotated(k, positions)
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.kind == "parts")

    def of_ring(self, q, k, v):
        result = torch.zeros_like(q)
        weight = torch.full(q.shape[:-1], float("-inf"), dtype=q.dtype)[..., None]
        for index in range(self.group.size()):
            scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
            own = scores.logsumexp(-1, keepdim=True)
            total = torch.logaddexp(weight, own)
            before = torch.ones_like(weight) if self.mistake else (weight - total).exp()
            result = result * before + (own - total).exp() * (scores.softmax(-1) @ v)
            weight = total
            if index + 1 < self.group.size():
                k, v = _Pass.apply(k, self.group), _Pass.apply(v, self.group)
        return result

    def of_exchange(self, q, k, v):
        q, k, v = (_Exchange.apply(t, 1, 2, self.group, False) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v)
        return _Exchange.apply(y, 2, 1, self.group, self.mistake)

    def of_parts(self, q, k, v):
        rank, size = self.group.rank(), self.group.size()
        count = q.shape[2] // 2
        order = [index for r in range(size) for index in (r, 2 * size - 1 - r)]
        parts = torch.arange(2 * size * count).chunk(2 * size)
        everywhere = torch.cat([parts[index] for index in order])
        positions = everywhere.chunk(size)[rank]
        if self.mistake:
            positions = torch.arange(2 * count) + 2 * count * rank
        q, k = rotated(q, positions), rotated(k, positions)
        k, v = (moves.gather(t, 2, self.group, terms=True) for t in (k, v))
        if self.mistake:
            positions = everywhere.chunk(size)[rank]
        mask = positions[:, None] >= everywhere
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _code(kind, mistake):
    def parallelize(model, mesh):
        model.group = mesh.get_group("cp")

    def step(model, x):
        group = model.group
        if group is not None:
            size, rank = group.size(), group.rank()
            if kind == "parts":
                parts = x.chunk(2 * size, 1)
                x = torch.cat([parts[rank], parts[2 * size - 1 - rank]], 1)
            else:
                x = x.chunk(size, 1)[rank]
        loss = model(x).square().mean()
        loss.backward()
        if group is not None:
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad, group=group)
                parameter.grad /= group.size()
        return loss

    def given():
        torch.manual_seed(5)
        return torch.randn(2, TOKENS, WIDTH)

    return Code(lambda: Attention(kind, mistake), parallelize, step, given)


@case("cp=3", ("input", "out"), "No layout makes it right")
def ring_attention_without_rescaling(mistake):
    return _code("ring", mistake)


@case("cp=3", ("input", "out"), "No layout makes it right")
def heads_returned_in_wrong_order(mistake):
    return _code("exchange", mistake)


@case("cp=2", ("input", "out"), "No layout makes it right")
def wrong_rope_positions_of_two_parts(mistake):
    return _code("parts", mistake)
