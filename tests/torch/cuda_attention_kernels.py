"""Implements CUDA's fused attention operators, forward and backward, on the
CPU.

Import this and `_scaled_dot_product_flash_attention`,
`_scaled_dot_product_efficient_attention`, `_scaled_dot_product_cudnn_attention`
and `_scaled_dot_product_fused_attention_overrideable` run on CPU tensors of any
float dtype, so that graphs exported for CUDA can be run where there is none. Query heads
may share key heads, as flash attention allows. The kernels' random streams are
their own: with dropout, the caller says which attention weights are kept, and
within `dropout(kept)` they are.
"""

import contextlib
import math

import torch

_LSE_ALIGNMENT = 32  # the efficient kernel pads its logsumexp to this

_library = torch.library.Library("aten", "IMPL")


def _register(name):
    return lambda function: _library.impl(name, function, "CPU")


_kept_weights = None  # bool [batch, heads, queries, keys]


@contextlib.contextmanager
def dropout(kept):
    """Attention weights are kept where `kept` is true, and scaled."""
    global _kept_weights
    _kept_weights = kept
    try:
        yield
    finally:
        _kept_weights = None


def _dropped(weights, dropout_p):
    if dropout_p == 0.0:
        return weights
    if _kept_weights is None:
        raise NotImplementedError("attention dropout outside of dropout(kept)")
    return weights * _kept_weights / (1 - dropout_p)


