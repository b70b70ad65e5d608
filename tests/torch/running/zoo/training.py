"""Training features besides layers: checkpoints, custom gradients, averages in
buffers, quantized weights, losses against a frozen model."""

import torch
import torch.nn.functional as F
import torch.utils.checkpoint as cp
from torch import nn

from . import integers, model, normal, parameter


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ModuleList(
            [
                nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
                for _ in range(2)
            ]
        )

    def forward(self, x):
        for m in self.a:
            x = x + cp.checkpoint(m, x, use_reentrant=False)
        return x.square().mean()


@model
def checkpointed():
    return Checkpointed, (normal(8, 8),)


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


class DomainAdversary(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(8, 16)
        self.c = nn.Linear(16, 4)
        self.d = nn.Linear(16, 1)

    def forward(self, x, y, t):
        h = self.f(x).relu()
        return F.cross_entropy(self.c(h), y) + F.binary_cross_entropy_with_logits(
            self.d(_Reverse.apply(h)).squeeze(1), t
        )


@model
def domain_adversary():
    return DomainAdversary, (normal(8, 8), integers(4, 8), (normal(8) > 0).float())


class EmaBuffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 6)
        self.register_buffer("m", torch.zeros(6))
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x):
        h = self.a(x)
        with torch.no_grad():
            self.m.mul_(0.9).add_(h.mean(0), alpha=0.1)
            self.n.add_(1)
        return (h - self.m).square().mean()


@model
def ema_buffers():
    return EmaBuffers, (normal(8, 8),)


class Quantized(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = parameter(8, 8)
        self.s = nn.Parameter(torch.tensor(0.1))

    def forward(self, x):
        q = (self.w / self.s).round().clamp(-8, 7) * self.s
        w = self.w + (q - self.w).detach()
        return F.linear(x, w).square().mean() + (q.detach() * self.s).sum() * 0.01


@model
def quantized():
    return Quantized, (normal(8, 8),)


class MaskedLanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 8)
        self.q = nn.Linear(8, 24)
        self.register_buffer(
            "mask",
            torch.tril(torch.ones(16, 16, dtype=torch.bool))[None, None],
            persistent=False,
        )

    def forward(self, ids, am):
        h = self.e(ids)
        q, k, v = self.q(h).chunk(3, -1)
        T = ids.shape[1]
        sp = lambda z: z.view(-1, T, 2, 4).transpose(1, 2)
        m = self.mask[:, :, :T, :T] & am[:, None, None].bool()
        a = F.scaled_dot_product_attention(sp(q), sp(k), sp(v), attn_mask=m)
        lp = (a.transpose(1, 2).flatten(2) @ self.e.weight.T).log_softmax(-1)
        tok = lp[:, :-1].gather(-1, ids[:, 1:, None]).squeeze(-1)
        return -(tok * am[:, 1:]).sum() / am[:, 1:].sum()


@model
def masked_language_model():
    am = torch.ones(4, 6)
    am[:, :2] = 0
    am[0] = 1
    am[:, 0] = 1
    return MaskedLanguageModel, (integers(20, 4, 6), am)


class Preferences(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 8)
        self.h = nn.Linear(8, 20)
        self.r = nn.Linear(8, 20)
        for p in self.r.parameters():
            p.requires_grad_(False)

    def forward(self, w, l):

        def lp(h, ids):
            return (
                h(self.e(ids[:, :-1]))
                .log_softmax(-1)
                .gather(-1, ids[:, 1:, None])
                .squeeze(-1)
                .sum(-1)
            )

        with torch.no_grad():
            rw, rl = (lp(self.r, w), lp(self.r, l))
        return -F.logsigmoid(0.1 * (lp(self.h, w) - rw - (lp(self.h, l) - rl))).mean()


@model
def preferences():
    return Preferences, (integers(20, 4, 6), integers(20, 4, 6).flip(0))


class CacheInPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 8)
        self.k = nn.Linear(8, 8)

    def forward(self, x):
        cache = x.new_zeros(x.shape[0], 8, 8)
        for t in range(x.shape[1]):
            cache[:, t] = self.k(x[:, t])
        cache = cache.index_copy(1, torch.tensor([6, 7]), x[:, :2])
        return (self.q(x) @ cache.mT).softmax(-1).square().sum()


@model
def cache_in_place():
    return CacheInPlace, (normal(4, 5, 8),)


class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = parameter(3, 8, 8)
        self.b = parameter(3, 8)

    def forward(self, x):
        f = lambda w, b: (x @ w + b).tanh()
        return torch.vmap(f)(self.w, self.b).mean(0).square().sum()


@model
def ensemble():
    return Ensemble, (normal(8, 8),)


class Tucker(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = parameter(3, 2, 4)
        self.u = parameter(6, 3)
        self.v = parameter(5, 2)
        self.w = parameter(7, 4)

    def forward(self, t):
        return (
            (
                torch.einsum("abc,ia,jb,kc->ijk", self.c, self.u, self.v, self.w) - t
            ).norm()
            + torch.tensordot(self.u, self.u, dims=([0], [0])).trace()
            + torch.kron(self.v, self.u).sum() * 0.1
        )


@model
def tucker():
    return Tucker, (normal(6, 5, 7),)


class Wavelets(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = parameter(1, 1, 4)

    def forward(self, x):
        lo = F.conv1d(F.pad(x[:, None], (1, 2), mode="circular"), self.f, stride=2)
        hi = F.conv1d(
            F.pad(x[:, None], (1, 2), mode="replicate"),
            self.f.flip(-1) * torch.tensor([1.0, -1.0, 1.0, -1.0]),
            stride=2,
        )
        return (
            lo.square().mean()
            + hi.abs().logsumexp(-1).mean()
            + torch.nn.functional.softshrink(hi, 0.1).sum()
        )


@model
def wavelets():
    return Wavelets, (normal(4, 16),)
