"""These programs draw random numbers in their layers, with other operators than
dropout."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from . import moves
from .cases import Code, case

WIDTH, HIDDEN, WORDS = 8, 12, 6


class Block(nn.Module):
    """A Block skips some samples, and adds noise to its input and to its weight."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, HIDDEN)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)
        self.group = None

    def forward(self, x):
        keep = torch.rand(x.shape[0], 1, 1) < 0.6
        y = x + 0.1 * torch.randn_like(x)
        y = y * torch.bernoulli(torch.full_like(y, 0.8))
        if self.group is not None:
            y = moves.copy(y, self.group)
        y = self.down(F.gelu(self.up(y)))
        if self.group is not None:
            y = moves.reduce(y, self.group)
        y = y + torch.empty(WIDTH).normal_(std=0.1)
        return x + y * keep


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(2))
        self.drop = nn.Dropout1d(0.3)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(self.drop(x))


def _code(seed_of):
    def parallelize(model, mesh):
        model.mesh = mesh
        group = mesh.get_group("tp")
        for layer in model.layers:
            layer.group = group
            moves.shard(layer.up.weight, 0, group)
            moves.shard(layer.up.bias, 0, group)
            moves.shard(layer.down.weight, 1, group)
        torch.manual_seed(seed_of(mesh))

    def step(model, given):
        x, labels = given
        if hasattr(model, "mesh"):
            group = model.mesh.get_group("dp")
            x, labels = (t.chunk(group.size())[group.rank()] for t in given)
        loss = F.cross_entropy(model(x).flatten(0, 1), labels.flatten())
        loss.backward()
        if hasattr(model, "mesh"):
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad, group=group)
                parameter.grad /= group.size()
        return loss

    def batch():
        torch.manual_seed(9)
        return torch.randn(4, 5, WIDTH), torch.randint(0, WORDS, (4, 5))

    return Code(Net, parallelize, step, batch)


@case("dp=2,tp=2", ("input", "layers.0.up"), "No layout makes it right")
def samples_skipped_differ_between_replicas(mistake):
    return _code(lambda mesh: 7 + (mesh.get_local_rank("tp") if mistake else 0))


class Noisy(nn.Module):
    """Noisy chooses words by noise, as in straight-through sampling."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        chosen = F.gumbel_softmax(self.head(x), tau=0.7)
        return chosen @ self.table.weight


@case("dp=3", ("output", ""), "No layout makes it right")
def sample_differs_between_replicas(mistake):
    """Each rank runs the whole batch, and the ranks share the rows of the loss."""

    def parallelize(model, mesh):
        torch.manual_seed(11 + (mesh.get_rank() if mistake else 0))

    def step(model, x):
        y = model(x)
        size, rank = dist.get_world_size(), dist.get_rank()
        loss = y.chunk(size)[rank].square().sum()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        return loss

    def given():
        torch.manual_seed(10)
        return torch.randn(6, WIDTH)

    return Code(Noisy, parallelize, step, given)
