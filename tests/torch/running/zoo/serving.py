"""Models that answer instead of training: decoders with caches, samplers, weights of
few bits, structures in and out of forward()."""

import torch
import torch.nn.functional as F
from torch import nn

from . import answer, generator, integers, normal, parameter


class CachedAttention(nn.Module):
    """Keys and values of earlier tokens in buffers."""

    def __init__(self, d=16, h=4, most=12, kv=2):
        super().__init__()
        self.h, self.kv = (h, kv)
        self.q = nn.Linear(d, d, bias=False)
        self.k = nn.Linear(d, d // h * kv, bias=False)
        self.v = nn.Linear(d, d // h * kv, bias=False)
        self.o = nn.Linear(d, d, bias=False)
        self.register_buffer("keys", torch.zeros(2, kv, most, d // h))
        self.register_buffer("values", torch.zeros(2, kv, most, d // h))

    def forward(self, x, position):
        b, t, d = x.shape
        q = self.q(x).view(b, t, self.h, -1).transpose(1, 2)
        k = self.k(x).view(b, t, self.kv, -1).transpose(1, 2)
        v = self.v(x).view(b, t, self.kv, -1).transpose(1, 2)
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        mask = torch.arange(self.keys.shape[2])[None, :] <= position[:, None]
        out = F.scaled_dot_product_attention(
            q,
            self.keys.repeat_interleave(2, 1),
            self.values.repeat_interleave(2, 1),
            attn_mask=mask,
        )
        return self.o(out.transpose(1, 2).reshape(b, t, d))


@answer
def decode_with_buffers():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(32, 16)
            self.a = CachedAttention()
            self.b = CachedAttention()
            self.n = nn.RMSNorm(16)
            self.l = nn.Linear(16, 32)

        def forward(self, ids, position):
            x = self.e(ids)
            x = x + self.a(self.n(x), position)
            x = x + self.b(self.n(x), position)
            return {"logits": self.l(x), "next": self.l(x)[:, -1].argmax(-1)}

    return M, (integers(32, 2, 3), torch.tensor([0, 1, 2])), {}


@answer
def decode_with_cache_given():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.q = nn.Linear(16, 48)

        def forward(self, x, cache):
            q, k, v = self.q(x).view(2, 1, 3, 4, 4).permute(2, 0, 3, 1, 4)
            keys = torch.cat([cache["k"], k], 2)
            values = torch.cat([cache["v"], v], 2)
            out = F.scaled_dot_product_attention(q, keys, values)
            return (out.transpose(1, 2).flatten(2), {"k": keys, "v": values})

    return (
        M,
        (normal(2, 1, 16), {"k": normal(2, 4, 5, 4), "v": normal(2, 4, 5, 4)}),
        {},
    )


@answer
def cache_written_in_place():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.q = nn.Linear(16, 16)

        def forward(self, x, cache, position):
            k = self.q(x)
            cache[:, position] = k
            return ((cache @ k.transpose(1, 2)).softmax(1), None, 3)

    return M, (normal(2, 2, 16), normal(2, 6, 16), torch.tensor([1, 4])), {}


@answer
def nucleus_sampling():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(8, 24)

        def forward(self, x, temperature=0.7, p=0.9, k=10):
            logits = self.l(x) / temperature
            top = torch.topk(logits, k)[0][..., -1, None]
            logits = logits.masked_fill(logits < top, -float("inf"))
            ordered, index = torch.sort(logits, descending=True)
            total = ordered.softmax(-1).cumsum(-1)
            gone = total > p
            gone[..., 1:] = gone[..., :-1].clone()
            gone[..., 0] = False
            gone = gone.scatter(1, index, gone)
            return logits.masked_fill(gone, -float("inf")).softmax(-1)

    return M, (normal(6, 8),), {"temperature": 0.5}


@answer
def beam_search_step():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(8, 12)

        def forward(self, hidden, scores, ids):
            logp = self.l(hidden).log_softmax(-1) + scores[..., None]
            b, k, v = logp.shape
            best, flat = logp.view(b, k * v).topk(k)
            beam = torch.div(flat, v, rounding_mode="floor")
            token = flat % v
            ids = torch.cat(
                [
                    ids.gather(1, beam[..., None].expand(-1, -1, ids.shape[-1])),
                    token[..., None],
                ],
                -1,
            )
            return (best, ids, hidden.gather(1, beam[..., None].expand_as(hidden)))

    return M, (normal(3, 4, 8), normal(3, 4), integers(12, 3, 4, 5)), {}


@answer
def weight_only_int8():
    class L(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.register_buffer(
                "w",
                torch.randint(
                    -127, 127, (o, i), dtype=torch.int8, generator=generator()
                ),
            )
            self.register_buffer("scale", torch.rand(o, generator=generator()) * 0.01)

        def forward(self, x):
            return F.linear(x, self.w.to(x.dtype)) * self.scale

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = L(16, 32)
            self.b = L(32, 8)

        def forward(self, x):
            return self.b(F.silu(self.a(x)))

    return M, (normal(4, 16),), {}


@answer
def weight_only_int4():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer(
                "w",
                torch.randint(
                    0, 255, (12, 8), dtype=torch.uint8, generator=generator()
                ),
            )
            self.register_buffer("scale", torch.rand(12, 4, generator=generator()))
            self.register_buffer(
                "zero", torch.randint(0, 15, (12, 4), generator=generator()).float()
            )

        def forward(self, x):
            low = self.w & 15
            high = self.w >> 4
            w = torch.stack([low, high], -1).flatten(1).view(12, 4, 4).to(x.dtype)
            w = ((w - self.zero[..., None]) * self.scale[..., None]).view(12, 16)
            return x @ w.t()

    return M, (normal(4, 16),), {}


@answer
def dynamic_int8():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = parameter(12, 16)

        def forward(self, x):
            s = x.abs().amax(-1, keepdim=True).clamp(min=1e-05) / 127
            q = (x / s).round().clamp(-128, 127).to(torch.int8)
            ws = self.w.abs().amax(1) / 127
            wq = (self.w / ws[:, None]).round().to(torch.int8)
            return torch._int_mm(q.view(-1, 16), wq.t()).float() * s.view(-1, 1) * ws

    return M, (normal(2, 12, 16),), {}


@answer
def encoder_fast_path():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = nn.TransformerEncoder(
                nn.TransformerEncoderLayer(
                    16, 4, 32, batch_first=True, norm_first=False
                ),
                2,
            )

        def forward(self, x, pad):
            return self.t(x, src_key_padding_mask=pad)

    return M, (normal(4, 6, 16), torch.zeros(4, 6, dtype=torch.bool)), {}


@answer
def encoder_without_mask():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = nn.TransformerEncoder(
                nn.TransformerEncoderLayer(
                    16, 4, 32, batch_first=True, activation="gelu"
                ),
                2,
            )

        def forward(self, x):
            return self.t(x)

    return M, (normal(4, 6, 16),), {}


@answer
def attention_with_weights():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.MultiheadAttention(16, 4, batch_first=True)
            self.b = nn.MultiheadAttention(16, 2, add_bias_kv=True, add_zero_attn=True)

        def forward(self, x):
            y, w = self.a(x, x, x)
            z, u = self.b(y, x, x, average_attn_weights=False)
            return (y, w, z, u)

    return M, (normal(4, 6, 16),), {}


@answer
def bags_with_offsets():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.b = nn.EmbeddingBag(20, 6, mode="mean")
            self.c = nn.EmbeddingBag(20, 6, mode="max")
            self.d = nn.EmbeddingBag(20, 6, mode="sum", include_last_offset=True)

        def forward(self, i, o, w):
            return (
                self.b(i, o),
                self.c(i, o),
                self.d(i, torch.cat([o, torch.tensor([12])]), w),
            )

    return M, (integers(20, 12), torch.tensor([0, 3, 3, 7]), normal(12)), {}


@answer
def lstm_and_gru():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.LSTM(6, 8, num_layers=2, batch_first=True, bidirectional=True)
            self.g = nn.GRU(16, 5, batch_first=True)
            self.r = nn.RNN(5, 4, batch_first=True)

        def forward(self, x):
            y, (h, c) = self.l(x)
            z, hg = self.g(y)
            w, hr = self.r(z)
            return {"y": w, "state": [(h, c), hg, hr]}

    return M, (normal(4, 5, 6),), {}


@answer
def selective_scan():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = parameter(8, 4)
            self.x = nn.Linear(8, 9)
            self.c = nn.Conv1d(8, 8, 4, groups=8, padding=3)
            self.dt = nn.Linear(1, 8)

        def forward(self, x, state):
            b, t, d = x.shape
            u = F.silu(self.c(x.transpose(1, 2))[..., :t]).transpose(1, 2)
            dt, B, C = self.x(u).split([1, 4, 4], -1)
            dt = F.softplus(self.dt(dt))
            da = torch.exp(dt[..., None] * -torch.exp(self.a))
            db = dt[..., None] * B[:, :, None]
            out = []
            for i in range(t):
                state = da[:, i] * state + db[:, i] * u[:, i, :, None]
                out.append((state * C[:, i, None]).sum(-1))
            return (torch.stack(out, 1), state)

    return M, (normal(4, 5, 8), normal(4, 8, 4)), {}


@answer
def experts_by_capacity():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.r = nn.Linear(8, 4)
            self.a = parameter(4, 8, 16)
            self.b = parameter(4, 16, 8)

        def forward(self, x):
            p = self.r(x).softmax(-1)
            w, e = p.topk(2)
            w = w / w.sum(-1, keepdim=True)
            mask = F.one_hot(e, 4)
            pos = (mask.flatten(0, 1).cumsum(0) - 1).view_as(mask)
            keep = (pos < 5) & (mask > 0)
            slot = F.one_hot((pos * mask).sum(-1).clamp(max=4), 5)
            d = (mask * keep)[..., None] * slot[:, :, None]
            dispatch = d.sum(1).float()
            combine = (d * w[..., None, None]).sum(1)
            y = torch.einsum("tec,td->ecd", dispatch, x)
            y = torch.bmm(F.gelu(torch.bmm(y, self.a)), self.b)
            return (
                torch.einsum("tec,ecd->td", combine, y),
                p.mean(0) * dispatch.sum(2).mean(0),
            )

    return M, (normal(12, 8),), {}


@answer
def complex_rotary():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.q = nn.Linear(8, 16)

        def forward(self, x):
            t = torch.arange(x.shape[1]).float()
            f = 1 / 100 ** (torch.arange(0, 4, 2).float() / 4)
            turn = torch.polar(torch.ones(x.shape[1], 2), torch.outer(t, f))
            q = torch.view_as_complex(self.q(x).view(*x.shape[:2], 4, 2, 2))
            return (
                torch.view_as_real(q * turn[None, :, None]).flatten(3),
                (q.conj() * q).real,
                torch.complex(q.real, q.imag).angle(),
            )

    return M, (normal(2, 6, 8),), {}


@answer
def halves():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(16, 32).bfloat16()
            self.b = nn.Linear(32, 16).half()

        def forward(self, x):
            y = F.gelu(self.a(x.bfloat16()))
            z = self.b(y.half())
            return (
                z,
                z.float().softmax(-1),
                z.double().sum(),
                (z > 0).sum(),
                z.to(torch.float8_e4m3fn).float(),
            )

    return M, (normal(4, 16),), {}


@answer
def statistics_kept():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros((), dtype=torch.long))
            self.register_buffer("mean", torch.zeros(6))

        def forward(self, x):
            self.count += x.shape[0]
            self.mean.lerp_(x.mean(0), 0.3)
            return x - self.mean

    return M, (normal(4, 6),), {}


@answer
def inputs_passed_on():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = parameter(6, 6)

        def forward(self, x, y, *, z=None):
            return {
                "x": x,
                "same": (y["a"], [y["b"], None, 2.5, "text"]),
                "w": self.w,
                "view": x.t(),
                "sum": x @ self.w + z,
                "constant": torch.ones(3),
            }

    return M, (normal(4, 6), {"a": normal(3), "b": normal(2, 2)}), {"z": normal(6)}


@answer
def numbers_in_and_out():
    class M(nn.Module):
        def forward(self, x, n: int, flag: bool, items):
            y = x[:n] * (2 if flag else 3)
            for item in items:
                y = y + item
            return [y, y.shape[0], flag]

    return M, (normal(4, 6), 2, True, [normal(6), normal(1), 0.5]), {}
