"""These programs shard the words: tied tables, losses over shards, counts of tokens."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from . import moves
from .cases import Code, case

WORDS, WIDTH = 12, 8


class Tied(nn.Module):
    """A table of words is also the head. Its ranks have some of the words."""

    def __init__(self, loss_of):
        super().__init__()
        self.table = nn.Parameter(torch.randn(WORDS, WIDTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.group, self.loss_of, self.copies = None, loss_of, True

    def forward(self, ids, labels):
        if self.group is None:
            x = self.norm(F.embedding(ids, self.table))
            return self.loss_of(x @ self.table.t(), labels, None)
        own = self.table.shape[0]
        local = ids - self.group.rank() * own
        inside = (local >= 0) & (local < own)
        x = F.embedding(local * inside, self.table) * inside[..., None]
        x = self.norm(moves.reduce(x, self.group))
        if self.copies:
            x = moves.copy(x, self.group)
        return self.loss_of(x @ self.table.t(), labels, self.group)


def loss_over_shards(smoothing=0.0, mistake=False):
    """Returns the cross entropy of logits of which each rank has some words."""

    def loss_of(logits, labels, group):
        if group is None:
            return F.cross_entropy(
                logits.flatten(0, 1), labels.flatten(), label_smoothing=smoothing
            )
        own = logits.shape[-1]
        largest = logits.detach().amax(-1)
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=group)
        shifted = logits - largest[..., None]
        total = moves.reduce(shifted.exp().sum(-1), group).log()
        local = labels - group.rank() * own
        inside = (local >= 0) & (local < own)
        right = shifted.gather(-1, (local * inside)[..., None])[..., 0] * inside
        right = moves.reduce(right, group)
        count = own if mistake else own * group.size()
        mean = moves.reduce(shifted.sum(-1), group) / count
        return (total - (1 - smoothing) * right - smoothing * mean).mean()

    return loss_of


def given():
    torch.manual_seed(1)
    return torch.randint(0, WORDS, (4, 6)), torch.randint(0, WORDS, (4, 6))


def shard_words(model, mesh):
    model.group = mesh.get_group()
    moves.shard(model.table, 0, model.group)


def step(model, batch):
    loss = model(*batch)
    loss.backward()
    torch.optim.SGD(model.parameters(), 0.1).step()
    return loss


@case("tp=3", ("gradient", "norm.weight"), "sum over tp is missing")
def tied_head_without_copy(mistake):
    def parallelize(model, mesh):
        shard_words(model, mesh)
        model.copies = not mistake

    return Code(lambda: Tied(loss_over_shards()), parallelize, step, given)


@case("tp=2", ("output", ""), "No layout makes it right")
def smoothing_over_local_words(mistake):
    return Code(
        lambda: Tied(loss_over_shards(0.1, mistake)), shard_words, step, given
    )


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids):
        return self.head(self.table(ids).relu())


@case("dp=2,cp=2", ("output gradient", "head"), "each rank holds another multiple")
def means_of_unequal_counts(mistake):
    """Labels of -100 do not count, and the ranks have unlike numbers of them."""

    def own(tensor, mesh):
        if dist.get_world_size() == 1:
            return tensor
        part = tensor.chunk(2)[mesh.get_local_rank("dp")]
        return part.chunk(2, 1)[mesh.get_local_rank("cp")]

    def step(model, batch, mesh):
        ids, labels = (own(tensor, mesh) for tensor in batch)
        count = (labels != -100).sum().float()
        total = F.cross_entropy(
            model(ids).flatten(0, 1), labels.flatten(), reduction="sum"
        )
        size = dist.get_world_size()
        if size == 1:
            loss = total / count
        elif mistake:
            loss = total / count / size
        else:
            dist.all_reduce(count)
            loss = total / count
        loss.backward()
        if size > 1:
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
        return loss

    def padded():
        ids, labels = given()
        labels = labels.clone()
        labels[0, 2:], labels[3, 5:] = -100, -100
        return ids, labels

    return Code(Packed, lambda model, mesh: None, step, padded)


class Norm(nn.Module):
    """An RMS norm over features that the ranks share."""

    def __init__(self, mistake):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(WIDTH) + 0.5)
        self.group, self.mistake = None, mistake

    def forward(self, x):
        squares = x.square().sum(-1, keepdim=True)
        if self.group is not None:
            squares = moves.reduce(squares, self.group)
            if not self.mistake:
                squares = moves.copy(squares, self.group)
        return x * (squares / WIDTH + 1e-5).rsqrt() * self.weight


class Features(nn.Module):
    def __init__(self, mistake):
        super().__init__()
        self.up = nn.Linear(WIDTH, WIDTH, bias=False)
        self.norm = Norm(mistake)
        self.down = nn.Linear(WIDTH, WIDTH, bias=False)
        self.group = None

    def forward(self, x):
        y = self.down(self.norm(self.up(x)))
        return y if self.group is None else moves.reduce(y, self.group)


@case("tp=2", ("output gradient", "up"), "No layout makes it right")
def mean_square_of_sharded_features(mistake):
    """The mistake does not sum the gradient of the mean square over the ranks."""

    def parallelize(model, mesh):
        model.group = model.norm.group = group = mesh.get_group()
        moves.shard(model.up.weight, 0, group)
        moves.shard(model.norm.weight, 0, group)
        moves.shard(model.down.weight, 1, group)

    def step(model, x):
        loss = (model(x) - 1).square().mean()
        loss.backward()
        return loss

    def tokens():
        torch.manual_seed(2)
        return torch.randn(6, WIDTH)

    return Code(lambda: Features(mistake), parallelize, step, tokens)
