"""Calls on which PyTorch's CPU kernels are wrong, or differ from its other ones.

They are left out of the proof. Each line is one quirk: keep the list narrow. Calls
that end the process, or spoil its memory, are not even drawn (`spoils_memory`).
"""

import math

import torch


def _dense(meta):
    step = 1
    for size, stride in zip(reversed(meta.shape), reversed(meta.strides), strict=True):
        if size > 1 and stride != step:
            return False
        step *= max(size, 1)
    return True


def _odd_out(call):
    written = [call.arg(name) for name in ("out", "grad_input", "output")]
    if written[0] or written[2]:
        written.append(call.arg("indices"))
    return any(out and not _dense(call.inputs[out.index]) for out in written)


def _vector_into_odd_out(call):
    return _odd_out(call) and min(len(meta.shape) for meta in call.inputs) == 1


def _lone_into_odd_out(call):
    return _odd_out(call) and len(call.arg("tensors")) == 1


def _empty(call):
    return any(0 in meta.shape for meta in call.inputs)


def _unasked(call):
    return len(call.outputs) != sum(call.arg("output_mask", (True,)))


def _odd_operand(call):
    return not all(map(_dense, call.inputs))


def _broadcasts(call):
    return len({meta.shape for meta in call.inputs}) > 1


def _mean_of_wide_integers(call):
    return call.inputs[0].dtype in ("i32", "i64")


def _of_integers(call):
    return all(meta.dtype[0] in "ui" or meta.dtype == "bool" for meta in call.inputs)


def _of_no_dims_or_integers(call):
    return not call.arg("dims") or _of_integers(call)


def _reduces(call):
    return call.arg("reduction", 1) != 0


def _two_dtypes(call):
    return len({meta.dtype for meta in call.inputs}) > 1


def _without_elements_of_matrix(call):
    matrix = call.inputs[call.arg("mat").index].shape
    return 0 in matrix and call.inputs[0].shape != matrix[:1]


def _floats_into_bytes(call):
    return call.inputs[-1].dtype == "u8" and call.inputs[0].dtype not in ("u8", "bool")


def _lone_volume_laid_out(call):
    image, weight = (call.inputs[call.arg(name).index] for name in ("input", "weight"))
    return (
        len(image.shape) == len(weight.shape) == 5
        and image.shape[0] == 1
        and image.dtype == "f32"
        and call.arg("groups", 1) == 1
        and min(weight.shape[-2:]) <= 3
        and not (_dense(image) and _dense(weight))
    )


def _transposed_to_nothing(call):
    is_backward = call.op.startswith("aten.convolution_backward")
    image = call.inputs[0] if is_backward else call.outputs[0]
    return call.arg("transposed") and 0 in image.shape[2:]


def _nothing_comes_out(call):
    return any(0 in meta.shape for meta in call.outputs)


