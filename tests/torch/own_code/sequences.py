"""These programs have states, positions or pairs that reach over the shards."""

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_functional
import torch.nn.functional as F
from torch import nn
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from . import moves
from .cases import Code, case, tokens

WIDTH = 8


class Scan(nn.Module):
    """A Scan is a linear recurrence over a sequence that the ranks share."""

    def __init__(self, mistake):
        super().__init__()
        self.decay = nn.Parameter(torch.rand(WIDTH))
        self.group, self.mistake = None, mistake

    def forward(self, x):
        decay, length = self.decay.sigmoid(), x.shape[1]
        state, states = torch.zeros_like(x[:, 0]), []
        for index in range(length):
            state = decay * state + x[:, index]
            states.append(state)
        y = torch.stack(states, 1)
        if self.group is None:
            return y
        # The state of the ranks before decays over their whole length.
        last = moves.gather(y[:, -1:], 1, self.group, terms=True)
        before = 0 * last.sum(1)
        for other in range(self.group.rank()):
            before = before * (decay if self.mistake else decay**length)
            before = before + last[:, other]
        powers = decay ** torch.arange(1, length + 1)[:, None]
        return y + before[:, None] * powers


@case("cp=3", ("output", "scan"), "only rank 2 is wrong")
def state_of_ranks_before(mistake):
    """The first two ranks are right with the mistake."""

    def build():
        model = nn.Module()
        model.up, model.scan = nn.Linear(WIDTH, WIDTH), Scan(mistake)
        model.down = nn.Linear(WIDTH, WIDTH)
        return model

    def parallelize(model, mesh):
        model.scan.group = mesh.get_group()

    def step(model, x):
        x = x.chunk(dist.get_world_size(), 1)[dist.get_rank()]
        loss = model.down(model.scan(model.up(x))).square().sum() / 200
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        return loss

    return Code(build, parallelize, step, tokens(2, 9, WIDTH))


class Biased(nn.Module):
    """Each head of this attention has its own slope over distances (ALiBi)."""

    def __init__(self, mistake):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.group, self.mistake = None, mistake

    def forward(self, x):
        group, first = self.group, 0
        if group is not None:
            x = moves.copy(x, group)
        q, k, v = (
            part.unflatten(-1, (-1, 2)).transpose(1, 2)
            for part in self.qkv(x).chunk(3, -1)
        )
        if group is not None and not self.mistake:
            first = q.shape[1] * group.rank()
        slopes = 2.0 ** -(torch.arange(q.shape[1]) + first + 1)
        places = torch.arange(x.shape[1])
        apart = (places[:, None] - places).abs() * slopes[:, None, None]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=-apart)
        y = F.linear(y.transpose(1, 2).flatten(2), self.out.weight)
        return (y if group is None else moves.reduce(y, group)) + self.out.bias


@case("tp=2", ("output", "attention"), "No layout makes it right")
def slopes_of_local_heads(mistake):
    def build():
        model = nn.Module()
        model.attention, model.norm = Biased(mistake), nn.LayerNorm(WIDTH)
        return model

    def parallelize(model, mesh):
        attention = model.attention
        attention.group = group = mesh.get_group()
        for parameter in (attention.qkv.weight, attention.qkv.bias):
            thirds = parameter.data.chunk(3)
            own = [third.chunk(group.size())[group.rank()] for third in thirds]
            parameter.data = torch.cat(own)
        moves.shard(attention.out.weight, 1, group)

    def step(model, x):
        loss = (model.norm(model.attention(x)).square() * torch.arange(WIDTH)).mean()
        loss.backward()
        return loss

    return Code(build, parallelize, step, tokens(2, 5, WIDTH))


class Ring(nn.Linear):
    """A Ring multiplies the tokens of all ranks while it sends them around."""

    group, mistake = None, False

    def forward(self, x):
        if self.group is None:
            return super().forward(x)
        size, rank = self.group.size(), self.group.rank()
        results, held = [None] * size, x.contiguous()
        for index in range(size):
            source = (rank - index - self.mistake) % size
            results[source] = super().forward(held)
            received = torch.empty_like(held)
            works = dist.batch_isend_irecv([
                dist.P2POp(dist.isend, held, (rank + 1) % size, self.group),
                dist.P2POp(dist.irecv, received, (rank - 1) % size, self.group),
            ])
            for work in works:
                work.wait()
            held = received
        return torch.cat(results)


@case("tp=4", ("output", "up"), "the rows of dim 0 are in another order")
def parts_of_ring_shifted(mistake):
    """Each rank returns the rows of its neighbor, and no loss shows it."""

    def build():
        model = nn.Module()
        model.up = Ring(WIDTH, WIDTH, bias=False)
        model.down = nn.Linear(WIDTH, WIDTH, bias=False)
        return model

    def parallelize(model, mesh):
        model.up.group, model.up.mistake = mesh.get_group(), mistake
        moves.shard(model.up.weight, 0, model.up.group)
        moves.shard(model.down.weight, 1, model.up.group)

    @torch.no_grad()
    def step(model, x):
        group = model.up.group
        y = model.down(model.up(x.chunk(dist.get_world_size())[dist.get_rank()]).tanh())
        return y if group is None else moves.reduce_scatter(y, 0, group)

    return Code(build, parallelize, step, tokens(8, WIDTH))


@case("dp=2", ("output gradient", "text"), "No layout makes it right")
def gather_without_gradient(mistake):
    """The loss of pairs compares the features of each rank with those of all ranks."""

    def build():
        model = nn.Module()
        model.image, model.text = nn.Linear(WIDTH, 6), nn.Linear(WIDTH, 6)
        return model

    def gathered(features):
        if not mistake:
            return torch.cat(dist_functional.all_gather(features))
        parts = [torch.empty_like(features) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, features.detach())
        parts[dist.get_rank()] = features
        return torch.cat(parts)

    def step(model, pairs):
        size, rank = dist.get_world_size(), dist.get_rank()
        images, texts = (
            F.normalize(layer(part.chunk(size)[rank]), dim=-1)
            for layer, part in zip((model.image, model.text), pairs)
        )
        labels = torch.arange(len(images)) + rank * len(images)
        loss = F.cross_entropy(5 * images @ gathered(texts).T, labels)
        loss = loss + F.cross_entropy(5 * texts @ gathered(images).T, labels)
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, dist.ReduceOp.AVG)
        return loss

    return Code(build, lambda model, mesh: None, step, tokens(2, 6, WIDTH))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(12, WIDTH)
        self.middle = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 12, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids):
        return self.head(self.middle(self.table(ids)).tanh())


@case("tp=2", ("gradient", "table.weight"), "No layout makes it right")
def tie_lost_by_parallelize_module(mistake):
    """parallelize_module() replaces both parameters, so they must be tied again."""

    def parallelize(model, mesh):
        parallelize_module(model, mesh, {
            "table": RowwiseParallel(input_layouts=Replicate()),
            "head": ColwiseParallel(output_layouts=Replicate()),
        })
        if not mistake:
            model.head.weight = model.table.weight

    def step(model, batch):
        ids, labels = batch
        loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
        loss.backward()
        torch.optim.SGD(model.parameters(), 0.1).step()
        return loss

    def given():
        torch.manual_seed(1)
        return torch.randint(0, 12, (2, 5)), torch.randint(0, 12, (2, 5))

    return Code(Tied, parallelize, step, given)
