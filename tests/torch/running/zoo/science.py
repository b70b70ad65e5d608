"""Graphs, tables, spectra and losses."""

import torch
import torch.nn.functional as F
from torch import nn

from . import integers, model, normal, parameter


class GraphConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 16)
        self.b = nn.Linear(16, 4)

    def forward(self, x, edge, y):
        src, dst = (edge[0], edge[1])
        deg = (
            torch.zeros(x.shape[0])
            .scatter_add(0, dst, torch.ones(dst.shape[0]))
            .clamp(min=1)
        )
        w = (deg[src] * deg[dst]).rsqrt()
        h = self.a(x)
        h = torch.zeros(x.shape[0], 16).index_add(0, dst, h[src] * w[:, None]).relu()
        h = self.b(h)
        h = torch.zeros(x.shape[0], 4).index_add(0, dst, h[src] * w[:, None])
        return F.nll_loss(h.log_softmax(-1), y)


@model
def graph_convolution():
    return GraphConvolution, (normal(12, 8), integers(12, 2, 40), integers(4, 12))


class GraphAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(8, 16, bias=False)
        self.a = parameter(4, 8)
        self.o = nn.Linear(16, 3)

    def forward(self, x, src, dst, y):
        n = x.shape[0]
        h = self.w(x).view(n, 4, 4)
        e = F.leaky_relu((torch.cat([h[src], h[dst]], -1) * self.a).sum(-1), 0.2)
        m = torch.full((n, 4), -1000000000.0).scatter_reduce(
            0, dst[:, None].expand(-1, 4), e, "amax"
        )
        p = (e - m[dst]).exp()
        z = torch.zeros(n, 4).index_add(0, dst, p)
        a = p / (z[dst] + 1e-09)
        out = torch.zeros(n, 4, 4).index_add(0, dst, a[..., None] * h[src])
        return F.cross_entropy(self.o(out.flatten(1)), y)


@model
def graph_attention():
    return GraphAttention, (
        normal(10, 8),
        integers(10, 30),
        integers(10, 30),
        integers(3, 10),
    )


