"""These programs shard weights by hand over tp."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from . import moves
from .cases import Code, case

WIDTH, HIDDEN, WORDS = 8, 12, 10


class Mlp(nn.Module):
    """An Mlp is Megatron's: column parallel, then row parallel."""

    def __init__(self, mistake=""):
        super().__init__()
        self.up = nn.Linear(WIDTH, HIDDEN)
        self.down = nn.Linear(HIDDEN, WIDTH)
        self.group, self.mistake = None, mistake

    def forward(self, x):
        if self.group is None:
            return self.down(F.gelu(self.up(x)))
        if self.mistake != "no copy":
            x = moves.copy(x, self.group)
        hidden = F.gelu(self.up(x))
        if self.mistake == "bias":
            return moves.reduce(
                F.linear(hidden, self.down.weight, self.down.bias), self.group
            )
        y = F.linear(hidden, self.down.weight)
        if self.mistake != "no reduction":
            y = moves.reduce(y, self.group)
        if self.mistake == "twice":
            y = moves.reduce(y, self.group)
        return y + self.down.bias

    def shard(self, group):
        self.group = group
        moves.shard(self.up.weight, 0, group)
        moves.shard(self.up.bias, 0, group)
        moves.shard(self.down.weight, 1, group)


class Block(nn.Module):
    def __init__(self, mistake=""):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.mlp = Mlp(mistake)

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Net(nn.Module):
    def __init__(self, mistake="", dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList(Block(mistake) for _ in range(2))
        self.drop = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        for layer in self.layers:
            x = self.drop(layer(x))
        return self.head(self.norm(x))


def batch():
    torch.manual_seed(1)
    return torch.randn(4, 6, WIDTH), torch.randint(0, WORDS, (4, 6))


def step(model, given):
    x, labels = given
    loss = F.cross_entropy(model(x).flatten(0, 1), labels.flatten())
    loss.backward()
    return loss


def shard_blocks(model, mesh):
    for layer in model.layers:
        layer.mlp.shard(mesh.get_group("tp"))


def _net(name, **options):
    return Code(lambda: Net(name, **options), shard_blocks, step, batch)


@case("tp=4", ("output", "layers.0.mlp"), "`layers.0.mlp.down.bias` parameter")
def bias_times_degree(mistake):
    return _net("bias" if mistake else "")


@case("tp=2", ("output", "layers.0.mlp"), "The ranks hold terms: a sum over tp is missing")
def missing_reduction(mistake):
    return _net("no reduction" if mistake else "")


@case("tp=2", ("output", "layers.0.mlp"), "")
def double_reduction(mistake):
    return _net("twice" if mistake else "")


@case("tp=2", ("gradient", "layers.1.norm.weight"), "sum over tp is missing")
def missing_reduction_in_backward(mistake):
    return _net("no copy" if mistake else "")


@case("tp=2", ("output", "drop"), "is wrong")
def dropout_differs_between_replicas(mistake):
    def parallelize(model, mesh):
        shard_blocks(model, mesh)
        torch.manual_seed(7 + (mesh.get_rank() if mistake else 0))

    return Code(lambda: Net(dropout=0.3), parallelize, step, batch)


class Words(nn.Module):
    """Words has an embedding whose rows are sharded over the ranks."""

    def __init__(self, mistake):
        super().__init__()
        self.table = nn.Embedding(12, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.group, self.mistake = None, mistake

    def forward(self, ids):
        if self.group is None:
            return self.norm(self.table(ids))
        rows = self.table.weight.shape[0]
        first = rows * self.group.rank()
        if self.mistake:
            first = rows * self.group.rank() - 1
        own = ids - first
        outside = (own < 0) | (own >= rows)
        vectors = F.embedding(own.masked_fill(outside, 0), self.table.weight)
        vectors = vectors.masked_fill(outside[..., None], 0)
        return self.norm(moves.reduce(vectors, self.group))


@case("tp=3", ("input", "norm"), "No layout makes it right")
def wrong_mask_offset_of_embedding(mistake):
    def parallelize(model, mesh):
        model.group = mesh.get_group("tp")
        moves.shard(model.table.weight, 0, model.group)

    def run(model, ids):
        loss = model(ids).square().mean() + model(ids).mean()
        loss.backward()
        return loss

    def ids():
        torch.manual_seed(2)
        return torch.randint(0, 12, (3, 5))

    return Code(lambda: Words(mistake), parallelize, run, ids)


class VocabLoss(nn.Module):
    """VocabLoss computes the cross entropy of logits that are sharded by words."""

    def __init__(self, mistake):
        super().__init__()
        self.head = nn.Linear(WIDTH, 12, bias=False)
        self.group, self.mistake = None, mistake

    def forward(self, x, labels):
        if self.group is None:
            return F.cross_entropy(self.head(x), labels)
        logits = self.head(moves.copy(x, self.group))
        largest = logits.detach().amax(-1)
        dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=self.group)
        shifted = logits - largest[:, None]
        total = shifted.exp().sum(-1)
        if not self.mistake:
            total = moves.reduce(total, self.group)
        words = logits.shape[-1]
        own = labels - words * self.group.rank()
        outside = (own < 0) | (own >= words)
        picked = shifted.gather(-1, own.masked_fill(outside, 0)[:, None])[:, 0]
        picked = moves.reduce(picked.masked_fill(outside, 0), self.group)
        return (total.log() - picked).mean()


@case("tp=2", ("output", ""), "No layout makes it right")
def missing_reduction_in_loss(mistake):
    def parallelize(model, mesh):
        model.group = mesh.get_group("tp")
        moves.shard(model.head.weight, 0, model.group)

    def run(model, given):
        loss = model(*given)
        loss.backward()
        return loss

    def given():
        torch.manual_seed(3)
        return torch.randn(6, WIDTH), torch.randint(0, 12, (6,))

    return Code(lambda: VocabLoss(mistake), parallelize, run, given)


class Experts(nn.Module):
    """Experts are gated; each rank has some experts and sees all tokens."""

    def __init__(self, mistake):
        super().__init__()
        self.router = nn.Linear(WIDTH, 4)
        self.weight = nn.Parameter(torch.randn(4, WIDTH, WIDTH) / 3)
        self.bias = nn.Parameter(torch.randn(4, WIDTH))
        self.group, self.mistake = None, mistake

    def forward(self, x):
        gates = self.router(x).softmax(-1)
        if self.group is None:
            each = torch.einsum("td,edh->teh", x, self.weight) + self.bias
            return torch.einsum("te,teh->th", gates, each)
        x, gates = moves.copy(x, self.group), moves.copy(gates, self.group)
        count = self.weight.shape[0]
        own = gates.narrow(-1, count * self.group.rank(), count)
        if self.mistake:
            own = own / own.sum(-1, keepdim=True)
        each = torch.einsum("td,edh->teh", x, self.weight) + self.bias
        return moves.reduce(torch.einsum("te,teh->th", own, each), self.group)


@case("ep=2", ("output", "experts"), "No layout makes it right")
def wrong_scale_of_experts(mistake):
    def build():
        model = nn.Module()
        model.experts = Experts(mistake)
        model.norm = nn.LayerNorm(WIDTH)
        return model

    def parallelize(model, mesh):
        experts = model.experts
        experts.group = mesh.get_group("ep")
        moves.shard(experts.weight, 0, experts.group)
        moves.shard(experts.bias, 0, experts.group)

    def run(model, x):
        loss = model.norm(model.experts(x)).square().mul(x).sum()
        loss.backward()
        return loss

    def given():
        torch.manual_seed(4)
        return torch.randn(6, WIDTH)

    return Code(build, parallelize, run, given)
