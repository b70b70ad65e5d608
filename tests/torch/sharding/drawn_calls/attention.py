"""Samples attention calls: grouped query heads, causal and broadcast masks.

Kernels for CPUs want dense operands, and one float dtype.
"""

import torch

import cuda_attention_kernels  # noqa: F401  (CPU stand-ins for CUDA's kernels)

from .drawer import broadcasts
from .families import family


def _in_some_order(d, tensor):
    """Returns the tensor with heads and lengths swapped in memory, or as it is: each
    operand of a kernel has a memory order of its own."""
    tensor = tensor.contiguous()
    if d.base == "scaled_dot_product_attention" or d.chance(0.7):
        return tensor
    return tensor.transpose(-2, -3).contiguous().transpose(-2, -3)


def _for_cuda(d):
    return d.base.startswith("_scaled") and "_for_cpu" not in d.base


def _heads(d, *, grouped, rank=4):
    dtypes = (torch.float32,) if _for_cuda(d) else (torch.float64, torch.float32)
    dtype = d.rng.choice(dtypes)
    batch, key_heads = d.size(1, 4), d.rng.choice((1, 2, 3, 4))
    query_heads = key_heads * (d.rng.choice((1, 2, 3)) if grouped else 1)
    queries, keys = d.size(2, 7), d.size(2, 7)
    if d.chance(0.5):
        keys = queries = d.size(2, 11)
    # A kernel pads its log-sum-exp to 32; these are that size and its
    # multiples.
    if "efficient" in d.base and d.chance(0.3):
        queries = d.rng.choice((32, 64, 96, 128))
    width = d.rng.choice((4, 8))
    lead = (batch,) if rank == 4 else ()

    def tensor(heads, length):
        return _in_some_order(d, d.tensor((*lead, heads, length, width), dtype))

    given = {
        "query": tensor(query_heads, queries),
        "key": tensor(key_heads, keys),
        "value": tensor(key_heads, keys),
    }
    shape = (*lead, query_heads, queries, keys)
    return given | {"scale": 0.5 if d.chance(0.3) else None}, shape, dtype


def _broadcasting(d):
    """Returns operands of any rank whose leading dims broadcast."""
    dtype = d.rng.choice((torch.float64, torch.float32))
    lead = [d.size(1, 4) for _ in range(d.rng.randint(0, 3))]
    queries, keys, width = d.size(2, 7), d.size(2, 7), d.rng.choice((4, 8))

    def tensor(length):
        mine = broadcasts(d.rng, lead)
        return d.tensor((*mine, length, width), dtype).contiguous()

    given = {"query": tensor(queries), "key": tensor(keys), "value": tensor(keys)}
    scores = torch.broadcast_shapes(
        given["query"].shape[:-2], given["key"].shape[:-2]
    ) + (queries, keys)
    return given | {"scale": 0.5 if d.chance(0.3) else None}, scores, dtype


@family("scaled_dot_product_attention")
def attention(d):
    if d.chance(0.4):
        given, shape, dtype = _broadcasting(d)
        causal = d.chance(0.2)
        if not causal and d.chance(0.5):
            given["attn_mask"] = d.tensor(broadcasts(d.rng, shape), dtype)
        return given | {
            "attn_mask": given.get("attn_mask"),
            "dropout_p": 0.0,
            "is_causal": causal,
            "enable_gqa": False,
        }
    grouped = d.chance(0.3)
    given, shape, dtype = _heads(d, grouped=grouped, rank=4 if d.chance(0.8) else 3)
    causal = d.chance(0.3)
    if not causal and d.chance(0.5):
        kind = dtype if d.chance(0.6) else torch.bool
        mask = d.tensor(broadcasts(d.rng, shape), kind)
        # Rows that see no key are zeros.
        if kind == torch.bool and mask.dim() and d.chance(0.7):
            mask[..., 0] = True
        given["attn_mask"] = mask
    return given | {
        "attn_mask": given.get("attn_mask"),
        "dropout_p": 0.0,
        "is_causal": causal,
        "enable_gqa": grouped,
    }


def _flash(d):
    given, _, _ = _heads(d, grouped=False)
    return given | {"dropout_p": 0.0, "is_causal": d.chance(0.4), "attn_mask": None}


@family(
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention"
)
def flash(d):
    return _flash(d) | {"return_debug_mask": False}


@family(
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
)
def efficient(d):
    given = _flash(d) | {"compute_log_sumexp": d.chance(0.8), "attn_bias": None}
    return given | {"return_debug_mask": False}


