"""Numbers without a network: filters, statistics, linear algebra, special functions."""

import torch
import torch.nn.functional as F
from torch import nn

from . import answer, generator, integers, normal, parameter


@answer
def kalman_filter():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = parameter(3, 3)
            self.h = parameter(2, 3)

        def forward(self, z):
            x = torch.zeros(z.shape[0], 3, 1)
            p = torch.eye(3).expand(z.shape[0], 3, 3)
            for t in range(z.shape[1]):
                x = self.f @ x
                p = self.f @ p @ self.f.t() + 0.1 * torch.eye(3)
                s = self.h @ p @ self.h.t() + torch.eye(2)
                k = torch.linalg.solve(s, self.h @ p).transpose(1, 2)
                x = x + k @ (z[:, t, :, None] - self.h @ x)
                p = (torch.eye(3) - k @ self.h) @ p
            return (
                x.squeeze(-1),
                p,
                torch.linalg.slogdet(s),
                torch.linalg.inv(p + torch.eye(3)),
            )

    return M, (normal(4, 3, 2),), {}


@answer
def fourier_layer():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(
                torch.randn(4, 4, 3, 3, dtype=torch.cfloat, generator=generator())
            )

        def forward(self, x):
            f = torch.fft.rfft2(x)
            out = torch.zeros_like(f)
            out[:, :, :3, :3] = torch.einsum("bixy,ioxy->boxy", f[:, :, :3, :3], self.w)
            return (
                torch.fft.irfft2(out, s=x.shape[-2:]),
                torch.fft.fftshift(f, dim=-1).abs(),
                torch.angle(f),
                torch.fft.fft(x, dim=0),
            )

    return M, (normal(4, 4, 8, 8),), {}


@answer
def graph_attention():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Linear(6, 8)
            self.a = parameter(16)

        def forward(self, x, edges):
            h = self.w(x)
            s, t = edges
            e = F.leaky_relu((torch.cat([h[s], h[t]], -1) * self.a).sum(-1))
            most = torch.full((x.shape[0],), -1000000000.0).scatter_reduce(
                0, t, e, "amax"
            )
            w = (e - most[t]).exp()
            total = torch.zeros(x.shape[0]).index_add(0, t, w)
            out = torch.zeros_like(h).index_add(0, t, h[s] * (w / total[t])[:, None])
            deg = torch.zeros(x.shape[0]).scatter_add(0, t, torch.ones(t.shape[0]))
            mean = torch.zeros(x.shape[0], 8).scatter_reduce(
                0, t[:, None].expand(-1, 8), h[s], "mean", include_self=False
            )
            return (out, deg, mean)

    return M, (normal(8, 6), integers(8, 2, 20)), {}


@answer
def k_means():
    class M(nn.Module):
        def forward(self, x, c):
            for _ in range(2):
                i = (x[:, None] - c[None]).pow(2).sum(-1).argmin(1)
                n = torch.zeros(c.shape[0]).index_add(0, i, torch.ones(x.shape[0]))
                c = torch.zeros_like(c).index_add(0, i, x) / n.clamp(min=1)[:, None]
            return (c, i, n)

    return M, (normal(16, 3), normal(4, 3)), {}


@answer
def statistics():
    class M(nn.Module):
        def forward(self, x):
            q = torch.quantile(x, torch.tensor([0.25, 0.5]), dim=1)
            return (
                q,
                x.median(0),
                x.mode(1),
                x.kthvalue(2, 0),
                torch.histc(x, 5, -2, 2),
                x.std(0),
                torch.var_mean(x, 1),
                x.aminmax(dim=1),
                x.norm(3, 1),
                torch.logsumexp(x, 0),
                x.nanmean(),
                x.cummax(1),
                x.logcumsumexp(0),
                torch.diff(x),
                torch.trapezoid(x, dim=0),
                torch.count_nonzero(x > 0, 1),
            )

    return M, (normal(6, 8),), {}


@answer
def tensor_network():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = parameter(4, 3, 5)
            self.b = parameter(5, 6, 2)
            self.c = parameter(2, 4)

        def forward(self, x):
            y = torch.einsum("bi,ijk,klm,mi->bjl", x, self.a, self.b, self.c)
            return (
                y,
                torch.tensordot(y, self.b, dims=([2], [1])),
                torch.kron(self.c, self.c),
                torch.einsum("bii->bi", torch.bmm(y, y.transpose(1, 2))),
                torch.outer(x[0], x[1]),
                torch.cross(y[:, :, :3], y[:, :, 3:], dim=-1),
                torch.block_diag(self.c, self.c),
            )

    return M, (normal(4, 4),), {}


