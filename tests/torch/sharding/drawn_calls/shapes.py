"""Operators that move elements and compute nothing."""

import math

import torch

from .families import family


def _other_shape(d, shape):
    """Another shape of as many elements: dims split and merged."""
    count = math.prod(shape)
    if count == 0:
        return [0, *d.shape(d.rng.randint(0, 2), 1)]
    sizes, left = [], count
    while left > 1 and len(sizes) < 4 and d.chance(0.8):
        divisors = [n for n in range(2, left + 1) if left % n == 0]
        sizes.append(d.rng.choice(divisors))
        left //= sizes[-1]
    if left > 1:
        sizes.append(left)
    if d.chance(0.25):
        sizes.insert(d.rng.randint(0, len(sizes)), 1)
    if sizes and d.chance(0.2):
        sizes[d.rng.randrange(len(sizes))] = -1
    return sizes


@family(
    "view", "reshape", "_unsafe_view", "view_copy", "_reshape_alias", "_reshape_copy"
)
def view(d):
    shape = d.shape()
    # Elements of another width go into a last dim that they fill.
    if d.op.endswith(".dtype") and shape and d.chance(0.6):
        shape = [*shape[:-1], shape[-1] * d.rng.choice((2, 4, 8))]
    return {"self": d.tensor(shape), "size": _other_shape(d, shape), "dtype": d.dtype()}


@family("expand", "expand_copy", "broadcast_to")
def expand(d):
    shape = [1 if d.chance(0.4) else size for size in d.shape()]
    size = [d.size() if n == 1 else d.rng.choice((n, -1)) for n in shape]
    return {
        "self": d.tensor(shape),
        "size": [d.size(1, 4) for _ in range(d.rng.randint(0, 1))] + size,
    }


@family("repeat", "tile")
def repeat(d):
    x = d.tensor(d.shape(d.rng.randint(0, 3)))
    extra = d.rng.randint(0, 1)
    counts = [d.rng.choice((1, 1, 2, 3, 0)) for _ in range(x.dim() + extra)]
    return {"self": x, "repeats": counts, "dims": counts}


@family("permute", "permute_copy")
def permute(d):
    x = d.tensor()
    return {"self": x, "dims": d.dims(x.dim(), x.dim())}


@family("squeeze", "squeeze_copy")
def squeeze(d):
    shape = [1 if d.chance(0.5) else size for size in d.shape()]
    x = d.tensor(shape)
    if not d.op.endswith((".dims",)):
        return {"self": x}
    rank = x.dim()
    return {"self": x, "dim": d.dims(rank) if rank else d.rng.choice(([], [0], [-1]))}


@family("unsqueeze", "unsqueeze_copy")
def unsqueeze(d):
    x = d.tensor()
    return {"self": x, "dim": d.dim(x.dim() + 1)}


@family("split_with_sizes", "split_with_sizes_copy")
def split_with_sizes(d):
    x = d.tensor(d.shape(d.rng.randint(1, 3)))
    dim = d.dim(x.dim())
    left, sizes = x.shape[dim], []
    while left and d.chance(0.7):
        sizes.append(d.rng.randint(0, left))
        left -= sizes[-1]
    return {"self": x, "split_sizes": [*sizes, left], "dim": dim}


@family("split", "split_copy", "chunk", "unsafe_split", "unsafe_chunk")
def split(d):
    x = d.tensor(d.shape(d.rng.randint(1, 3)))
    dim = d.dim(x.dim())
    if d.op.endswith(".sizes"):
        cut = d.rng.randint(0, x.shape[dim])
        return {"self": x, "split_size": [cut, x.shape[dim] - cut], "dim": dim}
    return {
        "self": x,
        "split_size": d.rng.randint(1, 5),
        "chunks": d.rng.randint(1, 5),
        "dim": dim,
    }


@family("constant_pad_nd", "pad")
def pad(d):
    x = d.tensor()
    count = d.rng.randint(0, x.dim())
    given = {
        "self": x,
        "pad": [d.rng.choice((0, 0, 1, 2, -1)) for _ in range(2 * count)],
    }
    return given | {"value": d.rng.choice((0, 0.0, 2, -1.5))}


@family("cat", "concat", "concatenate", "_cat")
def cat(d):
    shape = list(d.shape(d.rng.randint(1, 3)))
    dim = d.dim(len(shape))
    tensors = []
    for _ in range(d.rng.randint(1, 3)):
        shape[dim] = d.size(0, 8)
        tensors.append(d.tensor((0,) if d.chance(0.05) else shape))
    return {"tensors": tensors, "dim": dim}


@family("stack")
def stack(d):
    shape = d.shape(d.rng.randint(0, 2))
    tensors = [d.tensor(shape) for _ in range(d.rng.randint(1, 3))]
    return {"tensors": tensors, "dim": d.dim(len(shape) + 1)}


