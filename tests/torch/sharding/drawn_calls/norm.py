"""Normalizations and their backward passes.

Statistics of bf16 are kept in bf16 by CPU kernels and in f32 by others: f32 and
f64 only.
"""

import torch

from .families import family


def _dtype(d):
    return d.rng.choice((torch.float64, torch.float32))


def _mask(d, parts=3):
    """Which gradients are asked for: one at least, mostly all."""
    mask = [d.chance(0.8) for _ in range(parts)]
    return mask if any(mask) else [True] * parts


def _optional(d, shape, dtype):
    return d.tensor(shape, dtype).contiguous() if d.chance(0.7) else None


def _layer_norm(d):
    dtype = _dtype(d)
    batch, hidden = d.shape(d.rng.randint(0, 2)), d.shape(d.rng.randint(1, 2), 2)
    return {
        "input": d.tensor((*batch, *hidden), dtype).contiguous(),
        "normalized_shape": list(hidden),
        "weight": _optional(d, hidden, dtype),
        "bias": _optional(d, hidden, dtype),
        "eps": 1e-5,
    }


@family("layer_norm", "native_layer_norm")
def layer_norm(d):
    return _layer_norm(d)


@family("native_layer_norm_backward")
def layer_norm_backward(d):
    given = _layer_norm(d)
    x = given["input"]
    _, mean, rstd = torch.ops.aten.native_layer_norm(**given)
    del given["eps"]
    return {
        "grad_out": d.tensor(x.shape, x.dtype).contiguous(),
        **given,
        "mean": mean,
        "rstd": rstd,
        "output_mask": _mask(d),
    }


@family("rms_norm", "_fused_rms_norm")
def rms_norm(d):
    given = _layer_norm(d)
    del given["bias"]
    return given | {"eps": 1e-5}


def _batch_norm(d, *, least):
    dtype = _dtype(d)
    channels = d.size(1)
    shape = (d.size(least, 5), channels, *d.shape(d.rng.randint(0, 2), 2))
    running = d.chance(0.8)
    mean = d.tensor((channels,), dtype).contiguous() if running else None
    variance = d.tensor((channels,), dtype).abs() + 0.5 if running else None
    return {
        "input": d.tensor(shape, dtype).contiguous(),
        "weight": _optional(d, (channels,), dtype),
        "bias": _optional(d, (channels,), dtype),
        "running_mean": mean,
        "running_var": variance,
        "momentum": 0.1,
        "eps": 1e-5,
    }


@family(
    "native_batch_norm",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional",
    "batch_norm",
    "cudnn_batch_norm",
)
def batch_norm(d):
    given = _batch_norm(d, least=2)
    without = given["running_mean"] is None or "no_stats" in d.op
    training = without or d.chance(0.7)
    return given | {"training": training, "cudnn_enabled": True}


# Its kernel takes statistics of any size, and writes beyond them.
@family("_batch_norm_with_update", "_batch_norm_with_update_functional")
def batch_norm_with_update(d):
    given = _batch_norm(d, least=2)
    while given["running_mean"] is None:
        given = _batch_norm(d, least=2)
    return given


@family("_native_batch_norm_legit_no_training")
def batch_norm_no_training(d):
    given = _batch_norm(d, least=1)
    while given["running_mean"] is None:
        given = _batch_norm(d, least=1)
    return given


@family("_fused_rms_norm_backward")
def rms_norm_backward(d):
    given = _layer_norm(d)
    del given["bias"]
    x = given["input"]
    _, rstd = torch.ops.aten._fused_rms_norm(**given)
    mask = [True, given["weight"] is not None]
    grad = d.tensor(x.shape, x.dtype).contiguous()
    return given | {"grad_out": grad, "rstd": rstd, "output_mask": mask}


@family("native_batch_norm_backward", "batch_norm_backward")
def batch_norm_backward(d):
    given = _batch_norm(d, least=2) | {"training": True}
    x = given["input"]
    _, mean, rstd = torch.ops.aten.native_batch_norm(**given)
    return {
        "grad_out": d.tensor(x.shape, x.dtype).contiguous(),
        "input": x,
        "weight": given["weight"],
        "running_mean": given["running_mean"],
        "running_var": given["running_var"],
        "save_mean": mean,
        "save_invstd": rstd,
        "save_var": rstd,
        "train": True,
        "update": True,
        "reserve": torch.empty(0, dtype=torch.uint8),
        "eps": 1e-5,
        "output_mask": _mask(d),
    }


def _group_norm(d):
    dtype = _dtype(d)
    groups = d.rng.choice((1, 2, 3, 4))
    n, channels = d.size(1, 5), groups * d.rng.choice((1, 2, 3))
    spatial = d.shape(d.rng.randint(1, 2), 2)
    x = d.tensor((n, channels, *spatial), dtype).contiguous()
    return {
        "input": x,
        "weight": _optional(d, (channels,), dtype),
        "bias": _optional(d, (channels,), dtype),
        "N": n,
        "C": channels,
        "HxW": x[0, 0].numel(),
        "group": groups,
        "num_groups": groups,
        "eps": 1e-5,
        "cudnn_enabled": True,
    }


@family("native_group_norm", "group_norm")
def group_norm(d):
    return _group_norm(d)


@family("native_group_norm_backward")
def group_norm_backward(d):
    given = _group_norm(d)
    forward = ("input", "weight", "bias", "N", "C", "HxW", "group", "eps")
    _, mean, rstd = torch.ops.aten.native_group_norm(*(given[n] for n in forward))
    x = given["input"]
    return given | {
        "grad_out": d.tensor(x.shape, x.dtype).contiguous(),
        "mean": mean,
        "rstd": rstd,
        "output_mask": _mask(d),
    }
