"""These programs send tokens to the ranks that have their experts."""

import torch
import torch.distributed as dist
from torch import nn

from .cases import Code, case

WIDTH, EXPERTS = 8, 4


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tokens, received, sent, group):
        ctx.counts, ctx.group = (received, sent), group
        result = tokens.new_empty(sum(received), tokens.shape[1])
        dist.all_to_all_single(result, tokens.contiguous(), received, sent, group=group)
        return result

    @staticmethod
    def backward(ctx, gradient):
        received, sent = ctx.counts
        result = gradient.new_empty(sum(sent), gradient.shape[1])
        dist.all_to_all_single(
            result, gradient.contiguous(), sent, received, group=ctx.group
        )
        return result, None, None, None


class Moe(nn.Module):
    """A Moe sends each token to one expert. A rank has all weights of its experts."""

    def __init__(self, mistake=""):
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS))
        self.group, self.mistake = None, mistake

    def run(self, tokens, ids, first):
        result = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            if expert is not None:
                rows = (ids == index - first).nonzero()[:, 0]
                result = result.index_add(0, rows, expert(tokens[rows]))
        return result

    def forward(self, x):
        weights, ids = self.gate(x).softmax(-1).max(-1)
        if self.group is None:
            return self.run(x, ids, 0) * weights[:, None]
        size, rank = self.group.size(), self.group.rank()
        own = EXPERTS // size
        order = ids.argsort(stable=True)
        counts = torch.bincount(ids, minlength=EXPERTS)
        all_counts = [torch.empty_like(counts) for _ in range(size)]
        dist.all_gather(all_counts, counts, group=self.group)
        mine = [c[rank * own:(rank + 1) * own] for c in all_counts]
        sent = counts.view(size, own).sum(1).tolist()
        received = [int(c.sum()) for c in mine]
        local_ids = torch.cat([
            torch.repeat_interleave(torch.arange(own), c) for c in mine
        ])
        tokens = _Exchange.apply(x[order], received, sent, self.group)
        results = self.run(tokens, local_ids, rank * own)
        results = _Exchange.apply(results, sent, received, self.group)
        if self.mistake == "weights":
            results = results * weights[:, None]
        else:
            results = results * weights[order][:, None]
        return torch.zeros_like(x).index_add(0, order, results)


class Net(nn.Module):
    def __init__(self, mistake):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.moe = Moe(mistake)
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.head(x + self.moe(self.norm(x)))


@case("ep=2", ("output", "moe"), "No layout makes it right")
def weights_of_experts_in_other_order(mistake):
    def parallelize(model, mesh):
        moe = model.moe
        moe.group = mesh.get_group("ep")
        own = EXPERTS // mesh.size()
        for index in range(EXPERTS):
            if index // own != mesh.get_rank():
                moe.experts[index] = None

    def step(model, x):
        size, rank = dist.get_world_size(), dist.get_rank()
        loss = model(x.chunk(size)[rank]).square().sum() / 96
        loss.backward()
        for name, parameter in model.named_parameters():
            if size > 1 and "experts" not in name:
                dist.all_reduce(parameter.grad)
        return loss

    def given():
        torch.manual_seed(4)
        return torch.randn(12, WIDTH)

    return Code(lambda: Net("weights" if mistake else ""), parallelize, step, given)