def _with_pieces(d, least):
    """A tensor and a dim of it, which more often than not has equal pieces."""
    shape = list(d.shape(d.rng.randint(1, 3), least))
    dim = d.dim(len(shape))
    shape[dim] *= d.rng.choice((1, 2, 3))
    return d.tensor(shape), dim


def _region(d, size):
    """Half of the regions are one of several equal pieces, if there are any."""
    lengths = [n for n in range(2, size) if size % n == 0]
    if lengths and d.chance(0.5):
        length = d.rng.choice(lengths)
        start = d.rng.randrange(0, size, length)
        return {
            "start": start - d.rng.choice((0, size)),
            "end": start + length,
            "step": 1,
        }
    start, end = d.rng.randint(-size, size), d.rng.randint(-size, size + 1)
    return {"start": start, "end": end, "step": d.rng.randint(1, 3)}


@family("slice", "slice_copy")
def slice_(d):
    x, dim = _with_pieces(d, 0)
    return {"self": x, "dim": dim, **_region(d, x.shape[dim])}


@family("slice_backward", "select_backward")
def part_written(d):
    x, dim = _with_pieces(d, 1)
    size = x.shape[dim]
    given = {"input_sizes": list(x.shape), "dim": dim}
    if d.base == "select_backward":
        given["index"] = d.dim(size)
        part = x.select(dim, given["index"])
    else:
        given |= _region(d, size)
        part = torch.ops.aten.slice.Tensor(
            x, dim, given["start"], given["end"], given["step"]
        )
    return {"grad_output": d.tensor(part.shape, x.dtype), **given}


