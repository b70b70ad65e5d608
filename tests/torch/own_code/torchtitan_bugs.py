"""These programs have the bugs that torchtitan mended in 2026, at a small size and
written from their descriptions."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

from . import moves
from .cases import Code, case
from .layouts_of_tokens import Attention, Block

WIDTH, EXPERTS = 8, 3


class GroupedExperts(nn.Module):
    """GroupedExperts has two weights and biases for each expert."""

    def __init__(self):
        super().__init__()
        self.mlp1_weight = nn.Parameter(torch.randn(EXPERTS, WIDTH, 12) / 3)
        self.mlp1_bias = nn.Parameter(torch.randn(EXPERTS, 12))
        self.mlp2_weight = nn.Parameter(torch.randn(EXPERTS, 12, WIDTH) / 3)
        self.mlp2_bias = nn.Parameter(torch.randn(EXPERTS, WIDTH))
        self.degree = 1

    def forward(self, x):
        hidden = torch.einsum("ed,edf->ef", x, self.mlp1_weight) + self.mlp1_bias
        # Each rank adds its part of the bias before the sum over the ranks.
        bias = self.mlp2_bias
        bias = bias + (bias / self.degree - bias).detach()
        return torch.einsum("ef,efd->ed", F.silu(hidden), self.mlp2_weight) + bias


class Moe(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = GroupedExperts()
        self.group = None

    def forward(self, x):
        if self.group is None:
            return self.experts(x)
        return moves.reduce(self.experts(moves.copy(x, self.group)), self.group)


def _tokens():
    torch.manual_seed(1)
    return torch.randn(EXPERTS, WIDTH)


@case("tp=2", ("output", "experts"), "which it contains 2 times")
def titan_4245_bias_times_degree(mistake):
    """The degree is read from DTensor parameters, and the parameters are plain."""

    def parallelize(model, mesh):
        model.group = group = mesh.get_group("tp")
        experts = model.experts
        moves.shard(experts.mlp1_weight, 2, group)
        moves.shard(experts.mlp1_bias, 1, group)
        moves.shard(experts.mlp2_weight, 1, group)
        if isinstance(experts.mlp1_weight, DTensor) or not mistake:
            experts.degree = mesh.size()

    def step(model, x):
        loss = model(x).square().mean()
        loss.backward()
        return loss

    return Code(Moe, parallelize, step, _tokens)


class Router(nn.Module):
    """A Router balances its experts by a bias, which an optimizer hook updates."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, 12, bias=False)
        self.register_buffer("expert_bias", torch.zeros(12))
        self.register_buffer("tokens_per_expert", torch.zeros(12), persistent=False)

    def forward(self, x):
        scores = self.gate(x).sigmoid()
        chosen = (scores + self.expert_bias).topk(2, -1).indices
        counts = torch.bincount(chosen.flatten(), minlength=12)
        self.tokens_per_expert += counts
        return scores.gather(-1, chosen)


@case("tp=2", ("updated buffer", "expert_bias"), "No layout makes it right")
def titan_4154_routing_bias_not_reduced(mistake):
    """Each rank counts the tokens of its part of the sequence."""

    def step(model, x):
        size, rank = dist.get_world_size(), dist.get_rank()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def update(optimizer, args, kwargs):
            counts = model.tokens_per_expert.clone()
            if not mistake:
                dist.all_reduce(counts)
            model.expert_bias += 0.1 * (counts.mean() - counts).sign()
            model.tokens_per_expert.zero_()

        optimizer.register_step_pre_hook(update)
        loss = model(x.chunk(size)[rank]).square().sum()
        loss.backward()
        dist.all_reduce(model.gate.weight.grad)
        optimizer.step()

    def given():
        torch.manual_seed(3)
        return torch.randn(30, WIDTH)

    return Code(Router, lambda model, mesh: None, step, given)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.experts = nn.Parameter(torch.randn(WIDTH, 12) / 3)
        self.placements = None

    def forward(self, x):
        y = self.norm(x)
        weight = self.experts
        if self.placements is not None:
            y = y.to_local(grad_placements=self.placements)
            weight = weight.to_local()
        return F.gelu(y @ weight)


@case("tp=2", ("output gradient", "norm"), "The DTensor states R")
def titan_4054_gradient_loses_reduction(mistake):
    """The gradient of a local tensor is a term, which to_local() is not told."""

    def parallelize(model, mesh):
        model.mesh = mesh
        model.experts = nn.Parameter(
            distribute_tensor(model.experts.detach(), mesh, [Shard(1)])
        )
        for name, parameter in list(model.norm.named_parameters()):
            shared = distribute_tensor(parameter.detach(), mesh, [Replicate()])
            model.norm.register_parameter(name, nn.Parameter(shared))
        model.placements = [Replicate() if mistake else Partial()]

    def step(model, x):
        if hasattr(model, "mesh"):
            x = DTensor.from_local(x, model.mesh, [Replicate()])
        loss = model(x).square().sum()
        loss.backward()
        return loss

    def given():
        torch.manual_seed(4)
        return torch.randn(5, WIDTH)

    return Code(Normed, parallelize, step, given)


class TransposedAttention(Attention):
    """Keys and values are gathered after the heads have become dim 1."""


@case("cp=2", ("input", "attention.out"), "No layout makes it right")
def titan_3206_gather_of_heads(mistake):
    from .layouts_of_tokens import _context

    code = _context("dim" if mistake else "")

    def build():
        block = Block("dim" if mistake else "")
        block.attention.__class__ = TransposedAttention
        return block

    return Code(build, code.parallelize, code.step, code.batch)
