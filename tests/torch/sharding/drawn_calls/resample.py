"""Images made larger, smaller and padded, and the gradients of that."""

import torch

from .families import family

_UPSAMPLES = {
    1: ("upsample_nearest1d", "_upsample_nearest_exact1d", "upsample_linear1d"),
    2: (
        "upsample_nearest2d",
        "upsample_bilinear2d",
        "upsample_bicubic2d",
        "_upsample_nearest_exact2d",
        "_upsample_bilinear2d_aa",
        "_upsample_bicubic2d_aa",
        "_upsample_lanczos2d_aa",
    ),
    3: ("upsample_nearest3d", "_upsample_nearest_exact3d", "upsample_trilinear3d"),
}


def _image(d, dims, least=2, most=4):
    dtype = d.rng.choice((torch.float64, torch.float32))
    space = [d.rng.randint(least, most) for _ in range(dims)]
    return d.tensor((d.size(1, 5), d.size(1, 6), *space), dtype).contiguous()


def _upsample(dims):
    def upsample(d):
        x = _image(d, dims)
        sizes = [d.rng.randint(2, 6) for _ in range(dims)]
        names = [f"scales_{axis}" for axis in "dhw"[-dims:]] if dims > 1 else ["scales"]
        given = {"align_corners": d.chance(0.5)} | dict.fromkeys(names)
        if d.base.endswith("_backward"):
            grad = d.tensor((*x.shape[:2], *sizes), x.dtype).contiguous()
            shape = list(x.shape)
            return given | {
                "grad_output": grad, "output_size": sizes, "input_size": shape
            }  # fmt: skip
        by_factor = d.op.endswith(".vec") and d.chance(0.5)
        return given | {
            "self": x,
            "input": x,
            "output_size": None if by_factor else sizes,
            "scale_factors": [2.0] * dims if by_factor else None,
        }

    return upsample


for _dims, _names in _UPSAMPLES.items():
    family(*_names, *(f"{name}_backward" for name in _names))(_upsample(_dims))


def _pad(dims):
    def pad(d):
        x = _image(d, dims)
        if d.chance(0.4):
            x = x[0].contiguous()
        pads = [d.rng.randint(0, 1) for _ in range(2 * dims)]
        if not d.base.endswith("_backward"):
            return {"self": x, "padding": pads}
        forward = getattr(torch.ops.aten, d.base.removesuffix("_backward"))
        result = forward(x, pads)
        grad = d.tensor(result.shape, x.dtype).contiguous()
        return {"grad_output": grad, "self": x, "padding": pads}

    return pad


for _dims in (1, 2, 3):
    _kinds = [f"{kind}_pad{_dims}d" for kind in ("reflection", "replication")]
    family(*_kinds, *(f"{kind}_backward" for kind in _kinds))(_pad(_dims))


def _grid(d, dims):
    x = _image(d, dims)
    n, space = x.shape[0], [d.rng.randint(1, 3) for _ in range(dims)]
    grid = d.tensor((n, *space, dims), x.dtype).contiguous() / 4
    return {
        "input": x,
        "grid": grid,
        "interpolation_mode": d.rng.randint(0, 2 if dims == 2 else 1),
        "padding_mode": d.rng.randint(0, 2),
        "align_corners": d.chance(0.5),
        "output_mask": [True, d.chance(0.7)],
    }


@family("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sampler(d):
    return _grid(d, 3 if d.base.endswith("3d") else 2)


@family("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def grid_sampler_backward(d):
    given = _grid(d, int(d.base[len("grid_sampler_")]))
    shape = (*given["input"].shape[:2], *given["grid"].shape[1:-1])
    grad = d.tensor(shape, given["input"].dtype).contiguous()
    return {"grad_output": grad, **given}


@family("affine_grid_generator")
def affine_grid(d):
    theta = d.tensor((d.size(1, 4), 2, 3), torch.float64).contiguous()
    sizes = [theta.shape[0], 3, d.rng.randint(1, 4), d.rng.randint(1, 4)]
    return {"theta": theta, "size": sizes, "align_corners": d.chance(0.5)}
