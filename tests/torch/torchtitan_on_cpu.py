"""torchtitan_on_cpu imports torchtitan 0.3.0 such that its models run on the CPU.

torchtitan is written for GPUs. This module replaces three parts of it before a model is
built: the device, flex attention, whose kernel has no backward pass on the CPU, and the
scaled reductions of FSDP. `missing` says why torchtitan cannot be used, or is empty.
"""

import importlib.metadata
import types

import torch
import torch.nn.functional as F
from torch.distributed.fsdp import FSDPModule
from torch.nn.attention.flex_attention import create_mask

RELEASE = "0.3.0"


def _reason() -> str:
    if not torch.__version__.startswith("2.14."):
        return f"torchtitan {RELEASE} needs torch 2.14, found {torch.__version__}"
    try:
        found = importlib.metadata.version("torchtitan")
    except importlib.metadata.PackageNotFoundError:
        return f"torchtitan {RELEASE} is not installed"
    if found != RELEASE:
        return f"torchtitan is {found}, the test is for {RELEASE}"
    try:
        _replace()
    except Exception as failure:
        return f"torchtitan cannot be imported: {type(failure).__name__}: {failure}"
    return ""


def _dense_attention(
    q, k, v, *, score_mod, block_mask, scale, enable_gqa, return_aux, kernel_options
):
    """Returns what flex attention returns, computed with a dense mask."""
    assert score_mod is None and not return_aux.lse
    mask = create_mask(
        block_mask.mask_mod, q.shape[0], 1, q.shape[-2], k.shape[-2], device=q.device
    )
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, scale=scale, enable_gqa=enable_gqa
    ), None


def _replace() -> None:
    from torchtitan.tools import utils

    utils.device_type = "cpu"
    utils.device_module = types.SimpleNamespace(
        set_device=lambda device: None, synchronize=lambda: None
    )
    from torchtitan.models.common.attention import FlexAttention

    FlexAttention.compiled_flex_attn = staticmethod(_dense_attention)
    divide = FSDPModule.set_gradient_divide_factor

    def divide_on_cpu(self, factor):
        divide(self, factor)
        # The CPU has no reduction that scales.
        self.set_force_sum_reduction_for_comms(True)

    FSDPModule.set_gradient_divide_factor = divide_on_cpu


missing = _reason()