def _per_query_head(tensor, query):
    return tensor.repeat_interleave(query.size(1) // tensor.size(1), 1)


def _per_key_head(gradient, key):
    groups = gradient.size(1) // key.size(1)
    return gradient.unflatten(1, (key.size(1), groups)).sum(2)


def _scale(query, scale):
    return 1.0 / math.sqrt(query.size(-1)) if scale is None else scale


def _sequence_major(tensor):
    """Returns a tensor with the strides of the efficient kernel's results: batch,
    sequence, head, dim."""
    return tensor.transpose(1, 2).contiguous().transpose(1, 2)


def _laid_out_like(tensor, like):
    """Returns a tensor with the memory order of `like`, as all other kernels do."""
    if tensor.shape == like.shape:
        return torch.empty_like(like, dtype=tensor.dtype).copy_(tensor)
    order = sorted(range(like.dim()), key=like.stride, reverse=True)
    return torch.empty_permuted(tensor.shape, order, dtype=tensor.dtype).copy_(tensor)


def _scores(query, key, bias, is_causal, scale):
    scores = query @ _per_query_head(key, query).mT * _scale(query, scale)
    if bias is not None:
        scores = scores + bias
    if is_causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    return scores


def _forward(query, key, value, bias, dropout_p, is_causal, scale):
    """Returns the output and the logsumexp of the scores."""
    scores = _scores(query, key, bias, is_causal, scale)
    weights = _dropped(scores.softmax(-1), dropout_p)
    out = weights @ _per_query_head(value, query)
    return out, scores.logsumexp(-1)


def _backward(
    grad, query, key, value, bias, out, lse, dropout_p, is_causal, scale
):
    """Gradients of query, key, value and bias, from the saved logsumexp."""
    scores = _scores(query, key, bias, is_causal, scale)
    weights = (scores - lse.unsqueeze(-1)).exp()
    grad_value = _per_key_head(_dropped(weights, dropout_p).mT @ grad, value)
    grad_weights = grad @ _per_query_head(value, query).mT
    grad_weights = _dropped(grad_weights, dropout_p)
    delta = (grad * out).sum(-1, keepdim=True)
    grad_scores = weights * (grad_weights - delta)
    scaled = grad_scores * _scale(query, scale)
    grad_query = scaled @ _per_query_head(key, query)
    grad_key = _per_key_head(scaled.mT @ query, key)
    return grad_query, grad_key, grad_value, grad_scores


@_register("_scaled_dot_product_flash_attention")
def _flash(
    query, key, value, dropout_p=0.0, is_causal=False, debug=False, *, scale=None
):
    out, lse = _forward(query, key, value, None, dropout_p, is_causal, scale)
    out = _laid_out_like(out, query)
    state = torch.zeros(2, dtype=torch.uint64)
    unused = torch.zeros((), dtype=torch.uint64)
    lengths = query.size(2), key.size(2)
    return out, lse, None, None, *lengths, state, unused, query.new_empty(0)


@_register("_scaled_dot_product_flash_attention_backward")
def _flash_backward(
    grad, query, key, value, out, lse, cum_seq_q, cum_seq_k, max_q, max_k,
    dropout_p, is_causal, philox_seed, philox_offset, *, scale=None,
):  # fmt: skip
    gradients = _backward(
        grad, query, key, value, None, out, lse, dropout_p, is_causal, scale
    )
    return tuple(map(_laid_out_like, gradients, (query, key, value)))


@_register("_scaled_dot_product_efficient_attention")
def _efficient(
    query, key, value, bias, with_lse, dropout_p=0.0, is_causal=False, *, scale=None
):
    out, lse = _forward(query, key, value, bias, dropout_p, is_causal, scale)
    length = query.size(2)
    padded = math.ceil(length / _LSE_ALIGNMENT) * _LSE_ALIGNMENT
    lse = torch.nn.functional.pad(lse, (0, padded - length))
    seed = torch.zeros((), dtype=torch.int64)
    out = _sequence_major(out)
    return out, lse if with_lse else lse[..., :0], seed, seed.clone()


@_register("_scaled_dot_product_efficient_attention_backward")
def _efficient_backward(
    grad, query, key, value, bias, out, lse, philox_seed, philox_offset,
    dropout_p, grad_input_mask, is_causal=False, *, scale=None,
):  # fmt: skip
    lse = lse[..., : query.size(2)]
    gradients = _backward(
        grad, query, key, value, bias, out, lse, dropout_p, is_causal, scale
    )
    gradients = (*map(_sequence_major, gradients[:3]), gradients[3])
    pairs = zip(gradients, grad_input_mask, strict=True)
    return tuple(g if wanted else None for g, wanted in pairs)


def _with_lengths(query, key, out, lse):
    out = _laid_out_like(out, query)
    seed = torch.zeros((), dtype=torch.int64)
    lengths = query.size(2), key.size(2)
    return out, lse, None, None, *lengths, seed, seed.clone(), None


@_register("_scaled_dot_product_cudnn_attention")
def _cudnn(
    query, key, value, bias, with_lse, dropout_p=0.0, is_causal=False, debug=False,
    *, scale=None,
):  # fmt: skip
    out, lse = _forward(query, key, value, bias, dropout_p, is_causal, scale)
    return _with_lengths(query, key, out, lse.unsqueeze(-1) if with_lse else None)


@_register("_scaled_dot_product_cudnn_attention_backward")
def _cudnn_backward(
    grad, query, key, value, out, lse, philox_seed, philox_offset, bias,
    cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, *, scale=None,
):  # fmt: skip
    gradients = _backward(
        grad, query, key, value, bias, out, lse.squeeze(-1), dropout_p, is_causal, scale
    )
    return tuple(map(_laid_out_like, gradients, (query, key, value)))


@_register("_scaled_dot_product_fused_attention_overrideable")
def _overrideable(
    query, key, value, bias=None, dropout_p=0.0, is_causal=False, debug=False,
    *, scale=None,
):  # fmt: skip
    out, lse = _forward(query, key, value, bias, dropout_p, is_causal, scale)
    return _with_lengths(query, key, out, lse)


@_register("_scaled_dot_product_fused_attention_overrideable_backward")
def _overrideable_backward(
    grad, query, key, value, bias, grad_input_mask, out, lse, cum_seq_q, cum_seq_k,
    max_q, max_k, dropout_p, is_causal, philox_seed, philox_offset, *, scale=None,
):  # fmt: skip
    gradients = _backward(
        grad, query, key, value, bias, out, lse, dropout_p, is_causal, scale
    )
    operands = query, key, value, bias
    return tuple(
        _laid_out_like(gradient, operand) if wanted and operand is not None else None
        for gradient, operand, wanted in zip(
            gradients, operands, grad_input_mask, strict=True
        )
    )


def _sequences(query, cum_seq_q, cum_seq_k):
    """Yields the queries and the keys of each sequence, as slices."""
    for i in range(cum_seq_q.numel() - 1):
        yield (
            slice(int(cum_seq_q[i]), int(cum_seq_q[i + 1])),
            slice(int(cum_seq_k[i]), int(cum_seq_k[i + 1])),
        )


def _bias_of_places(query, key, is_causal, slopes=None):
    """Returns the bias of each query and key: -inf after the query if causal, and the
    distance times the slope of the head. The last query is next to the last key."""
    queries, keys = query.size(-2), key.size(-2)
    ahead = torch.arange(keys) - torch.arange(queries)[:, None] - (keys - queries)
    bias = torch.zeros(queries, keys, dtype=query.dtype)
    if slopes is not None:  # [heads], or [batch, heads]
        bias = -(slopes[..., None, None] * ahead.abs()).to(query.dtype)
    return bias.masked_fill(ahead > 0, float("-inf")) if is_causal else bias


def _by_head(tensor):
    """Returns [batch, heads, length, width] of [batch, length, heads, width], or of
    [length, heads, width]."""
    return (tensor.unsqueeze(0) if tensor.dim() == 3 else tensor).transpose(1, 2)


def _plain(window_left, window_right, *others):
    if {window_left, window_right} - {None, -1} or any(o is not None for o in others):
        raise NotImplementedError("windows and pages")


def _one_flash(query, key, value, dropout_p, is_causal, scale, slopes=None):
    query, key, value = map(_by_head, (query, key, value))
    bias = _bias_of_places(query, key, is_causal, slopes)
    out, lse = _forward(query, key, value, bias, dropout_p, False, scale)
    return out.transpose(1, 2), lse


@_register("_flash_attention_forward")
def _flash_forward(
    query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, debug,
    *, scale=None, window_size_left=None, window_size_right=None, seqused_k=None,
    alibi_slopes=None, block_table=None, num_splits=None,
):  # fmt: skip
    _plain(window_size_left, window_size_right, block_table)
    state = torch.zeros(2, dtype=torch.uint64)
    rest = state, torch.zeros((), dtype=torch.uint64), query.new_empty(0)
    if cum_seq_q is None:
        if seqused_k is not None:
            raise NotImplementedError("used lengths of batches")
        out, lse = _one_flash(
            query, key, value, dropout_p, is_causal, scale, alibi_slopes
        )
        return _laid_out_like(out, query), lse.float().contiguous(), *rest
    made = torch.zeros_like(query)
    logs = torch.zeros(query.size(1), query.size(0), dtype=torch.float32)
    for i, (q, k) in enumerate(_sequences(query, cum_seq_q, cum_seq_k)):
        if seqused_k is not None:
            k = slice(k.start, k.start + int(seqused_k[i]))
        by_sequence = alibi_slopes is not None and alibi_slopes.dim() == 2
        slopes = alibi_slopes[i] if by_sequence else alibi_slopes
        if q.stop > q.start:
            out, lse = _one_flash(
                query[q], key[k], value[k], dropout_p, is_causal, scale, slopes
            )
            made[q], logs[:, q] = out[0], lse[0].float()
    return made, logs, *rest


def _one_flash_backward(grad, query, key, value, out, lse, dropout_p, is_causal, scale):
    grad, query, key, value, out = map(_by_head, (grad, query, key, value, out))
    bias = _bias_of_places(query, key, is_causal)
    gradients = _backward(
        grad, query, key, value, bias, out, lse, dropout_p, False, scale
    )
    return [gradient.transpose(1, 2) for gradient in gradients[:3]]


@_register("_flash_attention_backward")
def _flash_all_backward(
    grad, query, key, value, out, lse, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p,
    is_causal, rng_state, unused, *, scale=None, window_size_left=None,
    window_size_right=None,
):  # fmt: skip
    _plain(window_size_left, window_size_right)
    if query.dim() == 4:
        gradients = _one_flash_backward(
            grad, query, key, value, out, lse, dropout_p, is_causal, scale
        )
        return tuple(map(_laid_out_like, gradients, (query, key, value)))
    made = [torch.zeros_like(t) for t in (query, key, value)]
    for q, k in _sequences(query, cum_seq_q, cum_seq_k):
        if q.stop > q.start:
            parts = _one_flash_backward(
                grad[q], query[q], key[k], value[k], out[q], lse[None, :, q],
                dropout_p, is_causal, scale,
            )  # fmt: skip
            made[0][q] = parts[0][0]
            made[1][k] += parts[1][0]
            made[2][k] += parts[2][0]
    return tuple(made)