def _backward(d, forward, **more):
    given = _flash(d)
    del given["attn_mask"]
    out, logsumexp, *rest = forward(given)
    grad = d.tensor(out.shape, out.dtype).contiguous()
    saved = {"out": out, "logsumexp": logsumexp, "grad_out": grad, "grad_out_": grad}
    return given | saved | more, rest


@family("_scaled_dot_product_flash_attention_for_cpu_backward")
def flash_for_cpu_backward(d):
    forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    given, _ = _backward(d, lambda given: forward(**given), attn_mask=None)
    return given


@family("_scaled_dot_product_efficient_attention_backward")
def efficient_backward(d):
    forward = torch.ops.aten._scaled_dot_product_efficient_attention
    given, rest = _backward(
        d,
        lambda given: forward(**given, attn_bias=None, compute_log_sumexp=True),
        attn_bias=None,
        grad_input_mask=[True, True, True, False],
    )
    return given | {"philox_seed": rest[0], "philox_offset": rest[1]}


_LENGTHS_AND_SEEDS = (
    "cum_seq_q", "cum_seq_k", "max_q", "max_k", "philox_seed", "philox_offset"
)  # fmt: skip


@family("_scaled_dot_product_cudnn_attention_backward")
def cudnn_backward(d):
    forward = torch.ops.aten._scaled_dot_product_cudnn_attention
    given, rest = _backward(
        d,
        lambda given: forward(**given, attn_bias=None, compute_log_sumexp=True),
        attn_bias=None,
    )
    return given | dict(zip(_LENGTHS_AND_SEEDS, rest, strict=False))


@family("_scaled_dot_product_fused_attention_overrideable_backward")
def overrideable_backward(d):
    forward = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
    given, rest = _backward(
        d,
        lambda given: forward(**given),
        attn_bias=None,
        grad_input_mask=[True, True, True, False],
    )
    return given | dict(zip(_LENGTHS_AND_SEEDS, rest, strict=False))


@family("_scaled_dot_product_flash_attention_backward")
def flash_backward(d):
    forward = torch.ops.aten._scaled_dot_product_flash_attention
    given, rest = _backward(d, lambda given: forward(**given))
    return given | dict(zip(_LENGTHS_AND_SEEDS, rest, strict=False))


def _sequences(d):
    """Returns operands of a flash kernel: batches, or sequences one after another."""
    groups, width = d.size(1, 4), 8
    heads = groups * d.rng.choice((1, 2, 3))
    lengths = [d.size(1, 5) for _ in range(d.size(1, 4))]
    given = {"cum_seq_q": None, "cum_seq_k": None, "max_q": 0, "max_k": 0}
    lead = (d.size(1, 4), d.size(1, 6))
    if d.chance(0.6):
        ends = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)
        lead = (int(ends[-1]),)
        given = {"cum_seq_q": ends, "cum_seq_k": ends.clone()}
        given |= {"max_q": max(lengths), "max_k": max(lengths)}

    def tensor(count):
        return _in_some_order(d, d.tensor((*lead, count, width), torch.float32))

    return given | {
        "query": tensor(heads),
        "key": tensor(groups),
        "value": tensor(groups),
        "dropout_p": 0.0,
        "is_causal": d.chance(0.4),
        "scale": 0.5 if d.chance(0.3) else None,
        "window_size_left": None,
        "window_size_right": None,
    }


@family("_flash_attention_forward")
def flash_forward(d):
    absent = ("seqused_k", "alibi_slopes", "block_table", "num_splits")
    given = _sequences(d) | dict.fromkeys(absent)
    heads, ends = given["query"].size(-2), given["cum_seq_k"]
    if ends is not None and d.chance(0.3):
        used = [d.rng.randint(1, int(n)) for n in ends.diff()]
        given["seqused_k"] = torch.tensor(used, dtype=torch.int32)
    if d.chance(0.4):
        batches = given["query"].size(0) if ends is None else ends.numel() - 1
        shape = (heads,) if d.chance(0.5) else (batches, heads)
        given["alibi_slopes"] = d.tensor(shape, torch.float32).abs().contiguous()
    return given | {"return_debug_mask": False}


@family("_flash_attention_backward")
def flash_all_backward(d):
    given = _sequences(d)
    out, logsumexp, state, unused, _ = torch.ops.aten._flash_attention_forward(
        **given, return_debug_mask=False
    )
    saved = {"out": out, "logsumexp": logsumexp, "rng_state": state, "unused": unused}
    if given["cum_seq_q"] is None:
        # The declaration has no None for batches.
        none = torch.empty(0, dtype=torch.int32)
        saved |= {"cum_seq_q": none, "cum_seq_k": none.clone()}
    return given | saved | {"grad_out": d.tensor(out.shape, out.dtype).contiguous()}
