"""Models of images, video and shapes."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from . import integers, model, normal, parameter


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, padding=1)
        self.b = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.n = nn.GroupNorm(4, 16)
        self.c = nn.Conv2d(16, 16, 3, padding=2, dilation=2)
        self.u = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.o = nn.Conv2d(16, 3, 1)
        self.t = nn.Linear(8, 16)

    def forward(self, x, t, noise):
        freqs = torch.exp(-math.log(10000.0) * torch.arange(4) / 4)
        emb = t[:, None].float() * freqs[None]
        emb = torch.cat([emb.sin(), emb.cos()], -1)
        h1 = F.silu(self.a(x))
        h2 = F.silu(self.n(self.b(h1)))
        h2 = h2 + self.t(emb)[:, :, None, None]
        h2 = self.c(h2)
        up = self.u(h2)
        return F.mse_loss(self.o(torch.cat([up, h1], 1)), noise)


@model
def unet():
    return Unet, (normal(4, 3, 16, 16), integers(1000, 4), normal(4, 3, 16, 16))


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Linear(24, 32)
        self.mu = nn.Linear(32, 8)
        self.lv = nn.Linear(32, 8)
        self.d = nn.Linear(8, 24)

    def forward(self, x, eps):
        h = torch.tanh(self.e(x))
        mu, lv = (self.mu(h), self.lv(h))
        z = mu + eps * torch.exp(0.5 * lv)
        rec = F.binary_cross_entropy_with_logits(
            self.d(z), x.sigmoid(), reduction="sum"
        )
        kl = -0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())
        return (rec + kl) / x.shape[0]


@model
def vae():
    return Vae, (normal(8, 24), normal(8, 8))


class Vqvae(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Linear(16, 8)
        self.cb = nn.Embedding(12, 8)
        self.d = nn.Linear(8, 16)

    def forward(self, x):
        z = self.e(x)
        d = (
            z.pow(2).sum(1, keepdim=True)
            + self.cb.weight.pow(2).sum(1)
            - 2 * z @ self.cb.weight.t()
        )
        i = d.argmin(1)
        q = self.cb(i)
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        q = z + (q - z).detach()
        return loss + F.mse_loss(self.d(q), x)


@model
def vqvae():
    return Vqvae, (normal(16, 16),)


class ShiftedWindows(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 24)
        self.t = parameter(9, 2)
        self.o = nn.Linear(8, 8)
        c = torch.stack(
            torch.meshgrid(torch.arange(2), torch.arange(2), indexing="ij")
        ).flatten(1)
        r = (c[:, :, None] - c[:, None]).permute(1, 2, 0) + 1
        self.register_buffer("idx", r[..., 0] * 3 + r[..., 1])

    def forward(self, x):
        B, H, W, C = x.shape
        x = torch.roll(x, (-1, -1), (1, 2))
        w = (
            x.view(B, H // 2, 2, W // 2, 2, C)
            .permute(0, 1, 3, 2, 4, 5)
            .reshape(-1, 4, C)
        )
        q, k, v = self.q(w).reshape(-1, 4, 3, 2, 4).permute(2, 0, 3, 1, 4)
        a = q @ k.transpose(-2, -1) * 0.5 + self.t[self.idx.view(-1)].view(
            4, 4, 2
        ).permute(2, 0, 1)
        o = self.o((a.softmax(-1) @ v).transpose(1, 2).reshape(-1, 4, C))
        o = (
            o.view(B, H // 2, W // 2, 2, 2, C)
            .permute(0, 1, 3, 2, 4, 5)
            .reshape(B, H, W, C)
        )
        return torch.roll(o, (1, 1), (1, 2)).square().mean()


@model
def shifted_windows():
    return ShiftedWindows, (normal(2, 4, 4, 8),)


class DeformedGrid(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(2, 2, 3, padding=1)
        self.f = nn.Conv2d(2, 4, 3, padding=1)

    def forward(self, x):
        off = self.c(x).permute(0, 2, 3, 1).tanh() * 0.2
        ys, xs = torch.meshgrid(
            torch.linspace(-1, 1, 6), torch.linspace(-1, 1, 6), indexing="ij"
        )
        grid = torch.stack([xs, ys], -1) + off
        return F.grid_sample(self.f(x), grid, align_corners=False).abs().mean()


@model
def deformed_grid():
    return DeformedGrid, (normal(4, 2, 6, 6),)


class SuperResolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 12, 3, padding=1, padding_mode="reflect")
        self.p = nn.PReLU(3)
        self.bn = nn.BatchNorm2d(12)

    def forward(self, x, y):
        h = F.pixel_shuffle(self.bn(self.a(x)), 2)
        up = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return (
            F.l1_loss(self.p(h) + up, y)
            + F.avg_pool2d(h, 2).mean()
            + F.max_pool2d(h, 2).mean()
        )


@model
def super_resolution():
    return SuperResolution, (normal(4, 3, 6, 6), normal(4, 3, 12, 12))


class SqueezeAndExcite(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.p = nn.Conv2d(8, 16, 1)
        self.s1 = nn.Conv2d(16, 4, 1)
        self.s2 = nn.Conv2d(4, 16, 1)
        self.n = nn.BatchNorm2d(16)
        self.f = nn.Linear(16, 5)

    def forward(self, x, y):
        h = F.hardswish(self.n(self.p(self.d(x))))
        w = F.hardsigmoid(self.s2(F.relu6(self.s1(F.adaptive_avg_pool2d(h, 1)))))
        return F.cross_entropy(self.f((h * w).mean((2, 3))), y, label_smoothing=0.1)


@model
def squeeze_and_excite():
    return SqueezeAndExcite, (normal(6, 8, 6, 6), integers(5, 6))


class BoxesByTransport(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.MultiheadAttention(8, 2, batch_first=True)
        self.q = parameter(5, 8)
        self.b = nn.Linear(8, 4)

    def forward(self, x, t):
        q = self.q.expand(x.shape[0], -1, -1)
        h, _ = self.m(q, x, x, need_weights=False)
        b = self.b(h).sigmoid()
        c = torch.cdist(b, t, p=1)
        K = (-c / 0.1).exp()
        u = torch.ones(x.shape[0], 5)
        for _ in range(3):
            v = 1 / torch.einsum("bij,bi->bj", K, u)
            u = 1 / torch.einsum("bij,bj->bi", K, v)
        return (u[:, :, None] * K * v[:, None] * c).sum((1, 2)).mean()


@model
def boxes_by_transport():
    return BoxesByTransport, (normal(4, 6, 8), normal(4, 3, 4).sigmoid())


class BoxOverlaps(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.Linear(8, 4)

    def forward(self, x, t):
        c = self.b(x).sigmoid()
        a = torch.cat([c[:, :2] - c[:, 2:] / 2, c[:, :2] + c[:, 2:] / 2], -1)
        lt = torch.maximum(a[:, None, :2], t[None, :, :2])
        rb = torch.minimum(a[:, None, 2:], t[None, :, 2:])
        wh = (rb - lt).clamp(min=0)
        inter = wh[..., 0] * wh[..., 1]
        area = lambda z: (z[:, 2] - z[:, 0]) * (z[:, 3] - z[:, 1])
        u = area(a)[:, None] + area(t)[None] - inter
        return (1 - inter / (u + 1e-06)).mean() + (
            1 - (inter / (u + 1e-06)).amax(1)
        ).sum()


@model
def box_overlaps():
    t = normal(6, 2).sigmoid() * 0.5
    return BoxOverlaps, (normal(8, 8), torch.cat([t, t + 0.3], -1))


class Video(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv3d(2, 6, 3, padding=1, stride=(1, 2, 2))
        self.n = nn.InstanceNorm3d(6, affine=True)
        self.o = nn.Linear(6, 3)

    def forward(self, x, y):
        h = F.mish(self.n(self.c(x)))
        h = F.max_pool3d(h, 2)
        return F.multi_margin_loss(self.o(h.flatten(2).mean(2)), y)


@model
def video():
    return Video, (normal(4, 2, 4, 8, 8), integers(3, 4))


class HingeCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Linear(4, 12)
        self.d = nn.utils.parametrizations.weight_norm(nn.Linear(12, 8))
        self.o = nn.Linear(8, 1)

    def forward(self, z, x):
        D = lambda v: self.o(F.leaky_relu(self.d(v), 0.2))
        return (
            F.relu(1 - D(x)).mean()
            + F.relu(1 + D(self.g(z).tanh())).mean()
            + F.softplus(-D(x)).mean()
        )


@model
def hinge_critic():
    return HingeCritic, (normal(8, 4), normal(8, 12))


class Segmentation(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 4, 3, padding="same")
        self.o = nn.Conv2d(4, 3, 1)

    def forward(self, x, y):
        l = self.o(F.relu(self.c(x)))
        p = l.softmax(1)
        t = F.one_hot(y, 3).permute(0, 3, 1, 2).float()
        dice = 1 - (2 * (p * t).sum((0, 2, 3)) + 1) / (
            p.sum((0, 2, 3)) + t.sum((0, 2, 3)) + 1
        )
        ce = F.cross_entropy(l, y, reduction="none", ignore_index=2)
        return dice.mean() + ((1 - (-ce).exp()) ** 2 * ce).mean()


@model
def segmentation():
    return Segmentation, (normal(4, 3, 6, 6), integers(3, 4, 6, 6))


class Involution(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = nn.Conv2d(4, 9, 1)

    def forward(self, x):
        B, C, H, W = x.shape
        u = F.unfold(x, 3, padding=1).view(B, C, 9, H, W)
        o = (u * self.k(x).softmax(1)[:, None]).sum(2)
        f = F.fold(u.view(B, C * 9, H * W), (H, W), 3, padding=1)
        return (o * f).mean()


@model
def involution():
    return Involution, (normal(4, 4, 6, 6),)


class HyperNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = nn.Linear(3, 2 * 8 + 8)

    def forward(self, z, xy, y):
        w = self.h(z)
        W, b = (w[:, :16].view(-1, 8, 2), w[:, 16:])
        h = torch.sin(30 * torch.baddbmm(b[:, None], xy, W.mT))
        return F.mse_loss(h.mean(-1), y)


@model
def hyper_network():
    return HyperNetwork, (normal(4, 3), normal(4, 9, 2), normal(4, 9))


class SpectralCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.utils.parametrizations.spectral_norm(nn.Conv2d(3, 8, 3))
        self.o = nn.Linear(8, 1)

    def forward(self, x):
        return F.softplus(-self.o(F.leaky_relu(self.c(x), 0.2).mean((2, 3)))).mean()


@model
def spectral_critic():
    return SpectralCritic, (normal(4, 3, 8, 8),)


class DiffusionBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 8, 3, padding=1)
        self.g = nn.GroupNorm(2, 8)
        self.d = nn.Conv2d(8, 8, 3, padding=1)
        self.g2 = nn.GroupNorm(4, 8)

    def forward(self, x):
        h = F.silu(self.g(self.c(x)))
        h = F.silu(self.g2(self.d(h))) + h
        q = h.flatten(2).transpose(1, 2)
        a = F.scaled_dot_product_attention(q, q, q)
        return (a.transpose(1, 2).reshape_as(h) + h).square().mean()


@model
def diffusion_block():
    return DiffusionBlock, (normal(4, 3, 6, 6),)


class RadianceField(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.Sequential(nn.Linear(15, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, o, d, c):
        t = torch.linspace(0.1, 1, 6)
        p = o[:, None] + t[:, None] * d[:, None]
        f = torch.cat(
            [p] + [fn(2.0**k * p) for k in range(2) for fn in (torch.sin, torch.cos)],
            -1,
        )
        out = self.m(f)
        sig = F.softplus(out[..., 3])
        al = 1 - torch.exp(-sig * 0.18)
        T = torch.cumprod(
            torch.cat([torch.ones_like(al[:, :1]), 1 - al + 1e-10], 1), 1
        )[:, :-1]
        return F.mse_loss(((al * T)[..., None] * out[..., :3].sigmoid()).sum(1), c)


@model
def radiance_field():
    return RadianceField, (normal(8, 3), normal(8, 3), normal(8, 3).sigmoid())


class PointCloud(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv1d(3, 8, 1)
        self.b = nn.BatchNorm1d(8)
        self.o = nn.Linear(8, 4)

    def forward(self, x, y):
        d = torch.cdist(x, x)
        i = d.topk(3, dim=-1, largest=False).indices
        n = torch.gather(
            x[:, None].expand(-1, x.shape[1], -1, -1),
            2,
            i[..., None].expand(-1, -1, -1, 3),
        )
        h = F.relu(self.b(self.a((n - x[:, :, None]).mean(2).transpose(1, 2))))
        return F.cross_entropy(self.o(h.max(-1).values), y)


@model
def point_cloud():
    return PointCloud, (normal(4, 10, 3), integers(4, 4))


class Anchors(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 2 * 7, 3, stride=2, padding=1)
        self.register_buffer("anc", torch.tensor([[0.1, 0.2], [0.3, 0.3]]))

    def forward(self, x, obj, box):
        p = self.c(x)
        B, _, H, W = p.shape
        p = p.view(B, 2, 7, H, W).permute(0, 1, 3, 4, 2)
        gy, gx = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")
        xy = (p[..., :2].sigmoid() + torch.stack([gx, gy], -1)) / W
        wh = p[..., 2:4].exp() * self.anc[None, :, None, None]
        iou = -(torch.cat([xy, wh], -1) - box).abs().sum(-1)
        cls = F.binary_cross_entropy_with_logits(p[..., 4], obj, reduction="none")
        return (
            -(iou * obj).sum() / obj.sum().clamp(min=1)
            + cls.mean()
            + (p[..., 5:].logsumexp(-1) * obj).mean()
        )


@model
def anchors():
    return Anchors, (
        normal(4, 3, 8, 8),
        (normal(4, 2, 4, 4) > 0).float(),
        normal(4, 2, 4, 4, 4).sigmoid(),
    )
