"""Operator calls that the example graphs lack: other scalars, shapes and forms of
the operators that they hold, in-place and out overloads included.

    Call aten.mm.out(f32[6,4], f32[4,5], out=f32[6,5]) -> f32[6,5]
"""

import torch

from .capture import call_of, torch_op


def _t(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


def _i(*shape):
    return _t(*shape, dtype=torch.int64)


def _b(*shape):
    return _t(*shape, dtype=torch.bool)


def _convolution(x, weight, bias=None, **changed):
    arguments = {
        "input": x, "weight": weight, "bias": bias, "stride": [1, 1],
        "padding": [1, 1], "dilation": [1, 1], "transposed": False,
        "output_padding": [0, 0], "groups": 1,
    }  # fmt: skip
    return "aten.convolution.default", arguments | changed


def _convolution_backward(grad, x, weight, bias_sizes, **changed):
    _, arguments = _convolution(x, weight)
    del arguments["bias"]
    arguments |= {"bias_sizes": bias_sizes, "output_mask": [True, True, True]}
    return "aten.convolution_backward.default", {
        "grad_output": grad, **arguments, **changed,
    }  # fmt: skip


def _list():
    def call(op, **args):
        return f"aten.{op}", args

    yield call("add.Tensor", self=_t(4, 6), other=_t(6), alpha=-2)
    yield call("add.Tensor", self=_t(4, 6), other=_t(4, 1), alpha=0)
    yield call("sub.Tensor", self=_i(5), other=_i(5), alpha=3)
    yield call("add.Scalar", self=_t(5), other=0)
    yield call("mul_.Tensor", self=_t(4, 6), other=_t(4, 1))
    yield call("sub_.Tensor", self=_t(4, 6), other=_t(6))
    yield call("relu_.default", self=_t(5, 6))
    yield call("neg_.default", self=_t(5, 6))
    yield call("add.out", self=_t(4, 6), other=_t(6), out=_t(4, 6))
    yield call("mm.out", self=_t(6, 4), mat2=_t(4, 5), out=_t(6, 5))
    yield call("sum.IntList_out", self=_t(4, 6), dim=[0], out=_t(6))
    yield call("addmm.default", self=_t(6, 5), mat1=_t(6, 4), mat2=_t(4, 5))
    yield call(
        "addmm.default",
        self=_t(1, 5), mat1=_t(6, 4), mat2=_t(4, 5), beta=2, alpha=-0.5,
    )  # fmt: skip
    yield call("linear.default", input=_t(6), weight=_t(4, 6), bias=_t(4))
    yield call("where.self", condition=_b(4, 1), self=_t(4, 6), other=_t())
    yield call("clamp.default", self=_t(4, 6), min=-0.5)
    yield call("pow.Tensor_Scalar", self=_t(4, 6), exponent=-0.5)

    yield call("sum.dim_IntList", self=_i(4, 6), dim=[-1])
    yield call("sum.dim_IntList", self=_t(4, 1, 6), dim=[1])
    yield call("mean.dim", self=_t(5, 6, 4), dim=[0, 1], keepdim=True)
    yield call("mean.dim", self=_t(5, 6), dim=None)
    yield call("any.dim", self=_b(4, 6), dim=0)

    for shape, size in (
        ((15,), [3, 5]), ((3, 5), [15]), ((6, 4), [2, 12]), ((2, 12), [6, 4]),
        ((2, 3, 5), [3, 2, 5]), ((12, 10), [8, 15]), ((4, 1, 6), [1, 24, 1]),
        ((4, 6, 4), [96]), ((96,), [4, -1, 4]), ((0, 4), [4, 0]), ((8, 9), [72]),
    ):  # fmt: skip
        yield call("view.default", self=_t(*shape), size=size)
    yield call("expand.default", self=_t(5, 1), size=[2, -1, 4])
    yield call("squeeze.dims", self=_t(4, 1, 6), dim=[0, 1])
    yield call("transpose.int", self=_t(4, 5, 6), dim0=0, dim1=-1)
    yield call("slice.Tensor", self=_t(4, 6), dim=1, start=1, end=-1, step=2)
    yield call("slice.Tensor", self=_t(4, 6), dim=-1)
    yield call("slice_scatter.default", self=_t(4, 6), src=_t(4, 3), dim=1, step=2)
    yield call("select.int", self=_t(4, 6, 5), dim=-2, index=-1)
    yield call("cat.default", tensors=[_t(4, 2), _t(4, 3)], dim=-1)
    yield call("cat.default", tensors=[_t(0), _t(4, 3)])
    yield call("constant_pad_nd.default", self=_t(4, 6), pad=[0, 0, 1, -1], value=3.0)
    yield call("topk.default", self=_t(4, 6), k=2, dim=0)
    yield call("full_like.default", self=_i(4, 6), fill_value=3)
    yield call("arange.start_step", start=20, end=2, step=-3)
    yield call("arange.start_step", start=0.5, end=4.0, step=0.5, dtype=torch.float64)

    for groups, inputs, outputs in ((2, 6, 4), (4, 4, 8), (1, 1, 3)):
        x, weight = _t(4, inputs, 5, 5), _t(outputs, inputs // groups, 3, 3)
        yield _convolution(x, weight, groups=groups)
        yield _convolution(x, weight, _t(outputs), groups=groups)
        yield _convolution_backward(
            _t(4, outputs, 5, 5), x, weight, [outputs], groups=groups
        )
    x, weight = _t(3, 6, 4, 4), _t(6, 2, 3, 3)
    transposed = {"transposed": True, "groups": 2}
    yield _convolution(x, weight, _t(4), **transposed)
    yield _convolution_backward(_t(3, 4, 4, 4), x, weight, [4], **transposed)

    yield call("embedding.default", weight=_t(5, 4), indices=_i(3), padding_idx=1)
    yield call("gather.default", self=_t(4, 6), dim=0, index=_i(3, 6))
    yield call("gather.default", self=_t(4, 6), dim=-1, index=_i(2, 5))
    yield call("scatter.value", self=_t(4, 6), dim=0, index=_i(1, 6), value=2)
    yield call("scatter.value", self=_t(4, 6), dim=1, index=_i(3, 1), value=2)
    yield call("scatter.src", self=_t(4, 6), dim=1, index=_i(4, 1), src=_t(4, 3))
    yield call("scatter.src", self=_t(4, 6), dim=1, index=_i(4, 1), src=_t(4, 1))
    for indices, values in (
        ([None, _i(5)], _t(4, 5, 3)),
        ([_i(5), _i(5)], _t(5, 3)),
        ([_i(2, 1), _i(5)], _t(2, 5, 3)),
        ([None, _i(5)], _t(3)),
        ([_i(5), None, _i(5)], _t(5, 6)),
    ):
        yield call(
            "index_put.default",
            self=_t(4, 6, 3), indices=indices, values=values, accumulate=True,
        )  # fmt: skip

    yield call("_softmax.default", self=_t(4, 6), dim=0, half_to_float=False)
    yield call(
        "native_layer_norm.default",
        input=_t(4, 5, 6), normalized_shape=[5, 6], weight=_t(5, 6), bias=None,
        eps=1e-5,
    )  # fmt: skip
    yield call(
        "_native_batch_norm_legit_functional.default",
        input=_t(4, 6, 5), weight=None, bias=None, running_mean=_t(6),
        running_var=_t(6), training=False, momentum=0.1, eps=1e-5,
    )  # fmt: skip
    yield call(
        "_scaled_dot_product_flash_attention_for_cpu.default",
        query=_t(4, 6, 5, 8), key=_t(4, 2, 7, 8), value=_t(4, 2, 7, 8),
    )  # fmt: skip
    yield call(
        "scaled_dot_product_attention.default",
        query=_t(4, 6, 5, 8), key=_t(4, 6, 7, 8), value=_t(4, 6, 7, 8),
        attn_mask=_t(5, 7),
    )  # fmt: skip


def _call(op, given):
    return call_of(op, given, torch_op(op)(**given))[0]


def more_calls():
    return [_call(op, given) for op, given in _list()]
