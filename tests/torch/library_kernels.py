"""Operators of torchvision and mamba_ssm, from their definitions.

Import this, and operators of examples/operators run on the CPU although their libraries
are not installed. The declarations are those of the files.
"""

import pathlib
import re

import torch

FILES = pathlib.Path(__file__).resolve().parents[2] / "examples/operators"

_libraries = []


def _declaration(name):
    namespace, own = name.split("::")
    text = (FILES / f"{namespace}.ops").read_text()
    found = re.search(rf"^{namespace}::({own}\(.*?\) *\n? *-> \w+)", text, re.M | re.S)
    return " ".join(found[1].split())


def _define(name, fake):
    """Defines an operator with this kernel, unless its library has."""

    def define(kernel):
        namespace, own = name.split("::")
        if hasattr(getattr(torch.ops, namespace), own):
            return kernel
        library = torch.library.Library(namespace, "FRAGMENT")
        library.define(_declaration(name))
        library.impl(own, kernel, "CPU")
        torch.library.register_fake(name, fake, lib=library)
        _libraries.append(library)
        return kernel

    return define


def _overlap(box, others):
    """Returns the intersection of a box with others, over their union."""
    low = torch.maximum(box[:2], others[:, :2])
    high = torch.minimum(box[2:], others[:, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    own, areas = (box[2:] - box[:2]).prod(), (others[:, 2:] - others[:, :2]).prod(-1)
    return shared / (own + areas - shared)


def _fake_nms(dets, scores, iou_threshold):
    return dets.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.long)


@_define("torchvision::nms", _fake_nms)
def _nms(dets, scores, iou_threshold):
    left = scores.argsort(descending=True, stable=True)
    kept = []
    while left.numel():
        kept.append(left[0])
        rest = left[1:]
        left = rest[_overlap(dets[left[0]], dets[rest]) <= iou_threshold]
    return torch.stack(kept) if kept else left


def _fake_roi_align(
    input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned
):
    return input.new_empty(
        rois.shape[0], input.shape[1], pooled_height, pooled_width
    )


@_define("torchvision::roi_align", _fake_roi_align)
def _roi_align(
    input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned
):
    """Points outside of an image are those of its border."""
    height, width = input.shape[2:]
    made = []
    for roi in rois:
        image = input[int(roi[0])]
        x1, y1, x2, y2 = (roi[1:] * spatial_scale - (0.5 if aligned else 0)).tolist()
        samples = max(sampling_ratio, 1)
        ys = y1 + (y2 - y1) * (torch.arange(pooled_height * samples) + 0.5) / (
            pooled_height * samples
        )
        xs = x1 + (x2 - x1) * (torch.arange(pooled_width * samples) + 0.5) / (
            pooled_width * samples
        )
        ys, xs = ys.clamp(0, height - 1), xs.clamp(0, width - 1)
        y0, x0 = ys.long().clamp(max=height - 1), xs.long().clamp(max=width - 1)
        down, right = (y0 + 1).clamp(max=height - 1), (x0 + 1).clamp(max=width - 1)
        dy, dx = (ys - y0)[:, None], xs - x0
        top = image[:, y0][:, :, x0] * (1 - dx) + image[:, y0][:, :, right] * dx
        low = image[:, down][:, :, x0] * (1 - dx) + image[:, down][:, :, right] * dx
        points = top * (1 - dy) + low * dy
        made.append(torch.nn.functional.avg_pool2d(points, samples))
    return torch.stack(made) if made else input.new_empty(
        0, input.shape[1], pooled_height, pooled_width
    )


def _fake_selective_scan(u, delta, A, B, C, D=None, z=None, delta_bias=None,
                         delta_softplus=False):  # fmt: skip
    return torch.empty_like(u)


@_define("mamba_ssm::selective_scan", _fake_selective_scan)
def _selective_scan(
    u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False
):
    """u, delta and z are [batch, channels, length], A is [channels, states], B and C are
    [batch, states, length] or [batch, groups, states, length]."""
    if delta_bias is not None:
        delta = delta + delta_bias[:, None]
    if delta_softplus:
        delta = torch.nn.functional.softplus(delta)
    channels = u.shape[1]
    if B.dim() == 3:
        B, C = B.unsqueeze(1), C.unsqueeze(1)
    B, C = (t.repeat_interleave(channels // t.shape[1], 1) for t in (B, C))
    state = u.new_zeros(u.shape[0], channels, A.shape[1])
    made = []
    for i in range(u.shape[2]):
        step = delta[:, :, i, None]
        state = torch.exp(step * A) * state + step * B[..., i] * u[:, :, i, None]
        made.append((state * C[..., i]).sum(-1))
    y = torch.stack(made, -1)
    if D is not None:
        y = y + u * D[:, None]
    return y if z is None else y * torch.nn.functional.silu(z)
