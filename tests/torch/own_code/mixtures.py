"""These programs send each token to two experts, which the ranks share."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import torch.nn.functional as F
from torch import nn

from . import moves
from .cases import Code, case

WIDTH, EXPERTS, CHOICES = 8, 4, 2


class Mixture(nn.Module):
    """A Mixture returns the tokens and a loss that balances the experts."""

    def __init__(self, mistake):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.randn(EXPERTS, WIDTH, 6) * 0.3)
        self.down = nn.Parameter(torch.randn(EXPERTS, 6, WIDTH) * 0.3)
        self.group, self.mistake = None, mistake

    def experts(self, tokens, ids):
        result = torch.zeros_like(tokens)
        for index, (up, down) in enumerate(zip(self.up, self.down)):
            rows = (ids == index).nonzero()[:, 0]
            result = result.index_add(0, rows, F.silu(tokens[rows] @ up) @ down)
        return result

    def exchange(self, tokens, ids):
        """Sends tokens to the ranks of their experts, and the results back."""
        size, rank = self.group.size(), self.group.rank()
        own, order = EXPERTS // size, ids.argsort(stable=True)
        sent = torch.bincount(ids, minlength=EXPERTS).view(size, own).sum(1)
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent, group=self.group)
        sent, received = sent.tolist(), received.tolist()
        own_ids = ids.new_empty(sum(received))
        dist.all_to_all_single(own_ids, ids[order], received, sent, group=self.group)
        move = collectives.all_to_all_single_autograd
        got = move(tokens[order].contiguous(), received, sent, self.group)
        done = self.experts(got, own_ids - rank * own).contiguous()
        back = move(done, sent, received, self.group)
        if self.mistake == "order":
            return back
        return torch.zeros_like(tokens).index_copy(0, order, back)

    def forward(self, x):
        chances = self.router(x).softmax(-1)
        weights, ids = chances.topk(CHOICES, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        share = F.one_hot(ids, EXPERTS).sum((0, 1)).float() / ids.numel()
        mean = chances.mean(0)
        if self.group is not None and self.mistake != "balance":
            dist.all_reduce(share, dist.ReduceOp.AVG, group=self.group)
            mean = moves.reduce(moves.copy(mean, self.group), self.group)
            mean = mean / self.group.size()
        balance = (share * mean).sum() * EXPERTS
        tokens, ids = x.repeat_interleave(CHOICES, 0), ids.flatten()
        run = self.experts if self.group is None else self.exchange
        parts = run(tokens, ids).view(-1, CHOICES, WIDTH) * weights[..., None]
        return parts.sum(1), balance


class Net(nn.Module):
    def __init__(self, mistake):
        super().__init__()
        self.start = nn.Linear(WIDTH, WIDTH)
        self.mixture = Mixture(mistake)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        x = self.start(x)
        y, balance = self.mixture(x)
        return self.norm(x + y), balance


def program(mistake):
    def parallelize(model, mesh):
        model.mixture.group = group = mesh.get_group()
        moves.shard(model.mixture.up, 0, group)
        moves.shard(model.mixture.down, 0, group)

    def step(model, x):
        size, rank = dist.get_world_size(), dist.get_rank()
        y, balance = model(x.chunk(size)[rank])
        loss = (y.square() * torch.arange(WIDTH)).mean() + 0.1 * balance
        loss.backward()
        for name, parameter in model.named_parameters():
            if name not in ("mixture.up", "mixture.down"):
                dist.all_reduce(parameter.grad, dist.ReduceOp.AVG)
            elif mistake != "scale":
                # Experts have the tokens of all ranks, but losses of single ranks.
                parameter.grad /= size
        return loss

    def given():
        torch.manual_seed(1)
        return torch.randn(12, WIDTH)

    return Code(lambda: Net(mistake), parallelize, step, given)


@case("ep=2", ("output", "mixture"), "No layout makes it right")
def tokens_of_experts_not_sorted_back(mistake):
    return program("order" if mistake else "")


@case("ep=2", ("output", "mixture"), "No layout makes it right")
def balance_of_local_tokens(mistake):
    return program("balance" if mistake else "")


@case("ep=2", ("gradient", "mixture.down"), "The factor is 2: the size of ep")
def gradients_of_experts_not_scaled(mistake):
    return program("scale" if mistake else "")
