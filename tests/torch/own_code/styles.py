"""These programs use features of torch.distributed as projects on the web do."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed import _functional_collectives as collectives
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

from .cases import Code, case
from .layouts_of_tokens import rotated

WORDS, WIDTH, TOKENS = 40, 32, 16


def size():
    return dist.get_world_size()


def own(tensor, dim=0):
    return tensor.chunk(size(), dim)[dist.get_rank()]


def keep(model, mesh):
    pass


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, places):
        q, k, v = (
            part.unflatten(-1, (4, -1)).transpose(1, 2)
            for part in self.qkv(x).chunk(3, -1)
        )
        q, k = rotated(q, places), rotated(k, places)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.attention = Attention()
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids, places):
        x = self.table(ids)
        return self.head(x + self.attention(x, places))


@case("cp=2", ("input", "attention.out"), "No layout makes it right")
def positions_outside_context_parallel(mistake):
    def parallelize(model, mesh):
        model.mesh = mesh

    def step(model, given):
        ids, labels = given
        places = torch.arange(TOKENS)

        def run(places):
            loss = F.cross_entropy(model(ids, places).flatten(0, 1), labels.flatten())
            loss.backward()
            return loss

        if size() == 1:
            return run(places)
        buffers, dims = [ids, labels, places], [1, 1, 0]
        if mistake:
            buffers, dims = buffers[:2], dims[:2]
        with context_parallel(model.mesh, buffers=buffers, buffer_seq_dims=dims):
            loss = run(places[:TOKENS // size()])
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)
        return loss

    def batch():
        torch.manual_seed(1)
        return torch.randint(WORDS, (2, TOKENS)), torch.randint(WORDS, (2, TOKENS))

    return Code(Words, parallelize, step, batch)


@case("dp=2", ("gradient", "2.weight"), "A mean over dp is missing")
def bucket_without_one_gradient(mistake):
    """The reductions of all gradients are one coalesced collective."""

    def build():
        return nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))

    def step(model, x):
        model(own(x)).square().mean().backward()
        with dist.distributed_c10d._coalescing_manager(async_ops=True) as work:
            for name, parameter in model.named_parameters():
                if not (mistake and name == "2.weight"):
                    dist.all_reduce(parameter.grad)
        work.wait()
        for name, parameter in model.named_parameters():
            if not (mistake and name == "2.weight"):
                parameter.grad /= size()

    return Code(build, keep, step, lambda: torch.randn(4, 6))


class Head(nn.Module):
    """A vocabulary of 13 words on 4 ranks, padded to 16."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(13, 8) * 0.3)
        self.is_parallel, self.masks = False, True

    def forward(self, x):
        scores = x @ self.weight.T
        if not self.is_parallel:
            return scores.log_softmax(-1)
        words = scores.shape[-1]
        if self.masks:
            ids = dist.get_rank() * words + torch.arange(words)
            scores = scores.masked_fill(ids >= 13, float("-inf"))
        largest = scores.amax(-1, keepdim=True).detach()
        dist.all_reduce(largest, op=dist.ReduceOp.MAX)
        total = (scores - largest).exp().sum(-1, keepdim=True)
        total = collectives.all_reduce(total, "sum", dist.group.WORLD)
        parts = [torch.empty_like(scores) for _ in range(size())]
        dist.all_gather(parts, scores - largest - total.log())
        return torch.cat(parts, -1)[..., :13]


@case("tp=4", ("output", "1"), "No layout makes it right")
def padded_words_count(mistake):
    def build():
        return nn.Sequential(nn.Linear(8, 8), Head())

    def parallelize(model, mesh):
        head = model[1]
        head.is_parallel, head.masks = True, not mistake
        head.weight = nn.Parameter(own(F.pad(head.weight.detach(), (0, 0, 0, 3))).clone())

    def step(model, x):
        with torch.no_grad():
            return model(x)

    return Code(build, parallelize, step, lambda: torch.randn(5, 8))


class Down(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(32, 16) * 0.1)
        self.mesh, self.placement = None, Partial()

    def forward(self, x):
        if self.mesh is None:
            return x @ self.weight
        product = x @ self.weight.to_local()
        made = DTensor.from_local(product, self.mesh, [self.placement])
        return made.full_tensor()


@case("tp=4", ("gradient", "1.weight"), "At the end of the forward pass, `1` output and")
def partial_called_replicated(mistake):
    def build():
        return nn.Sequential(nn.Linear(16, 32), Down())

    def parallelize(model, mesh):
        parallelize_module(model, mesh, {"0": ColwiseParallel()})
        down = model[1]
        down.mesh = mesh
        down.placement = Replicate() if mistake else Partial()
        down.weight = nn.Parameter(
            distribute_tensor(down.weight.detach(), mesh, [Shard(0)])
        )

    def step(model, x):
        loss = model(x).square().mean()
        loss.backward()
        return loss

    return Code(build, parallelize, step, lambda: torch.randn(6, 16))


class Gathering(nn.Module):
    """A linear layer that multiplies the rows of each rank while others arrive."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 12)
        self.is_parallel, self.sign = False, -1

    def forward(self, x):
        if not self.is_parallel:
            return self.inner(x)
        ranks, rank = size(), dist.get_rank()
        parts = [None] * ranks
        for step in range(ranks):
            parts[(rank + self.sign * step) % ranks] = self.inner(x)
            received = torch.empty_like(x)
            moves = [
                dist.P2POp(dist.isend, x.contiguous(), (rank + 1) % ranks),
                dist.P2POp(dist.irecv, received, (rank - 1) % ranks),
            ]
            for work in dist.batch_isend_irecv(moves):
                work.wait()
            x = received
        return torch.cat(parts)


@case("tp=4", ("output", "1"), "the rows of dim 0 are in another order: 0-3, 12-15")
def parts_joined_in_wrong_order(mistake):
    def build():
        return nn.Sequential(nn.LayerNorm(8), Gathering(), nn.GELU())

    def parallelize(model, mesh):
        layer = model[1]
        layer.is_parallel, layer.sign = True, 1 if mistake else -1
        for name in ("weight", "bias"):
            full = getattr(layer.inner, name).detach()
            setattr(layer.inner, name, nn.Parameter(own(full).clone()))

    def step(model, x):
        with torch.no_grad():
            return model(own(x))

    return Code(build, parallelize, step, lambda: torch.randn(16, 8))


class Row(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 12) * 0.3)
        self.bias = nn.Parameter(torch.randn(8))
        self.times = 0

    def forward(self, x):
        y = x @ self.weight.T
        for _ in range(self.times):
            y = collectives.all_reduce(y, "sum", dist.group.WORLD)
        return y + self.bias


@case("tp=2", ("output", "1"), "it is 2 times the value, except for `1.bias`")
def reduced_twice_before_the_bias(mistake):
    def build():
        return nn.Sequential(nn.Linear(8, 12), Row())

    def parallelize(model, mesh):
        first, row = model
        for name in ("weight", "bias"):
            full = getattr(first, name).detach()
            setattr(first, name, nn.Parameter(own(full).clone()))
        row.weight = nn.Parameter(own(row.weight.detach(), 1).clone())
        row.times = 2 if mistake else 1

    def step(model, x):
        with torch.no_grad():
            return model(x)

    return Code(build, parallelize, step, lambda: torch.randn(5, 8))