class Contrastive(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(12, 8)
        self.b = nn.Linear(6, 8)
        self.t = nn.Parameter(torch.tensor(2.0))

    def forward(self, x, y):
        a, b = (F.normalize(self.a(x), dim=-1), F.normalize(self.b(y), dim=-1))
        l = self.t.exp() * a @ b.T
        t = torch.arange(x.shape[0])
        return (F.cross_entropy(l, t) + F.cross_entropy(l.T, t)) / 2


@model
def contrastive():
    return Contrastive, (normal(8, 12), normal(8, 6))


class Triplets(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(12, 8)

    def forward(self, a, p, n):
        return (
            F.triplet_margin_loss(self.a(a), self.a(p), self.a(n))
            + F.cosine_embedding_loss(
                self.a(a), self.a(n), torch.full((a.shape[0],), -1.0)
            )
            + F.margin_ranking_loss(
                self.a(a)[:, 0], self.a(p)[:, 0], torch.ones(a.shape[0]), margin=0.5
            )
        )


@model
def triplets():
    return Triplets, (normal(8, 12), normal(8, 12) + 1, -normal(8, 12))


class ClippedPolicy(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.Sequential(nn.Linear(6, 16), nn.Tanh())
        self.pi = nn.Linear(16, 4)
        self.v = nn.Linear(16, 1)

    def forward(self, o, a, adv, old, ret):
        h = self.b(o)
        lp = self.pi(h).log_softmax(-1)
        l = lp.gather(1, a[:, None]).squeeze(1)
        r = (l - old).exp()
        adv = (adv - adv.mean()) / (adv.std() + 1e-08)
        pg = -torch.min(r * adv, r.clamp(0.8, 1.2) * adv).mean()
        ent = -(lp.exp() * lp).sum(-1).mean()
        return pg + 0.5 * (self.v(h).squeeze(-1) - ret).pow(2).mean() - 0.01 * ent


@model
def clipped_policy():
    return ClippedPolicy, (
        normal(16, 6),
        integers(4, 16),
        normal(16),
        normal(16) * 0.1 - 1.4,
        normal(16),
    )


class FourierLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.wr = parameter(4, 4, 5)
        self.wi = parameter(4, 4, 5)
        self.i = nn.Conv1d(2, 4, 1)
        self.o = nn.Conv1d(4, 1, 1)

    def forward(self, x, y):
        h = self.i(x)
        f = torch.fft.rfft(h, dim=-1)[..., :5]
        o = torch.einsum("bix,iox->box", f, torch.complex(self.wr, self.wi))
        h = torch.fft.irfft(o, n=16, dim=-1) + h
        return F.l1_loss(self.o(F.gelu(h)), y)


@model
def fourier_layer():
    return FourierLayer, (normal(4, 2, 16), normal(4, 1, 16))


class FourierOperator(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4, 3, 3, dtype=torch.cfloat) * 0.2)
        self.w2 = nn.Parameter(torch.randn(4, 4, 3, 3, dtype=torch.cfloat) * 0.2)
        self.i = nn.Conv2d(2, 4, 1)
        self.o = nn.Conv2d(4, 1, 1)

    def forward(self, x, y):
        h = self.i(x)
        f = torch.fft.rfft2(h)
        out = torch.zeros(h.shape[0], 4, 8, 5, dtype=torch.cfloat)
        out[:, :, :3, :3] = torch.einsum("bixy,ioxy->boxy", f[:, :, :3, :3], self.w)
        out[:, :, -3:, :3] = torch.einsum("bixy,ioxy->boxy", f[:, :, -3:, :3], self.w2)
        h = F.gelu(torch.fft.irfft2(out, s=(8, 8)) + h)
        return F.mse_loss(self.o(h), y)


@model
def fourier_operator():
    return FourierOperator, (normal(4, 2, 8, 8), normal(4, 1, 8, 8))


class Splines(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = parameter(6, 5, 7)
        self.register_buffer("grid", torch.linspace(-2, 2, 9))

    def forward(self, x, y):
        x = x[..., None]
        b = ((x >= self.grid[:-1]) & (x < self.grid[1:])).float()
        b = (x - self.grid[:-2]) / (self.grid[1:-1] - self.grid[:-2]) * b[..., :-1] + (
            self.grid[2:] - x
        ) / (self.grid[2:] - self.grid[1:-1]) * b[..., 1:]
        return F.mse_loss(torch.einsum("bik,iok->bo", b, self.c), y)


@model
def splines():
    return Splines, (normal(8, 6), normal(8, 5))


class Gaussian(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.Linear(5, 3)
        self.l = parameter(3, 3)

    def forward(self, x, y):
        A = self.l @ self.l.T + torch.eye(3)
        c = torch.linalg.cholesky(A)
        z = torch.linalg.solve_triangular(c, (y - self.m(x)).T, upper=False)
        return 0.5 * z.square().sum(0).mean() + c.diagonal().log().sum()


@model
def gaussian():
    return Gaussian, (normal(8, 5), normal(8, 3))


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.EmbeddingBag(30, 8, mode="sum")
        self.e2 = nn.EmbeddingBag(20, 8, mode="mean")
        self.b = nn.Linear(5, 8)
        self.o = nn.Linear(11, 1)

    def forward(self, d, i, j, y):
        z = torch.stack([self.b(d), self.e(i), self.e2(j)], 1)
        p = torch.bmm(z, z.transpose(1, 2))
        a, b = torch.tril_indices(3, 3, -1)
        h = torch.cat([z[:, 0], p[:, a, b]], 1)
        return F.binary_cross_entropy(self.o(h).sigmoid().squeeze(1), y)


@model
def recommender():
    return Recommender, (
        normal(8, 5),
        integers(30, 8, 3),
        integers(20, 8, 4),
        normal(8).sigmoid(),
    )


class SparsemaxAndQuantiles(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 9)

    def forward(self, x):
        h = self.a(x)
        v, _ = h.sort(-1, descending=True)
        c = v.cumsum(-1)
        k = torch.arange(1, 10)
        sup = 1 + k * v > c
        n = sup.sum(-1, keepdim=True)
        tau = (c.gather(-1, n - 1) - 1) / n
        sparsemax = (h - tau).clamp(min=0)
        return (
            (sparsemax * h).sum(-1).mean()
            + h.median(-1).values.mean()
            + h.kthvalue(3, -1).values.sum()
            + torch.quantile(h, 0.3, dim=-1).mean()
        )


@model
def sparsemax_and_quantiles():
    return SparsemaxAndQuantiles, (normal(8, 6),)


class Distillation(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 6).bfloat16()
        self.n = nn.LayerNorm(6)

    def forward(self, x, t):
        h = self.n(self.a(x.bfloat16()).float())
        return F.kl_div(
            F.log_softmax(h / 2, -1), F.softmax(t / 2, -1), reduction="batchmean"
        ) * 4 + F.kl_div(h.log_softmax(-1), t.log_softmax(-1), log_target=True)


@model
def distillation():
    return Distillation, (normal(8, 8), normal(8, 6))


class ManyLosses(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Bilinear(4, 5, 6)
        self.register_buffer("pw", torch.ones(6) * 2)

    def forward(self, x, y, t):
        l = self.a(x, y)
        return (
            F.binary_cross_entropy_with_logits(l, t, pos_weight=self.pw)
            + F.multilabel_soft_margin_loss(l, t)
            + F.soft_margin_loss(l, t * 2 - 1)
            + F.poisson_nll_loss(l, t)
            + F.hinge_embedding_loss(l, t * 2 - 1)
        )


@model
def many_losses():
    return ManyLosses, (normal(8, 4), normal(8, 5), (normal(8, 6) > 0).float())


class Bootstrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(
            nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 6)
        )
        self.p = nn.Linear(6, 6)
        self.t = nn.Linear(8, 6)
        for q in self.t.parameters():
            q.requires_grad_(False)

    def forward(self, x, y):
        with torch.no_grad():
            z = F.normalize(self.t(y), dim=-1)
        return (2 - 2 * (F.normalize(self.p(self.a(x)), dim=-1) * z).sum(-1)).mean()


@model
def bootstrapped():
    return Bootstrapped, (normal(8, 8), normal(8, 8))
