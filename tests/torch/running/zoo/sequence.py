"""Models of text, sound and other sequences, and their layers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from . import integers, model, normal, parameter


class StateSpace(nn.Module):
    def __init__(self):
        super().__init__()
        self.i = nn.Linear(8, 16)
        self.c = nn.Conv1d(16, 16, 4, groups=16, padding=3)
        self.A = parameter(16, 4)
        self.bc = nn.Linear(16, 9)
        self.dt = nn.Linear(1, 16)
        self.o = nn.Linear(16, 8)

    def forward(self, x, y):
        h = self.i(x)
        T = h.shape[1]
        h = F.silu(self.c(h.transpose(1, 2))[..., :T].transpose(1, 2))
        dt, B, C = self.bc(h).split([1, 4, 4], -1)
        dt = F.softplus(self.dt(dt))
        dA = torch.exp(dt[..., None] * -torch.exp(self.A))
        dB = dt[..., None] * B[:, :, None] * h[..., None]
        st = torch.zeros(x.shape[0], 16, 4)
        ys = []
        for t in range(T):
            st = dA[:, t] * st + dB[:, t]
            ys.append((st * C[:, t, None]).sum(-1))
        return F.smooth_l1_loss(self.o(torch.stack(ys, 1)), y)


@model
def state_space():
    return StateSpace, (normal(4, 6, 8), normal(4, 6, 8))


class LinearAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 8)
        self.k = nn.Linear(8, 8)
        self.v = nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = (F.elu(self.q(x)) + 1, F.elu(self.k(x)) + 1, self.v(x))
        kv = torch.cumsum(torch.einsum("btd,bte->btde", k, v), 1)
        z = 1 / (torch.einsum("btd,btd->bt", q, k.cumsum(1)) + 1e-06)
        return torch.einsum("btd,btde,bt->bte", q, kv, z).pow(2).mean()


@model
def linear_attention():
    return LinearAttention, (normal(4, 8, 8),)


class LowRankAdapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(16, 16) * 0.2, requires_grad=False)
        self.a = parameter(4, 16)
        self.b = parameter(16, 4)
        self.n = nn.RMSNorm(16)

    def forward(self, x):
        return (self.n(x) @ self.w.T + x @ self.a.T @ self.b.T * 2).logsumexp(-1).mean()


@model
def low_rank_adapter():
    return LowRankAdapter, (normal(4, 6, 16),)


class DenseExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Linear(8, 4)
        self.w1 = parameter(4, 8, 16)
        self.w2 = parameter(4, 16, 8)

    def forward(self, x):
        p = self.g(x).softmax(-1)
        v, i = p.topk(2, -1)
        v = v / v.sum(-1, keepdim=True)
        w = torch.zeros_like(p).scatter(1, i, v)
        h = torch.einsum("td,edf->etf", x, self.w1).relu()
        o = torch.einsum("etf,efd,te->td", h, self.w2, w)
        load = F.one_hot(i, 4).sum(1).float().mean(0)
        return o.square().mean() + 0.01 * 4 * (load * p.mean(0)).sum()


@model
def dense_experts():
    return DenseExperts, (normal(16, 8),)


class GroupedHeadsWithAlibi(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(16, 16)
        self.kv = nn.Linear(16, 8)
        self.o = nn.Linear(16, 16)

    def forward(self, x):
        B, T, _ = x.shape
        q = self.q(x).view(B, T, 4, 4).transpose(1, 2)
        k, v = self.kv(x).view(B, T, 2, 4).chunk(2, 2)
        k = k.transpose(1, 2).repeat_interleave(4, 1)
        v = v.transpose(1, 2).repeat_interleave(4, 1)
        sl = 2.0 ** (-torch.arange(1, 5))
        pos = torch.arange(T)
        bias = -(pos[:, None] - pos[None]).abs() * sl[:, None, None]
        mask = torch.ones(T, T, dtype=torch.bool).tril()
        o = F.scaled_dot_product_attention(
            q, k, v, attn_mask=bias.masked_fill(~mask, float("-inf"))
        )
        return self.o(o.transpose(1, 2).reshape(B, T, 16)).std()


@model
def grouped_heads_with_alibi():
    return GroupedHeadsWithAlibi, (normal(4, 6, 16),)


class ComplexRotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 8)
        self.k = nn.Linear(8, 8)

    def forward(self, x):
        B, T, _ = x.shape
        f = torch.outer(
            torch.arange(T).float(), 1.0 / 10000 ** (torch.arange(0, 4, 2) / 4)
        )
        cis = torch.polar(torch.ones_like(f), f)
        r = lambda h: torch.view_as_real(
            torch.view_as_complex(h.view(B, T, 2, 2, 2)) * cis[:, None]
        ).flatten(3)
        return (
            F.scaled_dot_product_attention(
                r(self.q(x)).transpose(1, 2),
                r(self.k(x)).transpose(1, 2),
                x.view(B, T, 2, 4).transpose(1, 2),
                is_causal=True,
            )
            .square()
            .sum()
        )


@model
def complex_rotary():
    return ComplexRotary, (normal(4, 6, 8),)


class BucketedBias(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.Embedding(8, 2)
        self.q = nn.Linear(8, 8)
        self.o = nn.Linear(8, 8)

    def forward(self, x):
        T = x.shape[1]
        p = torch.arange(T)
        r = p[None] - p[:, None]
        n = r.abs()
        big = 2 + (torch.log(n.float().clamp(min=1) / 2) / math.log(8) * 2).long()
        bk = (r > 0).long() * 4 + torch.where(n < 2, n, big.clamp(max=3))
        bias = self.b(bk).permute(2, 0, 1)[None]
        q = self.q(x).view(-1, T, 2, 4).transpose(1, 2)
        a = (q @ q.transpose(-1, -2) + bias).softmax(-1)
        return (
            self.o((a @ q).transpose(1, 2).flatten(2))
            .var(dim=(1, 2), unbiased=False)
            .sum()
        )


@model
def bucketed_bias():
    return BucketedBias, (normal(4, 6, 8),)


class EncoderWithPadding(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(30, 16, padding_idx=0)
        self.t = nn.TransformerEncoderLayer(
            16, 4, 32, dropout=0.0, batch_first=True, activation="gelu"
        )
        self.c = nn.Linear(16, 2)

    def forward(self, x, y):
        m = x == 0
        h = self.t(self.e(x), src_key_padding_mask=m)
        k = (~m).unsqueeze(-1).float()
        return F.cross_entropy(self.c((h * k).sum(1) / k.sum(1).clamp(min=1)), y)


@model
def encoder_with_padding():
    x = integers(30, 4, 7)
    x[:, 5:] = 0
    x[:, 0] = 3
    return EncoderWithPadding, (x, integers(2, 4))


class LatentQueries(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = parameter(4, 8)
        self.q = nn.Linear(8, 8)
        self.kv = nn.Linear(6, 16)
        self.o = nn.Linear(8, 1)

    def forward(self, x, y):
        q = self.q(F.layer_norm(self.l, (8,)))
        k, v = self.kv(x).chunk(2, -1)
        a = torch.einsum("ld,bnd->bln", q, k).div(8**0.5).softmax(-1)
        return F.mse_loss(self.o((a @ v).mean(1)).flatten(), y)


@model
def latent_queries():
    return LatentQueries, (normal(4, 10, 6), normal(4))


class RecurrentCells(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.GRUCell(5, 7)
        self.l = nn.LSTMCell(7, 5)

    def forward(self, x):
        h = torch.zeros(x.shape[1], 7)
        a = torch.zeros(x.shape[1], 5)
        c = torch.zeros(x.shape[1], 5)
        for t in range(x.shape[0]):
            h = self.c(x[t], h)
            a, c = self.l(h, (a, c))
        return a.square().sum() + c.abs().sum()


@model
def recurrent_cells():
    return RecurrentCells, (normal(4, 6, 5),)


class RandomField(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Linear(6, 4)
        self.t = parameter(4, 4)

    def forward(self, x, y):
        e = self.e(x)
        a = e[:, 0]
        for k in range(1, x.shape[1]):
            a = torch.logsumexp(a[:, :, None] + self.t + e[:, k, None], 1)
        z = a.logsumexp(-1)
        sc = e.gather(2, y[..., None]).squeeze(-1).sum(1) + self.t[
            y[:, :-1], y[:, 1:]
        ].sum(1)
        return (z - sc).mean()


@model
def random_field():
    return RandomField, (normal(4, 5, 6), integers(4, 4, 5))


class Receptance(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = nn.Linear(8, 8, bias=False)
        self.v = nn.Linear(8, 8, bias=False)
        self.r = nn.Linear(8, 8, bias=False)
        self.o = nn.Linear(8, 8, bias=False)
        self.w = parameter(8)
        self.u = parameter(8)
        self.mix = nn.Parameter(torch.rand(8))

    def forward(self, x):
        xx = F.pad(x, (0, 0, 1, -1))
        x2 = x * self.mix + xx * (1 - self.mix)
        k, v, r = (self.k(x2), self.v(x2), self.r(x2).sigmoid())
        aa = torch.zeros_like(k[:, 0])
        bb = torch.zeros_like(aa)
        pp = torch.full_like(aa, -1e38)
        outs = []
        w = -torch.exp(self.w)
        for t in range(x.shape[1]):
            ww = self.u + k[:, t]
            q = torch.maximum(pp, ww)
            e1 = torch.exp(pp - q)
            e2 = torch.exp(ww - q)
            outs.append((e1 * aa + e2 * v[:, t]) / (e1 * bb + e2))
            ww = pp + w
            q = torch.maximum(ww, k[:, t])
            e1 = torch.exp(ww - q)
            e2 = torch.exp(k[:, t] - q)
            aa = e1 * aa + e2 * v[:, t]
            bb = e1 * bb + e2
            pp = q
        return self.o(r * torch.stack(outs, 1)).square().mean()


@model
def receptance():
    return Receptance, (normal(4, 5, 8),)


class AttentiveDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(15, 8)
        self.enc = nn.LSTM(8, 8, batch_first=True)
        self.dec = nn.GRUCell(16, 8)
        self.o = nn.Linear(8, 15)

    def forward(self, x, y):
        m, (h, c) = self.enc(self.e(x))
        h = h[0]
        loss = 0.0
        for t in range(y.shape[1] - 1):
            a = torch.bmm(m, h[:, :, None]).squeeze(-1).softmax(-1)
            h = self.dec(
                torch.cat([self.e(y[:, t]), torch.bmm(a[:, None], m).squeeze(1)], -1), h
            )
            loss = loss + F.cross_entropy(self.o(h), y[:, t + 1])
        return loss


@model
def attentive_decoder():
    return AttentiveDecoder, (integers(15, 4, 5), integers(15, 4, 4))


class TiedAndChunked(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(24, 8)
        self.h = nn.Linear(8, 24, bias=False)
        self.h.weight = self.e.weight

    def forward(self, x, y):
        h = self.e(x)
        loss = 0.0
        for a, b in zip(h.flatten(0, 1).chunk(4), y.flatten().chunk(4)):
            loss = loss + F.cross_entropy(
                self.h(a).float(), b, reduction="sum", ignore_index=-100
            )
        return loss / (y != -100).sum()


@model
def tied_and_chunked():
    y = integers(24, 4, 6)
    y[:, 4:] = -100
    return TiedAndChunked, (integers(24, 4, 6), y)


class LatentAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(16, 4 * 6)
        self.dkv = nn.Linear(16, 8 + 2)
        self.n = nn.RMSNorm(8)
        self.ukv = nn.Linear(8, 4 * 8)
        self.o = nn.Linear(16, 16)

    def forward(self, x):
        B, T, _ = x.shape
        q = self.q(x).view(B, T, 4, 6).transpose(1, 2)
        c, kr = self.dkv(x).split([8, 2], -1)
        kv = self.ukv(self.n(c)).view(B, T, 4, 8).transpose(1, 2)
        k, v = kv.split([4, 4], -1)
        k = torch.cat([k, kr[:, None].expand(-1, 4, -1, -1)], -1)
        a = F.scaled_dot_product_attention(q, k, F.pad(v, (0, 2)), is_causal=True)[
            ..., :4
        ]
        return self.o(a.transpose(1, 2).reshape(B, T, 16)).square().mean()


@model
def latent_attention():
    return LatentAttention, (normal(4, 6, 16),)


class SortedExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Linear(8, 4, bias=False)
        self.w1 = parameter(4, 8, 16)
        self.w2 = parameter(4, 16, 8)

    def forward(self, x):
        v, i = self.g(x).softmax(-1).topk(2, -1)
        flat = i.flatten()
        order = flat.argsort(stable=True)
        tok = order // 2
        xs = x[tok]
        e = flat[order]
        h = torch.bmm(xs[:, None], self.w1[e]).relu()
        y = torch.bmm(h, self.w2[e]).squeeze(1)
        return (
            torch.zeros_like(x)
            .index_add(0, tok, y * v.flatten()[order][:, None])
            .square()
            .mean()
        )


@model
def sorted_experts():
    return SortedExperts, (normal(12, 8),)


class Spectrogram(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv1d(1, 8, 10, stride=5)
        self.o = nn.Linear(8, 4)
        self.register_buffer("win", torch.hann_window(16))

    def forward(self, x):
        sp = (
            torch.stft(x, 16, 8, window=self.win, return_complex=True)
            .abs()
            .pow(2)
            .clamp(min=1e-05)
            .log()
        )
        h = F.glu(self.o(F.layer_norm(self.c(x[:, None]).transpose(1, 2), (8,))))
        return h.pow(2).mean() + (sp.mean((1, 2)) * h.mean((1, 2))).sum()


@model
def spectrogram():
    return Spectrogram, (normal(4, 64),)


class LstmLanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 8)
        self.l = nn.LSTM(8, 12, 2, batch_first=True)
        self.o = nn.Linear(12, 20)

    def forward(self, x):
        h, _ = self.l(self.e(x[:, :-1]))
        return F.cross_entropy(self.o(h).transpose(1, 2), x[:, 1:])


@model
def lstm_language_model():
    return LstmLanguageModel, (integers(20, 4, 9),)


class GruBothWays(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.GRU(6, 10, bidirectional=True)
        self.o = nn.Linear(20, 1)

    def forward(self, x, y):
        h, _ = self.l(x)
        return F.huber_loss(self.o(h.mean(0)).squeeze(-1), y)


@model
def gru_both_ways():
    return GruBothWays, (normal(7, 4, 6), normal(4))
