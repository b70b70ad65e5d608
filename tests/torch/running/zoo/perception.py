"""Models that read or generate images and sound: detectors, pipelines,
samplers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from . import answer, generator, integers, normal, parameter


def box_area(b):
    return (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])


@answer
def detector_boxes():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.Conv2d(3, 18, 3, padding=1)

        def forward(self, x):
            y = self.c(x)
            b, _, h, w = y.shape
            y = y.view(b, 3, 6, h, w).permute(0, 1, 3, 4, 2).contiguous()
            gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            grid = torch.stack([gx, gy], -1).float()
            centre = (y[..., :2].sigmoid() + grid) * 8
            size = y[..., 2:4].exp() * 4
            boxes = torch.cat([centre - size / 2, centre + size / 2], -1).view(b, -1, 4)
            score = y[..., 4:].sigmoid().amax(-1).view(b, -1)
            s, i = score.topk(10)
            boxes = boxes.gather(1, i[..., None].expand(-1, -1, 4))
            lo = torch.maximum(boxes[:, :, None, :2], boxes[:, None, :, :2])
            hi = torch.minimum(boxes[:, :, None, 2:], boxes[:, None, :, 2:])
            inter = (hi - lo).clamp(min=0).prod(-1)
            area = box_area(boxes)
            iou = inter / (area[:, :, None] + area[:, None] - inter)
            keep = (torch.triu(iou, 1) < 0.5).all(1)
            return {"boxes": boxes, "scores": s * keep, "keep": keep}

    return M, (normal(2, 3, 6, 6),), {}


@answer
def greedy_nms():
    class M(nn.Module):
        def forward(self, boxes, scores):
            n = boxes.shape[0]
            order = scores.argsort(descending=True)
            boxes = boxes[order]
            lo = torch.max(boxes[:, None, :2], boxes[None, :, :2])
            hi = torch.min(boxes[:, None, 2:], boxes[None, :, 2:])
            inter = (hi - lo).clamp(min=0).prod(2)
            iou = inter / (box_area(boxes)[:, None] + box_area(boxes)[None] - inter)
            keep = torch.ones(n, dtype=torch.bool)
            for i in range(n):
                keep = keep & ~((iou[i] > 0.4) & keep[i] & (torch.arange(n) > i))
            return keep[order.argsort()]

    a = torch.rand(8, 2, generator=generator())
    return (
        M,
        (
            torch.cat([a, a + torch.rand(8, 2, generator=generator())], 1),
            torch.rand(8, generator=generator()),
        ),
        {},
    )


@answer
def regions_by_grid_sample():
    class M(nn.Module):
        def forward(self, x, boxes):
            n = boxes.shape[0]
            t = torch.linspace(-1, 1, 4)
            gx = boxes[:, 0, None] + t * boxes[:, 2, None]
            gy = boxes[:, 1, None] + t * boxes[:, 3, None]
            grid = torch.stack(
                [gx[:, None, :].expand(n, 4, 4), gy[:, :, None].expand(n, 4, 4)], -1
            )
            return F.grid_sample(x, grid, align_corners=False, padding_mode="border")

    return M, (normal(4, 6, 8, 8), normal(4, 4)), {}


@answer
def image_pipeline():
    class M(nn.Module):
        def forward(self, x):
            x = x.float() / 255
            x = F.interpolate(
                x, size=(12, 10), mode="bilinear", align_corners=False, antialias=True
            )
            x = x[..., 2:-2, 1:-1].flip(-1)
            mean = torch.tensor([0.4, 0.5, 0.6])[:, None, None]
            x = (x - mean) / mean
            x = F.pad(x, (2, 2, 1, 1), mode="reflect")
            patches = F.unfold(x, 4, stride=2)
            back = F.fold(patches, x.shape[-2:], 4, stride=2)
            blur = F.conv2d(x, torch.ones(3, 1, 3, 3) / 9, groups=3, padding=1)
            return (
                patches,
                back,
                torch.rot90(blur, 1, (2, 3)),
                F.interpolate(x, scale_factor=2, mode="nearest"),
                F.interpolate(x, scale_factor=1.5, mode="bicubic"),
            )

    return (
        M,
        (
            torch.randint(
                0, 255, (2, 3, 16, 16), dtype=torch.uint8, generator=generator()
            ),
        ),
        {},
    )


@answer
def spectrogram():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("window", torch.hann_window(16))
            self.register_buffer("mel", torch.rand(9, 6, generator=generator()))

        def forward(self, wave):
            s = torch.stft(wave, 16, 8, window=self.window, return_complex=True)
            power = s.abs().pow(2).transpose(1, 2)
            db = (power @ self.mel).clamp(min=1e-10).log10()
            db = torch.maximum(db, db.amax((1, 2), keepdim=True) - 8)
            wave2 = torch.istft(s, 16, 8, window=self.window, length=wave.shape[1])
            return (db, wave2)

    return M, (normal(3, 64),), {}


@answer
def diffusion_sampler():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Conv2d(4, 8, 3, padding=1)
            self.g = nn.GroupNorm(4, 8)
            self.t = nn.Linear(8, 8)
            self.d = nn.Conv2d(8, 8, 3, stride=2, padding=1)
            self.u = nn.ConvTranspose2d(8, 8, 4, 2, 1)
            self.b = nn.Conv2d(16, 4, 1)
            self.c = nn.Linear(5, 8)

        def net(self, x, t, c):
            f = torch.exp(-math.log(10000.0) * torch.arange(4) / 4)
            e = t[:, None].float() * f
            e = torch.cat([e.sin(), e.cos()], -1)
            h = F.silu(self.g(self.a(x))) + (self.t(e) + self.c(c))[:, :, None, None]
            return self.b(torch.cat([h, self.u(F.silu(self.d(h)))], 1))

        def forward(self, x, c, scale: float = 3.0):
            for step in (20, 10):
                t = torch.full((x.shape[0] * 2,), step)
                e = self.net(torch.cat([x, x]), t, torch.cat([c, torch.zeros_like(c)]))
                cond, free = e.chunk(2)
                e = free + scale * (cond - free)
                a = math.cos(step / 50)
                x = (x - math.sqrt(1 - a) * e) / math.sqrt(a)
            return x.clamp(-3, 3)

    return M, (normal(3, 4, 8, 8), normal(3, 5)), {"scale": 2.0}


@answer
def shifted_windows():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.q = nn.Linear(8, 24)
            self.bias = parameter(9, 2)
            self.register_buffer("index", integers(9, 4, 4))

        def forward(self, x):
            b, h, w, c = x.shape
            y = (
                torch.roll(x, (-1, -1), (1, 2))
                .view(b, h // 2, 2, w // 2, 2, c)
                .permute(0, 1, 3, 2, 4, 5)
                .reshape(-1, 4, c)
            )
            q, k, v = self.q(y).reshape(-1, 4, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
            a = q @ k.transpose(-2, -1) + self.bias[self.index.view(-1)].view(
                4, 4, 2
            ).permute(2, 0, 1)
            o = (
                (a.softmax(-1) @ v)
                .transpose(1, 2)
                .reshape(b, h // 2, w // 2, 2, 2, c)
                .permute(0, 1, 3, 2, 4, 5)
                .reshape(b, h, w, c)
            )
            o = torch.roll(o, (1, 1), (1, 2)).permute(0, 3, 1, 2)
            return (
                F.pixel_unshuffle(o, 2),
                F.pixel_shuffle(o, 2),
                F.channel_shuffle(o, 2),
                F.adaptive_avg_pool2d(o, (3, 2)),
                F.max_pool2d(o, 2, return_indices=True),
                F.lp_pool2d(o, 2, 2),
                F.adaptive_max_pool2d(o, 2),
            )

    return M, (normal(2, 4, 4, 8),), {}


@answer
def norms_in_eval():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.BatchNorm2d(6)
            self.b = nn.InstanceNorm2d(6, affine=True)
            self.c = nn.LocalResponseNorm(3)
            self.d = nn.LayerNorm((4, 4))
            self.e = nn.utils.parametrizations.weight_norm(nn.Conv2d(6, 6, 1))
            self.p = nn.PReLU(6)

        def forward(self, x):
            return (
                self.p(self.e(self.d(self.c(self.b(self.a(x)))))),
                F.normalize(x, dim=1),
                F.cosine_similarity(x[:1], x),
                F.softmin(x, 1),
                F.glu(x, 1),
            )

    return M, (normal(2, 6, 4, 4),), {}


@answer
def dense_prediction():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.Conv2d(3, 8, 3, padding=2, dilation=2)
            self.d = nn.Conv2d(8, 8, 3, groups=4, padding=1, padding_mode="circular")
            self.e = nn.Conv3d(2, 4, 3, padding=1)
            self.f = nn.ConvTranspose1d(8, 4, 3, stride=2)

        def forward(self, x):
            y = self.d(F.relu6(self.c(x)))
            z = self.e(y.view(2, 2, 4, 8, 8))
            return (
                y.argmax(1),
                z,
                self.f(y.flatten(2)),
                F.avg_pool2d(y, 3, 2, 1, count_include_pad=False),
                F.max_pool3d(z, 2),
                F.upsample(z, scale_factor=2, mode="trilinear"),
            )

    return M, (normal(2, 3, 8, 8),), {}


@answer
def vector_quantizer():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.book = nn.Embedding(12, 6)

        def forward(self, x):
            flat = x.permute(0, 2, 3, 1).reshape(-1, 6)
            d = torch.cdist(flat, self.book.weight)
            i = d.argmin(1)
            one = F.one_hot(i, 12).float()
            q = one @ self.book.weight
            use = one.mean(0)
            return (
                q.view(2, 4, 4, 6).permute(0, 3, 1, 2),
                i.view(2, 4, 4),
                torch.exp(-(use * (use + 1e-10).log()).sum()),
                torch.bincount(i, minlength=12),
            )

    return M, (normal(2, 6, 4, 4),), {}
