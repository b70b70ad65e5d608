"""These programs shard features, words or positions that an operator reduces over."""

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_functional
import torch.nn.functional as F
from torch import nn

from . import moves
from .cases import Code, case

WIDTH, WORDS = 8, 12


class Norm(nn.Module):
    """Norm divides by the root mean square of features that several ranks have."""

    def __init__(self, mistake):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(WIDTH) + 0.5)
        self.group, self.mistake = None, mistake

    def forward(self, x):
        total, count = x.square().sum(-1, keepdim=True), x.shape[-1]
        if self.group is not None and not self.mistake:
            total = dist_functional.all_reduce(total, group=self.group)
            count *= self.group.size()
        return x * (total / count + 1e-6).rsqrt() * self.weight


@case("tp=2", ("output", "norm"), "No layout makes it right")
def norm_of_local_features(mistake):
    def build():
        model = nn.Module()
        model.up = nn.Linear(WIDTH, WIDTH)
        model.norm = Norm(mistake)
        model.down = nn.Linear(WIDTH, WORDS, bias=False)
        model.head = nn.Tanh()
        return model

    def parallelize(model, mesh):
        model.norm.group = group = mesh.get_group("tp")
        moves.shard(model.up.weight, 0, group)
        moves.shard(model.up.bias, 0, group)
        moves.shard(model.norm.weight, 0, group)
        moves.shard(model.down.weight, 1, group)

    def step(model, x):
        group = model.norm.group
        if group is not None:
            x = moves.copy(x, group)
        y = model.down(model.norm(model.up(x)))
        if group is not None:
            y = moves.reduce(y, group)
        loss = model.head(y).square().sum()
        loss.backward()
        return loss

    def given():
        torch.manual_seed(13)
        return torch.randn(5, WIDTH)

    return Code(build, parallelize, step, given)


class Loss(nn.Module):
    """Loss is the cross entropy of sharded words, plus a term of their log-sum-exp."""

    def __init__(self, mistake):
        super().__init__()
        self.group, self.mistake = None, mistake

    def forward(self, logits, labels):
        if self.group is None:
            total = logits.logsumexp(-1)
            return F.cross_entropy(logits, labels) + 0.1 * total.square().mean()
        largest = logits.detach().amax(-1, keepdim=True)
        dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=self.group)
        shifted = logits - largest
        total = moves.reduce(shifted.exp().sum(-1), self.group).log() + largest[:, 0]
        count = logits.shape[-1]
        own = labels - count * self.group.rank()
        outside = (own < 0) | (own >= count)
        picked = logits.gather(-1, own.masked_fill(outside, 0)[:, None])[:, 0]
        picked = picked.masked_fill(outside, 0)
        extra = 0.1 * total.square().mean()
        if self.mistake:
            return moves.reduce(extra - picked.mean(), self.group) + total.mean()
        return total.mean() - moves.reduce(picked, self.group).mean() + extra


@case("tp=3", ("output", "loss"), "No layout makes it right")
def term_of_loss_counted_on_each_rank(mistake):
    def build():
        model = nn.Module()
        model.head = nn.Linear(WIDTH, WORDS, bias=False)
        model.loss = Loss(mistake)
        return model

    def parallelize(model, mesh):
        model.loss.group = mesh.get_group("tp")
        moves.shard(model.head.weight, 0, model.loss.group)

    def step(model, given):
        x, labels = given
        if model.loss.group is not None:
            x = moves.copy(x, model.loss.group)
        loss = model.loss(model.head(x), labels)
        loss.backward()
        return loss

    def given():
        torch.manual_seed(14)
        return torch.randn(6, WIDTH), torch.randint(0, WORDS, (6,))

    return Code(build, parallelize, step, given)


class _Halo(torch.autograd.Function):
    """Adds one position of each neighbor to both ends of a sequence."""

    @staticmethod
    def forward(ctx, x, group, mistake):
        ctx.group = group
        left, right = _with_neighbors(x[..., :1], x[..., -1:], group)
        if mistake:
            left, right = right, left
        return torch.cat([left, x, right], -1)

    @staticmethod
    def backward(ctx, gradient):
        # The gradients of the added positions go back to the neighbors.
        left, right = _with_neighbors(gradient[..., :1], gradient[..., -1:], ctx.group)
        own = gradient[..., 1:-1].clone()
        own[..., :1] += left
        own[..., -1:] += right
        return own, None, None


def _with_neighbors(first, last, group):
    """Sends both ends to the neighbors and returns what they send: zeros at the ends of
    the whole sequence."""
    rank, size = group.rank(), group.size()
    left, right = torch.zeros_like(first), torch.zeros_like(last)
    works = []
    for other, sent, received in ((rank - 1, first, left), (rank + 1, last, right)):
        if 0 <= other < size:
            works.append(dist.isend(sent.contiguous(), other, group=group))
            works.append(dist.irecv(received, other, group=group))
    for work in works:
        work.wait()
    return left, right


class Convolution(nn.Module):
    def __init__(self, mistake):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3, 3))
        self.group, self.mistake = None, mistake

    def forward(self, x):
        if self.group is None:
            return F.conv1d(x, self.weight, padding=1)
        return F.conv1d(_Halo.apply(x, self.group, self.mistake), self.weight)


@case("sp=3", ("output", "0"), "No layout makes it right")
def neighbors_of_convolution_swapped(mistake):
    def parallelize(model, mesh):
        model[0].group = mesh.get_group("sp")

    def step(model, x):
        group = model[0].group
        if group is not None:
            x = x.chunk(group.size(), -1)[group.rank()]
        loss = model(x).square().sum()
        loss.backward()
        if group is not None:
            dist.all_reduce(model[0].weight.grad, group=group)
        return loss

    def given():
        torch.manual_seed(15)
        return torch.randn(2, 3, 12)

    return Code(
        lambda: nn.Sequential(Convolution(mistake), nn.Tanh()), parallelize, step, given
    )
