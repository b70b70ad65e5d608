"""Values for the operands of a call, on which its operator is well defined.

Indices are in range and unambiguous, logarithms and roots get positive numbers,
comparisons meet equality, sorted rows have no ties. Saved results of a forward
pass (attention's log-sum-exp, a pool's indices) are computed, not drawn.
"""

import math

import torch

from .capture import TORCH_DTYPES, Operand, torch_op

# Operators about dtypes themselves keep them; all others run in f64, so that
# rounding cannot mask a wrong element.
OWN_DTYPE = ("aten._to_copy.default", "aten._assert_tensor_metadata.default")

_COMPARISONS = ("eq", "ne", "ge", "gt", "le", "lt")
_POSITIVE = {
    ("aten.log.default", "self"),
    ("aten.rsqrt.default", "self"),
    ("aten._native_batch_norm_legit_functional.default", "running_var"),
}
_NOT_ZERO = {("aten.div.Tensor", "other")}
_SHORT_FLOATS = ("f16", "bf16", "f32")


def keeps_dtype(call):
    return call.op in OWN_DTYPE


def run_dtype(call, dtype):
    """The torch dtype in which a tensor of `dtype` runs."""
    widened = dtype in _SHORT_FLOATS and not keeps_dtype(call)
    return torch.float64 if widened else TORCH_DTYPES[dtype]


def _strided(value, strides):
    """Returns the value with these strides; a stride of 0 repeats index 0."""
    shape = value.shape
    stored = [1 if s == 0 else n for n, s in zip(shape, strides, strict=True)]
    for dim, size in enumerate(stored):
        value = value.narrow(dim, 0, min(size, shape[dim]))
    laid_out = torch.empty_strided(stored, strides, dtype=value.dtype)
    return laid_out.copy_(value).expand(shape) if value.numel() else value


class _Drawer:
    def __init__(self, call, generator):
        self.call = call
        self.generator = generator

    def integers(self, shape, low, high):
        return torch.randint(low, high, shape, generator=self.generator)

    def normal(self, shape):
        return torch.randn(shape, generator=self.generator, dtype=torch.float64)

    def index_bound(self, name, place):
        """One past the largest valid index, if the argument holds indices."""
        call, base = self.call, self.call.op.split(".")[1]
        if base == "embedding" and name == "indices":
            return call.inputs[call.arg("weight").index].shape[0]
        if base in ("gather", "scatter") and name == "index":
            return call.inputs[call.arg("self").index].shape[call.arg("dim")]
        if base == "index_put" and name == "indices":
            return call.inputs[call.arg("self").index].shape[place]
        return None

    def floats(self, name, meta):
        call = self.call
        if keeps_dtype(call):
            return self.integers(meta.shape, -8, 9).double() / 4
        if call.op.startswith("aten.topk"):
            count = math.prod(meta.shape)
            order = torch.randperm(count, generator=self.generator)
            return order.double().view(meta.shape) - count / 2
        if call.op.split(".")[1] in _COMPARISONS:
            drawn = self.integers(meta.shape, -4, 5).double() / 4
            other = call.arg("other")
            if isinstance(other, float):
                hit = self.integers(meta.shape, 0, 3) == 0
                drawn[hit] = other
            return drawn
        drawn = self.normal(meta.shape)
        power = call.arg("exponent")
        negative_power = power is not None and (power < 0 or power != int(power))
        if (call.op, name) in _POSITIVE or negative_power:
            return drawn.abs() + 0.5
        if (call.op, name) in _NOT_ZERO:
            return torch.where(drawn < 0, drawn - 0.5, drawn + 0.5)
        return drawn

    def whole_numbers(self, name, meta, place):
        bound = self.index_bound(name, place)
        if bound is not None:
            return self.integers(meta.shape, 0, bound)
        drawn = self.integers(meta.shape, 0 if meta.dtype[0] == "u" else -5, 6)
        other = self.call.arg("other")
        if isinstance(other, int):
            drawn[self.integers(meta.shape, 0, 3) == 0] = other
        return drawn

    def draw(self, name, meta, place=0):
        if meta.dtype == "bool":
            value = self.integers(meta.shape, 0, 2)
        elif meta.dtype in ("f64", *_SHORT_FLOATS):
            value = self.floats(name, meta)
        else:
            value = self.whole_numbers(name, meta, place)
        return _strided(value.to(run_dtype(self.call, meta.dtype)), meta.strides)


def _saved_by_pool(call, tensors):
    """The indices that the forward pass found."""
    names = ("self", "kernel_size", "stride", "padding", "dilation", "ceil_mode")
    args = {name: call.arg(name) for name in names if call.arg(name) is not None}
    args["self"] = tensors[call.arg("self").index]
    _, indices = torch_op("aten.max_pool2d_with_indices.default")(**args)
    return {"indices": indices}


def _saved_by_attention(call, tensors):
    """The output and log-sum-exp, without dropout: any will do that fit."""
    query, key, value = (tensors[call.arg(n).index] for n in ("query", "key", "value"))
    options = {"is_causal": call.arg("is_causal", False), "scale": call.arg("scale")}
    bias = call.arg("attn_bias")
    bias = None if bias is None else tensors[bias.index]
    if "efficient" in call.op:
        out, lse, *_ = torch_op("aten._scaled_dot_product_efficient_attention.default")(
            query, key, value, bias, True, **options
        )
    elif "cudnn" in call.op:
        out, lse, *_ = torch_op("aten._scaled_dot_product_cudnn_attention.default")(
            query, key, value, bias, True, **options
        )
    elif "overrideable" in call.op:
        name = "aten._scaled_dot_product_fused_attention_overrideable.default"
        out, lse, *_ = torch_op(name)(query, key, value, bias, **options)
    else:
        # The kernel for CPUs writes its log-sum-exp as the one for GPUs does.
        out, lse, *_ = torch_op("aten._scaled_dot_product_flash_attention.default")(
            query, key, value, **options
        )
    return {"out": out, "logsumexp": lse}


def _saved(call, tensors):
    if call.op == "aten.max_pool2d_with_indices_backward.default":
        return _saved_by_pool(call, tensors)
    if "_scaled_dot_product" in call.op and "_backward." in call.op:
        return _saved_by_attention(call, tensors)
    return {}


def draw_inputs(call, generator):
    """The operands of the call, unsharded."""
    drawer = _Drawer(call, generator)
    tensors = [None] * len(call.inputs)
    for name, value in call.args:
        operands = value if isinstance(value, tuple) else (value,)
        for place, operand in enumerate(operands):
            if isinstance(operand, Operand):
                meta = call.inputs[operand.index]
                tensors[operand.index] = drawer.draw(name, meta, place)
    for name, value in _saved(call, tensors).items():
        operand = call.arg(name)
        meta = call.inputs[operand.index]
        tensors[operand.index] = _strided(value, meta.strides)
    return tensors