_QUIRKS = (
    # (operators by base and overload, the calls that are left out, why)
    (
        (
            "_softmax.out",
            "_log_softmax.out",
            "linear.out",
            "gelu.out",
            "avg_pool3d.out",
            "adaptive_avg_pool2d.out",
            "adaptive_avg_pool3d.out",
            "_softmax_backward_data.out",
            "_log_softmax_backward_data.out",
            "adaptive_max_pool3d.out",
            "dstack.out",
            "im2col.out",
            "col2im.out",
            "fractional_max_pool2d.output",
            "fractional_max_pool3d.output",
            "fractional_max_pool2d_backward.grad_input",
            "fractional_max_pool3d_backward.grad_input",
            "narrow_copy.out",
            "_upsample_bicubic2d_aa.out",
            "_upsample_lanczos2d_aa.out",
            "adaptive_max_pool3d_backward.grad_input",
            "avg_pool3d_backward.grad_input",
            "upsample_bicubic2d_backward.grad_input",
        ),
        _odd_out,
        "writes to an `out` whose dims are not in order as if they were",
    ),
    (
        ("matmul.out", "linalg_matmul.out"),
        _vector_into_odd_out,
        "takes a vector times a batch into such an `out` by some strides of the batch",
    ),
    (
        (
            "cat.out",
            "concat.out",
            "concatenate.out",
            "column_stack.out",
            "hstack.out",
        ),
        _lone_into_odd_out,
        "of a lone tensor leaves such an `out` as it was",
    ),
    (
        ("_scaled_dot_product_flash_attention_for_cpu.default",),
        _odd_operand,
        "reads operands as dense",
    ),
    (
        ("_int_mm.default", "_int_mm.out"),
        _odd_operand,
        "is wrong where a transposed factor has one row, as on a rank it may",
    ),
    (
        ("gelu_backward.default", "gelu_backward.grad_input"),
        lambda call: call.inputs[1].dtype != "f64" and _broadcasts(call),
        "hands a gradient that broadcasts to oneDNN, which takes none, unless the input "
        "lies otherwise in memory, as a part of it may not",
    ),
    (
        ("logit_backward.default", "logit_backward.grad_input"),
        lambda call: call.arg("eps") is None or _two_dtypes(call),
        "gives inf or nan outside of the domain, by how the loop is unrolled",
    ),
    (
        ("convolution_backward.default",),
        _unasked,
        "depthwise: gives gradients that output_mask leaves out",
    ),
    (
        ("native_dropout.default", "native_dropout.out"),
        _empty,
        "the mask of an empty input is a float tensor",
    ),
    (
        ("binary_cross_entropy.out",),
        _reduces,
        "keeps the elements in the `out` that it then reduces them into",
    ),
    (
        (
            "huber_loss.default",
            "soft_margin_loss.default",
            "soft_margin_loss.out",
            "binary_cross_entropy_with_logits.default",
        ),
        _two_dtypes,
        "keeps the dtype of its input, where exported programs promote",
    ),
    (
        ("mean.dim", "mean.out", "mean.default"),
        _mean_of_wide_integers,
        "rounds large integers that cancel to floats first",
    ),
    (
        ("prims.amax.default", "prims.amin.default", "prims.var.default"),
        lambda call: not call.arg("dims"),
        "reduces no dims in its meta function, which exported programs follow, and "
        "all in its kernel",
    ),
    (
        ("prims.sum.default", "prims.prod.default"),
        _of_no_dims_or_integers,
        "the same; and its kernel makes integers i64, where its meta function does not",
    ),
    (
        ("addmv.default", "addmv.out"),
        _without_elements_of_matrix,
        "gives the shape of what is added where the matrix is empty",
    ),
    (
        (
            "any.out",
            "any.dims_out",
            "any.all_out",
            "all.out",
            "all.dims_out",
            "all.all_out",
        ),
        _floats_into_bytes,
        "casts a lone element to a byte before it asks whether it is zero",
    ),
    (
        (
            "conv_transpose3d.input",
            "conv_transpose2d.input",
            "conv_transpose1d.default",
        ),
        _nothing_comes_out,
        "refuses results without elements by the memory that operands lie in",
    ),
    (
        (
            "convolution.default",
            "convolution.out",
            "_convolution.default",
            "_convolution.out",
            "_convolution.deprecated",
            "convolution_backward.default",
            "convolution_backward.out",
        ),
        _transposed_to_nothing,
        "refuses such images by how many there are",
    ),
    (
        (
            "convolution.default",
            "convolution.out",
            "convolution_backward.default",
            "convolution_backward.out",
            "_convolution.default",
            "conv3d.default",
            "conv3d.padding",
            "conv_transpose3d.input",
        ),
        _lone_volume_laid_out,
        "knows no channels last where it is the CPU's own and not oneDNN's, which "
        "takes batches, groups and larger kernels; cuDNN keeps them",
    ),
    (
        ("index_reduce_.default", "index_reduce.default", "index_reduce.out"),
        lambda call: call.arg("reduce") == "prod" and call.inputs[0].dtype == "bf16",
        "ends in an internal assertion where there are few rows",
    ),
    (
        ("prod.default", "prod.out", "prod.dim_int", "prod.int_out"),
        lambda call: math.prod(call.inputs[0].shape) > 60,
        "a product of so many overflows in parts, whatever the whole is",
    ),
    (
        ("addr.default",),
        lambda call: call.inputs[0].shape == () and _two_dtypes(call),
        "promotes by what is added as by a tensor with dims, where its meta function "
        "does not",
    ),
    (
        ("prims.div.default",),
        _of_integers,
        "keeps integers in its meta function, and divides them as floats in its kernel",
    ),
    (
        ("linalg_lstsq.default", "linalg_lstsq.out"),
        lambda call: call.arg("driver") in (None, "gelsy")
        and math.prod(call.inputs[0].shape[:-2]) > 1,
        "starts each matrix with the pivots of the one before, and takes one whose "
        "first column is zero for one of rank zero",
    ),
    (
        ("isin.Scalar_Tensor", "isin.Scalar_Tensor_out"),
        lambda call: call.inputs[0].dtype == "u8" and call.arg("element") < 0,
        "finds a negative number among bytes where these are few, and not where they "
        "are sorted",
    ),
    (
        ("addbmm.default", "addbmm_.default", "addbmm.out"),
        lambda call: call.inputs[0].dtype == "bool",
        "knows no truth values, unless nothing comes out, and refuses even that of a "
        "batch of none",
    ),
)


def quirk_of(call):
    """Why the call is left out, or None."""
    name = call.op.removeprefix("aten.")
    for operators, applies, why in _QUIRKS:
        if name in operators and applies(call):
            return why
    return None


def _divides_badly(base, args):
    """By a `beta` that is zero as an integer, or the least integer by -1."""
    if base == "smooth_l1_loss_backward":
        return not args["self"].is_floating_point()
    return base in ("lcm", "lcm_", "gcd", "gcd_") and any(
        not value.is_floating_point()
        and value.dtype.is_signed
        and bool((value == torch.iinfo(value.dtype).min).any())
        for value in (args["self"], args["other"])
        if value.dtype != torch.bool
    )


# Triangles of batches are written by one step from matrix to matrix.
_TRIANGLES = ("tril.out", "triu.out", "linalg_lu.out", "lu_unpack.out")


def _batches_are_one(tensor):
    """Whether the dims before the last two are walked by the last one's stride, which
    kernels take even where that dim has one element."""
    sizes, strides = tensor.shape[:-2], tensor.stride()[:-2]
    step = strides[-1] if strides else 0
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size > 1 and stride != step:
            return False
        step *= size
    return True


def spoils_memory(op, args):
    """Whether PyTorch's kernel writes outside of its tensors, or ends the process."""
    outs = [args[n] for n in ("out", "P", "L", "U") if args.get(n) is not None]
    name = op.removeprefix("aten.")
    if _divides_badly(name.split(".")[0], args):
        return True
    if name == "linalg_lu.out" and not all(out.is_contiguous() for out in outs):
        return True
    return name in _TRIANGLES and not all(map(_batches_are_one, outs))
