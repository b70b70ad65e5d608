"""These functions are the collectives of hand-written parallel layers."""

import torch
import torch.distributed as dist


class _Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, group):
        ctx.group = group
        return value.view_as(value)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


class _Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, group):
        value = value.clone()
        dist.all_reduce(value, group=group)
        return value

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class _Gather(torch.autograd.Function):
    """Gathers in forward. Backward keeps the own part, summed if ranks have terms."""

    @staticmethod
    def forward(ctx, value, dim, group, terms):
        ctx.dim, ctx.group, ctx.terms = dim, group, terms
        parts = [torch.empty_like(value) for _ in range(group.size())]
        dist.all_gather(parts, value.contiguous(), group=group)
        return torch.cat(parts, dim)

    @staticmethod
    def backward(ctx, gradient):
        if ctx.terms:
            gradient = gradient.clone()
            dist.all_reduce(gradient, group=ctx.group)
        part = gradient.chunk(ctx.group.size(), ctx.dim)[ctx.group.rank()]
        return part.contiguous(), None, None, None


class _ReduceScatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, dim, group):
        ctx.dim, ctx.group = dim, group
        parts = [part.contiguous() for part in value.chunk(group.size(), dim)]
        result = torch.empty_like(parts[0])
        dist.reduce_scatter(result, parts, group=group)
        return result

    @staticmethod
    def backward(ctx, gradient):
        parts = [torch.empty_like(gradient) for _ in range(ctx.group.size())]
        dist.all_gather(parts, gradient.contiguous(), group=ctx.group)
        return torch.cat(parts, ctx.dim), None, None


def copy(value, group):
    """Returns the value; its gradient is summed over the group."""
    return _Copy.apply(value, group)


def reduce(value, group):
    """Returns the sum over the group; the gradient is passed on."""
    return _Reduce.apply(value, group)


def gather(value, dim, group, terms=False):
    return _Gather.apply(value, dim, group, terms)


def reduce_scatter(value, dim, group):
    return _ReduceScatter.apply(value, dim, group)


def shard(parameter, dim, group):
    """Replaces a parameter's data by this rank's shard."""
    part = parameter.data.chunk(group.size(), dim)[group.rank()]
    parameter.data = part.clone()
