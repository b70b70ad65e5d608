"""Samples convolutions of one to three dims, grouped, transposed, with empty
batches."""

import torch

from .families import family


def _in_parts(d, given):
    """Makes a dim of space one whose parts are laid on parts of the image, which
    overlap or not."""
    image = given["input"]
    dim = d.rng.randrange(2, image.dim())
    stride = given["stride"][dim - 2] = d.rng.randint(1, 3)
    places = d.rng.randint(2, 9)
    reach = given["dilation"][dim - 2] * (given["weight"].shape[dim] - 1)
    size = stride * places
    fitting = [
        padding
        for padding in range(reach + 1)
        if (size + 2 * padding - reach - 1) // stride + 1 == places
    ]
    if not fitting:
        return
    given["padding"][dim - 2] = d.rng.choice(fitting)
    shape = list(image.shape)
    shape[dim] = size
    given["input"] = d.tensor(tuple(shape), image.dtype).contiguous()


def _arguments(d, spatial=None, transposed=None):
    n = 0 if d.chance(0.08) else d.size(1, 5)
    spatial = spatial or d.rng.choice((1, 1, 2, 2, 3))
    groups = d.rng.choice((1, 1, 1, 2, 4))
    transposed = d.chance(0.25) if transposed is None else transposed
    inputs, outputs = (groups * d.rng.choice((1, 2, 3)) for _ in range(2))
    if groups == 1 and d.chance(0.3):
        inputs, outputs = d.rng.choice((4, 7)), d.rng.choice((4, 8))
    kernel = [d.rng.randint(1, 3) for _ in range(spatial)]
    largest = 4 if spatial == 3 else 6
    extents = [d.rng.randint(k, largest) for k in kernel]
    dtype = d.rng.choice((torch.float64, torch.float32))
    weight = (inputs, outputs // groups) if transposed else (outputs, inputs // groups)
    given = {
        "input": d.tensor((n, inputs, *extents), dtype).contiguous(),
        "weight": d.tensor((*weight, *kernel), dtype).contiguous(),
        "bias": d.tensor((outputs,), dtype) if d.chance(0.5) else None,
        "stride": [d.rng.randint(1, 2) for _ in kernel],
        "padding": [d.rng.randint(0, 1) for _ in kernel],
        "dilation": [d.rng.choice((1, 1, 2)) for _ in kernel],
        "transposed": transposed,
        "output_padding": [0] * spatial,
        "groups": groups,
    }
    if not transposed and d.chance(0.5):
        _in_parts(d, given)
    return given


@family("convolution", "_convolution")
def convolution(d):
    flags = {
        "benchmark": False,
        "deterministic": True,
        "cudnn_enabled": True,
        "allow_tf32": False,
    }
    return _arguments(d) | flags


@family(*(f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)))
def of_dims(d):
    given = _arguments(d, int(d.base[-2]), "transpose" in d.base)
    if d.op.endswith(".padding"):
        given["padding"] = d.rng.choice(("valid", "same"))
        if given["padding"] == "same":
            given["stride"] = [1 for _ in given["stride"]]
    return given


@family("_convolution_mode")
def by_mode(d):
    padding = d.rng.choice(("valid", "same"))
    given = _arguments(d, transposed=False) | {"padding": padding}
    return given | ({"stride": [1] * len(given["stride"])} if padding == "same" else {})


@family("slow_conv3d")
def ungrouped(d):
    while (given := _arguments(d, 3, False))["groups"] > 1:
        pass
    kernel = list(given["weight"].shape[2:])
    return given | {"self": given["input"], "kernel_size": kernel}


@family("convolution_backward")
def convolution_backward(d):
    given = _arguments(d)
    result = torch.ops.aten.convolution(**given)
    outputs = result.shape[1]
    del given["bias"]
    mask = [d.chance(0.8) for _ in range(3)]
    sizes = [outputs] if d.chance(0.8) or mask[2] else None
    grad = d.tensor(result.shape, result.dtype).contiguous()
    return {"grad_output": grad, **given, "bias_sizes": sizes, "output_mask": mask}
