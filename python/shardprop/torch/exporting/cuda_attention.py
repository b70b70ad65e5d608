"""choose_kernels() chooses the attention kernels of CUDA without a CUDA machine.

`scaled_dot_product_attention` is composite: PyTorch chooses the kernel in the graph by
the device of its arguments. A build of PyTorch without CUDA refuses fake CUDA tensors
in autograd. The choice is therefore made here by the same rule
(at::native::_fused_sdp_choice_cuda, PyTorch 2.13). The two fused operators are called
directly; their shape functions run anywhere.

The rule leaves out nested tensors, cuDNN attention (chosen on Hopper only if the user
ranks it first) and head dimensions that CUDA would pad. No exported graph here needs
them.
"""

import torch

_aten = torch.ops.aten
_FLASH_DTYPES = (torch.float16, torch.bfloat16)
_FLASH_MAX_HEAD_DIM = 256


def _expand_heads(tensor, heads):
    """Repeats key or value heads, since only the flash kernel groups them itself."""
    return tensor.repeat_interleave(heads // tensor.size(-3), -3)


def _bias(attn_mask, query, key):
    """Returns a mask as the additive bias of the memory-efficient kernel."""
    if attn_mask is None:
        return None
    if attn_mask.dtype == torch.bool:
        bias = torch.zeros_like(attn_mask, dtype=query.dtype)
        attn_mask = bias.masked_fill(attn_mask.logical_not(), float("-inf"))
    return attn_mask.expand(
        query.size(0), query.size(1), query.size(2), key.size(2)
    )


def scaled_dot_product_attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    *,
    scale=None,
    enable_gqa=False,
):
    """Runs SDPA by the flash or the memory-efficient kernel."""
    head_dim = query.size(-1)
    flash = (
        attn_mask is None
        and query.dtype in _FLASH_DTYPES
        and head_dim <= _FLASH_MAX_HEAD_DIM
        and head_dim % 8 == 0
        and head_dim == value.size(-1)
    )
    if flash:
        return _aten._scaled_dot_product_flash_attention(
            query, key, value, dropout_p, is_causal, False, scale=scale
        )[0]
    if enable_gqa:
        key = _expand_heads(key, query.size(-3))
        value = _expand_heads(value, query.size(-3))
    needs_backward = any(t.requires_grad for t in (query, key, value))
    return _aten._scaled_dot_product_efficient_attention(
        query,
        key,
        value,
        _bias(attn_mask, query, key),
        needs_backward,
        dropout_p,
        is_causal,
        scale=scale,
    )[0]


def choose_kernels(program):
    """Makes the program's SDPA calls choose CUDA's kernels, in place.

    The choice is made, and the kernels enter the graph, when it is next traced.
    """
    for module in program.graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in module.graph.nodes:
            if node.target is _aten.scaled_dot_product_attention.default:
                node.target = scaled_dot_product_attention
        module.recompile()