@answer
def gaussian_process():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.s = nn.Parameter(torch.tensor(0.5))

        def k(self, a, b):
            return torch.exp(-torch.cdist(a, b).pow(2) / self.s.exp())

        def forward(self, x, y, z):
            k = self.k(x, x) + 0.1 * torch.eye(x.shape[0])
            l = torch.linalg.cholesky(k)
            a = torch.cholesky_solve(y[:, None], l)
            mean = self.k(z, x) @ a
            v = torch.linalg.solve_triangular(l, self.k(x, z), upper=False)
            return (
                mean.squeeze(1),
                1 - (v * v).sum(0),
                torch.logdet(k),
                2 * l.diagonal().log().sum(),
            )

    return M, (normal(8, 2), normal(8), normal(6, 2)), {}


@answer
def whitening():
    class M(nn.Module):
        def forward(self, x):
            c = x - x.mean(0)
            e, v = torch.linalg.eigh(c.t() @ c / x.shape[0])
            w = c @ v.abs()
            u, s, vh = torch.linalg.svd(c, full_matrices=False)
            q, r = torch.linalg.qr(c)
            return (
                e,
                w.abs(),
                s,
                u * s @ vh,
                q @ r,
                torch.linalg.pinv(c),
                torch.linalg.matrix_norm(c),
                torch.matrix_exp(c.t() @ c / 50),
                torch.linalg.matrix_rank(c),
            )

    return M, (normal(8, 4),), {}


@answer
def special_functions():
    class M(nn.Module):
        def forward(self, x):
            u = x.sigmoid()
            return (
                torch.erfinv(u),
                torch.lgamma(u),
                torch.digamma(u),
                torch.special.i0e(x),
                torch.polygamma(1, u),
                torch.special.ndtri(u),
                torch.igamma(u, u + 1),
                torch.hypot(x, u),
                torch.nextafter(x, u),
                torch.ldexp(x, torch.tensor(2)),
                torch.frexp(x),
                torch.special.zeta(u + 2, u),
                torch.logit(u),
                torch.xlogy(u, u),
                torch.special.entr(u),
                torch.heaviside(x, u),
                torch.gcd(x.int(), x.int() + 3),
                torch.bitwise_left_shift(x.int(), 2),
                torch.sinc(x),
                torch.nan_to_num(x / 0),
                torch.float_power(u, 2),
                torch.fmod(x, 0.7),
                torch.remainder(x, -0.7),
                torch.copysign(x, -u),
                torch.signbit(x),
            )

    return M, (normal(4, 6),), {}


@answer
def spline():
    class M(nn.Module):
        def forward(self, x, knots, values):
            i = torch.searchsorted(knots, x).clamp(1, knots.shape[0] - 1)
            a, b = (knots[i - 1], knots[i])
            w = ((x - a) / (b - a)).clamp(0, 1)
            return (
                torch.lerp(values[i - 1], values[i], w),
                torch.bucketize(x, knots, right=True),
                torch.isin(i, torch.tensor([1, 3])),
            )

    return M, (normal(4, 6), torch.linspace(-2, 2, 7), normal(7)), {}


@answer
def boolean_masks():
    class M(nn.Module):
        def forward(self, x, m):
            y = x.clone()
            y[m] = 0
            z = torch.where(m, x, -x)
            z[:, 1::2] += 1
            z[0] = 7
            w = x.masked_scatter(m, x.flip(0))
            return (
                y,
                z,
                w,
                x.take_along_dim(x.argsort(1), 1),
                x.index_select(1, torch.tensor([3, 1])),
                x[torch.tensor([1, 0]), torch.tensor([2, 3])],
                x[:, None, [0, 2]],
                x.take(torch.tensor([0, -1])),
                x.tril(-1),
                torch.diag_embed(x),
                x.unfold(1, 3, 2),
                x.repeat(2, 1, 1),
                x.tile(2),
                torch.cartesian_prod(x[0], x[1]),
            )

    return M, (normal(4, 6), integers(2, 4, 6).bool()), {}