@family("slice_scatter", "select_scatter", "diagonal_scatter")
def scatter_into_view(d):
    x, dim = _with_pieces(d, 1)
    given = {"self": x, "dim": dim}
    size = x.shape[dim]
    if d.base == "select_scatter":
        given["index"] = d.dim(size)
        part = x.select(given["dim"], given["index"])
    elif d.base == "diagonal_scatter":
        x = given["self"] = d.tensor(d.shape(d.rng.randint(2, 3), 1))
        one, other = d.dims(x.dim(), 2)
        given |= {"dim1": one, "dim2": other, "offset": d.rng.randint(-2, 2)}
        part = x.diagonal(given["offset"], one, other)
    else:
        start = d.rng.choice((None, 0, 1, -1, -size, size // 2))
        end = d.rng.choice((None, size, -1, size + 3, size // 2, 1))
        given |= {"start": start, "end": end, "step": d.rng.choice((1, 1, 1, 2, 3))}
        if d.chance(0.5):
            given |= _region(d, size)
        part = torch.ops.aten.slice.Tensor(
            x, dim, given["start"], given["end"], given["step"]
        )
    return given | {"src": d.tensor(part.shape)}


@family("flip", "roll", "rot90")
def moved(d):
    x = d.tensor()
    dims = d.dims(x.dim())
    if d.base == "rot90":
        return {"self": d.tensor(d.shape(2)), "k": d.rng.randint(-2, 3), "dims": [0, 1]}
    return {"self": x, "dims": dims, "shifts": [d.rng.randint(-3, 3) for _ in dims]}


@family("unfold", "unfold_copy")
def unfold(d):
    if d.chance(0.1):  # a scalar is one window at most
        size = d.rng.randint(0, 1)
        return {"self": d.tensor(()), "dimension": 0, "size": size, "step": 1}
    x = d.tensor(d.shape(d.rng.randint(1, 2), 2))
    dim = d.dim(x.dim())
    return {
        "self": x,
        "dimension": dim,
        "size": d.rng.randint(1, x.shape[dim]),
        "step": d.rng.randint(1, 3),
    }


def _windows(d):
    names = ("kernel_size", "dilation", "padding", "stride")
    ranges = ((1, 2), (1, 2), (0, 1), (1, 2))
    return {
        name: [d.rng.randint(*range_) for _ in range(2)]
        for name, range_ in zip(names, ranges, strict=True)
    }


@family("im2col", "col2im")
def columns(d):
    space = [d.rng.randint(3, 5) for _ in range(2)]
    batch = (d.size(1, 4),) if d.chance(0.8) else ()
    dtype = d.rng.choice((torch.float64, torch.float32))
    x = d.tensor((*batch, d.size(1, 4), *space), dtype).contiguous()
    windows = _windows(d)
    if d.base == "im2col":
        return {"self": x, **windows}
    columns = torch.ops.aten.im2col(x, **windows)
    made = d.tensor(columns.shape, dtype).contiguous()
    return {"self": made, "output_size": space, **windows}


@family("movedim", "moveaxis")
def movedim(d):
    x = d.tensor()
    if d.op.endswith(".int"):
        return {"self": x, "source": d.dim(x.dim()), "destination": d.dim(x.dim())}
    count = d.rng.randint(0, x.dim())
    return {
        "self": x,
        "source": d.dims(x.dim(), count),
        "destination": d.dims(x.dim(), count),
    }


@family("unflatten")
def unflatten(d):
    shape = d.shape(d.rng.randint(1, 3), 1)
    dim = d.dim(len(shape))
    return {
        "self": d.tensor(shape),
        "dim": dim,
        "sizes": _other_shape(d, (shape[dim],)) or [1],
    }


@family("copy", "_to_copy", "to")
def copy(d):
    x = d.tensor()
    src = tuple(1 if d.chance(0.1) else size for size in x.shape)
    return {
        "self": x,
        "src": d.tensor(src, d.any_dtype()),
        "non_blocking": False,
        "dtype": d.any_dtype() if d.chance(0.85) or ".device" in d.op else None,
        **({"device": "cpu"} if ".device" in d.op else {}),
    }


@family("pixel_shuffle", "pixel_unshuffle")
def pixel_shuffle(d):
    n, c, h, w = d.size(1, 4), d.size(1, 4), d.size(1, 4), d.size(1, 4)
    if d.base == "pixel_shuffle":
        return {"self": d.tensor((n, 4 * c, h, w)), "upscale_factor": 2}
    return {"self": d.tensor((n, c, 2 * h, 2 * w)), "downscale_factor": 2}


@family(
    "alias", "detach", "lift_fresh", "clone", "contiguous", "lift_fresh_copy"
)
def as_it_is(d):
    return {"self": d.tensor()}


@family("_chunk_cat")
def chunk_cat(d):
    shape = list(d.shape(d.rng.randint(1, 3), 1))
    dim = d.rng.randrange(len(shape))
    dtype = d.dtype()
    tensors = []
    for _ in range(d.rng.randint(1, 3)):
        rest = [d.size(1, 7) for _ in shape[dim:]]
        tensors.append(d.tensor(shape[:dim] + rest, dtype))
    if all(t.dim() == tensors[0].dim() for t in tensors) and d.chance(0.3):
        dim -= len(shape)
    return {"tensors": tensors, "dim": dim, "num_chunks": d.rng.randint(1, 4)}


@family("unfold_backward")
def windows_added(d):
    x = d.tensor(d.shape(d.rng.randint(1, 3), 1))
    dim = d.dim(x.dim())
    size = d.rng.randint(0, x.shape[dim])
    step = d.rng.randint(1, 3)
    if d.chance(0.1):
        x, dim, size = x.new_empty(()), d.dim(0), d.rng.randint(0, 1)
    windows = x.unfold(dim, size, step)
    return {
        "grad_in": d.tensor(windows.shape, x.dtype),
        "input_sizes": list(x.shape),
        "dim": dim,
        "size": size,
        "step": step,
    }


@family("diagonal_backward")
def diagonal_written(d):
    x = d.tensor(d.shape(d.rng.randint(2, 3), 1))
    one, other = d.dims(x.dim(), 2)
    offset = d.rng.randint(-2, 2)
    return {
        "grad_output": d.tensor(x.diagonal(offset, one, other).shape, x.dtype),
        "input_sizes": list(x.shape),
        "offset": offset,
        "dim1": one,
        "dim2": other,
    }


@family("as_strided_scatter")
def storage_written(d):
    x = d.tensor(d.shape(d.rng.randint(1, 3), 1))
    src = d.tensor((d.rng.randint(1, max(x.numel() // 2, 1)),), x.dtype)
    return {"self": x, "src": src, "size": list(src.shape), "stride": [2]}


@family("as_strided_copy")
def storage_copied(d):
    # `x` fills its own memory without gaps, so that the strides below stay
    # inside.
    x = d.tensor(d.shape(d.rng.randint(1, 3), 1)).contiguous()
    shape = [d.rng.randint(1, 4) for _ in range(d.rng.randint(0, 2))]
    strides, left = [], x.numel() - 1
    for size in shape:
        strides.append(d.rng.randint(0, left // max(size - 1, 1)))
        left -= strides[-1] * (size - 1)
    begin = d.rng.choice((None, d.rng.randint(0, left)))
    return {"self": x, "size": shape, "stride": strides, "storage_offset": begin}


@family("resize", "resize_as")
def storage_resized(d):
    x = d.tensor(d.shape(d.rng.randint(1, 3), 1))
    size = list(x.shape)
    if d.chance(0.5):  # to fewer elements: others would be whatever is there
        size = [d.rng.randint(1, n) for n in x.shape[d.rng.randint(0, 1) :]]
    return {
        "self": x,
        "size": size,
        "the_template": d.tensor(size),
        "memory_format": None,
    }


@family("narrow_copy")
def narrowed(d):
    x = d.tensor(d.shape(d.rng.randint(1, 3)))
    dim = d.dim(x.dim())
    length = d.rng.randint(0, x.shape[dim])
    start = d.rng.randint(0, x.shape[dim] - length)
    if start and d.chance(0.4):
        start -= x.shape[dim]
    return {"self": x, "dim": dim, "start": start, "length": length}


@family("copy_to")
def copied_to(d):
    x = d.tensor()
    return {"a": x, "b": d.tensor(x.shape)}
