#!/usr/bin/env python3
"""The kernels against torch's own ops, bit for bit (any NaN equals any NaN).

    test_against_torch.py --library build/libshardprop_kernels_c.so
        [--count 20000] [--seed 0] [--device cpu|cuda] [--emulate]

Outputs are poisoned before the call and are between guard bands, so that a missing
element or a byte written outside is detected. The script exits with 77 if torch or a
requested device is missing.
"""

import argparse
import collections
import os
import random
import sys

try:
    import torch
except ImportError:
    print("skipped: no torch")
    sys.exit(77)

sys.path.insert(
    0, os.path.join(os.path.dirname(__file__), os.pardir, os.pardir, "python")
)
from shardprop_kernels import DTYPES, KernelError, Kernels  # noqa: E402

CASTABLE = [
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
]
INTEGERS = [
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
]
ALL = list(DTYPES)
POISON = 0xA5


def bits(tensor):
    """Returns the tensor as integers or bytes, with one bit pattern for all NaNs."""
    flat = tensor.reshape(-1).clone(memory_format=torch.contiguous_format)
    if tensor.dtype.is_floating_point:
        nan = flat.isnan() if tensor.dtype.itemsize > 1 else flat.float().isnan()
    else:
        nan = None
    raw = flat.view(torch.uint8).view(tensor.numel(), tensor.dtype.itemsize)
    if nan is not None:
        raw[nan] = 0
        return raw, nan
    return raw, None


def same(a, b):
    raw_a, nan_a = bits(a)
    raw_b, nan_b = bits(b)
    if nan_a is not None and not torch.equal(nan_a, nan_b):
        return False
    return torch.equal(raw_a, raw_b)


class Case:
    """Draws tensors for one case and keeps the memory around its outputs."""

    def __init__(self, rng, device):
        self.rng = rng
        self.device = device
        self.guards = []

    def values(self, sizes, dtype):
        """Returns random bits; floats include many ordinary numbers."""
        count = 1
        for size in sizes:
            count *= size
        gen = torch.Generator().manual_seed(self.rng.getrandbits(60))
        raw = torch.randint(
            0, 256, (count * dtype.itemsize,), dtype=torch.uint8, generator=gen
        )
        if dtype == torch.bool:
            return (raw % 2).view(dtype).reshape(sizes)
        tensor = raw.view(dtype)
        if dtype.is_floating_point:
            scale = self.rng.choice([1e-7, 1e-3, 1.0, 50.0, 2e4])
            normal = torch.randn(count, generator=gen) * scale
            mix = torch.rand(count, generator=gen) < 0.8
            if dtype.itemsize == 1:
                tensor = torch.where(
                    mix, normal.to(dtype).view(torch.uint8), raw
                ).view(dtype)
            else:
                tensor = torch.where(mix, normal.to(dtype), tensor)
        return tensor.reshape(sizes)

    def place(self, sizes, dtype, layout):
        """An empty tensor of the given sizes, within memory of its own.

        Returns (tensor, the whole memory as bytes, a mask of its bytes).
        """
        order = list(range(len(sizes)))
        if layout == "column":
            order.reverse()
        elif layout == "permuted":
            self.rng.shuffle(order)
        pad = [0] * len(sizes)
        if layout in ("padded", "permuted"):
            pad = [self.rng.choice([0, 0, 1, 3]) for _ in sizes]
        step = self.rng.choice([1, 2, 3]) if layout == "stepped" else 1
        strides = [0] * len(sizes)
        stride = step
        for d in reversed(order):
            strides[d] = stride
            stride *= max(sizes[d], 1) + pad[d]
        item = dtype.itemsize
        # 64 bytes of guard and a start that is aligned to the element only.
        before = 64 // item + self.rng.choice([0, 0, 1, 2, 3, 5])
        count = before + stride + 64 // item
        memory = torch.full(
            (count * item,), POISON, dtype=torch.uint8, device=self.device
        )
        view = memory.view(dtype).as_strided(sizes, strides, before)
        return view, memory

    def input(self, sizes, dtype, layout=None):
        layout = layout or self.layout()
        view, _ = self.place(sizes, dtype, layout)
        values = self.values(sizes, dtype)
        if dtype.itemsize == 1:
            view.view(torch.uint8).copy_(values.view(torch.uint8))
        else:
            view.copy_(values)
        return view

    def layout(self):
        return self.rng.choice(
            ["row", "row", "row", "column", "padded", "permuted", "stepped"]
        )

    def output(self, sizes, dtype, layout="row"):
        view, memory = self.place(sizes, dtype, layout)
        untouched = torch.ones(
            memory.numel() // dtype.itemsize, dtype=torch.bool, device=self.device
        )
        untouched.as_strided(
            view.shape, view.stride(), view.storage_offset()
        ).fill_(False)
        self.guards.append((memory, untouched, dtype.itemsize))
        return view

    def check_guards(self):
        for memory, untouched, item in self.guards:
            outside = memory.view(-1, item)[untouched]
            if not bool((outside == POISON).all()):
                raise AssertionError("bytes outside the output were written")


def expect(name, got, want, detail):
    if not same(got.cpu(), want.cpu()):
        raise AssertionError(f"{name} differs: {detail}")


def cast(tensor, dtype, scale=1.0):
    if scale == 1.0:
        return tensor if tensor.dtype == dtype else tensor.float().to(dtype)
    if tensor.dtype == torch.float64:
        return tensor * scale
    factor = torch.tensor(scale, dtype=torch.float32, device=tensor.device)
    return (tensor.float() * factor).to(dtype)


def draw_dtypes(rng):
    """Returns source dtype, destination dtype and scale."""
    kind = rng.random()
    if kind < 0.4:
        dtype = rng.choice(ALL)
        return dtype, dtype, 1.0
    scale = rng.choice([1.0, 0.125, 1 / 3])
    if kind < 0.45:
        return torch.float64, torch.float64, scale
    return rng.choice(CASTABLE), rng.choice(CASTABLE), scale


def draw_size(rng):
    return rng.choice([1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 33, 64, 129])


def draw_sizes(rng, ndim, limit=30000):
    sizes = []
    count = 1
    for _ in range(ndim):
        size = draw_size(rng)
        while count * size > limit:
            size = max(size // 2, 1)
        sizes.append(size)
        count *= size
    return sizes


def reference_chunk_cat(tensors, dim, n):
    if tensors[0].dtype.itemsize == 1:  # `cat` lacks kernels for some f8s
        dtype = tensors[0].dtype
        raw = [t.view(torch.uint8) for t in tensors]
        return torch._chunk_cat(raw, dim, n).view(dtype)
    return torch._chunk_cat(tensors, dim, n)


def pad_to(tensor, dim, size):
    sizes = list(tensor.shape)
    sizes[dim] = size
    padded = torch.zeros(sizes, dtype=tensor.dtype, device=tensor.device)
    part = padded.narrow(dim, 0, tensor.shape[dim])
    if tensor.dtype.itemsize == 1:
        part.view(torch.uint8).copy_(tensor.view(torch.uint8))
    else:
        part.copy_(tensor)
    return padded


def test_chunk_cat(lib, case):
    rng = case.rng
    src, dst, scale = draw_dtypes(rng)
    n = rng.choice([1, 2, 3, 4, 5, 8, 16])
    count = rng.randint(1, 6)
    mixed = rng.random() < 0.3
    ndim = rng.randint(1, 4)
    dim = rng.randrange(ndim)
    lead = draw_sizes(rng, dim, 12)
    tensors = []
    for _ in range(count):
        trail = rng.randint(0, 2) if mixed else ndim - dim - 1
        sizes = lead + draw_sizes(rng, 1 + trail, 3000)
        tensors.append(case.input(sizes, src))
    same_rank = len({t.dim() for t in tensors}) == 1
    want = cast(reference_chunk_cat(tensors, dim, n), dst, scale)
    if same_rank and rng.random() < 0.5:
        dim -= tensors[0].dim()
    out = case.output(
        want.shape, dst, rng.choice(["row", "row", "padded", "column"])
    )
    lib.chunk_cat(tensors, dim, n, out, scale=scale)
    expect("chunk_cat", out, want, (tensors, dim, n, dst, scale))


def draw_shards(case, n, even):
    rng = case.rng
    src, dst, scale = draw_dtypes(rng)
    shapes, dims = [], []
    for _ in range(rng.randint(1, 6)):
        sizes = draw_sizes(rng, rng.randint(1, 4), 3000)
        dim = rng.randrange(len(sizes))
        if even:
            sizes[dim] = n * rng.choice([1, 2, 5])
        shapes.append(sizes)
        dims.append(dim)
    return src, dst, scale, shapes, dims


def test_sharded_chunk_cat(lib, case):
    rng = case.rng
    n = rng.choice([1, 2, 3, 4, 8])
    even = rng.random() < 0.5
    src, dst, scale, shapes, dims = draw_shards(case, n, even)
    tensors = [case.input(sizes, src) for sizes in shapes]
    stacked = []
    for tensor, dim in zip(tensors, dims):
        chunk = -(-tensor.shape[dim] // n)
        padded = pad_to(tensor, dim, n * chunk)
        # FSDP does this before its _chunk_cat.
        stacked.append(torch.cat(torch.chunk(padded, n, dim), 0))
    want = cast(reference_chunk_cat(stacked, 0, n), dst, scale)
    out = case.output(want.shape, dst, rng.choice(["row", "padded"]))
    lib.chunk_cat(tensors, 0, n, out, shard_dims=dims, scale=scale)
    expect("sharded chunk_cat", out, want, (tensors, dims, n, dst, scale))


def test_split(lib, case):
    rng = case.rng
    src, dst, scale = draw_dtypes(rng)
    sizes = draw_sizes(rng, rng.randint(1, 4), 20000)
    dim = rng.randrange(len(sizes))
    parts = []
    left = sizes[dim]
    while left > 0 and len(parts) < 8:
        parts.append(rng.randint(0, left))
        left -= parts[-1]
    parts.append(left)
    source = case.input(sizes, src)
    outs, wants = [], []
    for want in torch.split_with_sizes_copy(source, parts, dim):
        wants.append(cast(want, dst, scale))
        outs.append(
            case.output(
                want.shape, dst, rng.choice(["row", "row", "padded", "permuted"])
            )
        )
    if rng.random() < 0.5:
        dim -= len(sizes)
    lib.split_with_sizes_copy(source, parts, dim, outs, scale=scale)
    for out, want in zip(outs, wants):
        expect("split", out, want, (source.shape, parts, dim, dst, scale))


def test_sharded_split(lib, case):
    rng = case.rng
    n = rng.choice([1, 2, 3, 4, 8])
    src, dst, scale, shapes, dims = draw_shards(case, n, rng.random() < 0.5)
    widths = []
    for sizes, dim in zip(shapes, dims):
        width = -(-sizes[dim] // n)
        for d, size in enumerate(sizes):
            width *= size if d != dim else 1
        widths.append(width)
    source = case.input([n, sum(widths)], src, rng.choice(["row", "padded"]))
    outs, wants = [], []
    offset = 0
    for sizes, dim, width in zip(shapes, dims, widths):
        columns = source.narrow(1, offset, width)
        offset += width
        chunk = list(sizes)
        chunk[dim] = -(-sizes[dim] // n)
        pieces = [columns[k].reshape(chunk) for k in range(n)]
        want = torch.cat(pieces, dim).narrow(dim, 0, sizes[dim])
        wants.append(cast(want, dst, scale))
        outs.append(
            case.output(sizes, dst, rng.choice(["row", "row", "padded", "column"]))
        )
    lib.split_with_sizes_copy(
        source, widths, 1, outs, shard_dims=dims, scale=scale
    )
    for out, want in zip(outs, wants):
        expect("sharded split", out, want, (shapes, dims, n, src, dst, scale))


def test_strided_copy(lib, case):
    rng = case.rng
    src, dst, scale = draw_dtypes(rng)
    sizes = draw_sizes(rng, rng.randint(0, 5))
    source = case.input(sizes, src)
    if sizes and rng.random() < 0.2:  # a broadcast
        dim = rng.randrange(len(sizes))
        source = source.narrow(dim, 0, 1).expand(sizes)
    out = case.output(sizes, dst, case.layout())
    lib.strided_copy(source, out, scale=scale)
    expect("strided_copy", out, cast(source, dst, scale), (source, dst, scale))


def reference_reduce(op, inputs, dst, scale):
    if inputs[0].dtype in CASTABLE:
        inputs = [t.float() for t in inputs]
    result = inputs[0]
    for other in inputs[1:]:
        if inputs[0].dtype == torch.bool and op in ("sum", "max"):
            result = result | other
        elif inputs[0].dtype == torch.bool and op in ("product", "min"):
            result = result & other
        elif op == "sum":
            result = result + other
        elif op == "product":
            result = result * other
        elif op == "and":
            result = result & other
        elif op == "or":
            result = result | other
        elif op == "xor":
            result = result ^ other
        else:
            # torch does not define which of two zeros is smaller.
            keep = (result < other) if op == "min" else (result > other)
            if result.dtype.is_floating_point:
                keep = keep | result.isnan()
            result = torch.where(keep, result, other)
    return cast(result, dst, scale)


def test_reduce_into(lib, case):
    rng = case.rng
    kind = rng.random()
    scale = 1.0
    if kind < 0.6:
        src, dst = rng.choice(CASTABLE), rng.choice(CASTABLE)
        scale = rng.choice([1.0, 0.25, 1 / 3])
        ops = ["sum", "product", "min", "max"]
    elif kind < 0.7:
        src = dst = torch.float64
        scale = rng.choice([1.0, 1 / 3])
        ops = ["sum", "product", "min", "max"]
    else:
        src = dst = rng.choice([*INTEGERS, torch.bool])
        ops = ["sum", "product", "min", "max", "and", "or", "xor"]
    op = rng.choice(ops)
    sizes = draw_sizes(rng, rng.randint(0, 4), 5000)
    dense = rng.random() < 0.5
    inputs = [
        case.input(sizes, src, "row" if dense else None)
        for _ in range(rng.randint(1, 5))
    ]
    want = reference_reduce(op, inputs, dst, scale)
    if src == dst and rng.random() < 0.3:
        out = inputs[rng.randrange(len(inputs))]
    else:
        out = case.output(sizes, dst, "row" if dense else case.layout())
    lib.reduce_into(op, inputs, out, scale=scale)
    expect("reduce_into", out, want, (op, inputs, dst, scale))


def test_fill(lib, case):
    rng = case.rng
    dtype = rng.choice(ALL)
    sizes = draw_sizes(rng, rng.randint(0, 4))
    value = case.values([1], dtype)
    out = case.output(sizes, dtype, case.layout())
    lib.fill(out, value)
    expect("fill", out, value.reshape([]).expand(sizes), (sizes, dtype, value))


def op_samples(lib, device):
    """The samples torch tests its own _chunk_cat with, and #121081's example."""
    samples = [
        ([(1, 2, 3)] * 2, -1, 5),
        ([(1, 2, 129), (1, 2, 297)], -1, 5),
        ([(1, 2, 3)] * 2, 1, 5),
        ([(3, 3, 2, 1), (1, 4, 2, 2), (2, 1, 3, 3)], 0, 2),
        ([(2, 3, 3), (2, 3, 1, 2), (2, 3), (2, 3, 2), (2, 3, 271)], 0, 3),
        ([(2, 3, 3), (2, 3, 1, 2), (2, 3), (2, 3, 2), (2, 3, 271)], 1, 3),
        ([(2, 4), (3, 3), (1, 2)], 0, 3),
    ]
    for shapes, dim, n in samples:
        for src in ALL:
            for dst in CASTABLE if src in CASTABLE else [src]:
                for column in (False, True):
                    case = Case(random.Random(1), device)
                    layout = "column" if column else "row"
                    tensors = [case.input(list(s), src, layout) for s in shapes]
                    want = cast(reference_chunk_cat(tensors, dim, n), dst)
                    out = case.output(want.shape, dst)
                    lib.chunk_cat(tensors, dim, n, out)
                    expect("sample", out, want, (shapes, dim, n, src, dst))
                    case.check_guards()


def errors_agree(lib, device):
    """Calls that torch refuses are refused, and nothing is written."""

    def ones(*sizes, dtype=torch.float32):
        return torch.ones(sizes, dtype=dtype, device=device)

    half = torch.float16
    calls = [
        ([ones(2, 3)], 0, 0),
        ([ones(2, 3)], 0, -1),
        ([], 0, 1),
        ([ones(2, 0)], 0, 1),
        ([ones(2, 3), ones(2, 3, dtype=half)], 0, 1),
        ([ones(2, 3), ones(3)], 1, 1),
        ([ones(2, 3), ones(2)], -1, 1),
        ([ones(2, 3), ones(3, 3)], 1, 1),
        ([ones(2, 3), ones(2, 3)], 2, 1),
        ([ones(2, 3), ones(2, 3)], -3, 1),
    ]
    for tensors, dim, n in calls:
        try:
            torch._chunk_cat(tensors, dim, n)
            raise AssertionError(f"torch accepts {tensors} {dim} {n}")
        except (RuntimeError, IndexError):
            pass
        out = torch.full((4096,), 7.0, device=device)
        try:
            lib.chunk_cat(tensors, dim, n, out)
        except KernelError:
            assert bool((out == 7.0).all())
            continue
        raise AssertionError(f"accepted {[t.shape for t in tensors]} {dim} {n}")


TESTS = [
    (test_chunk_cat, 5),
    (test_sharded_chunk_cat, 3),
    (test_split, 4),
    (test_sharded_split, 3),
    (test_strided_copy, 3),
    (test_reduce_into, 3),
    (test_fill, 1),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument(
        "--emulate", action="store_true", help="run the CUDA ops on host memory"
    )
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("skipped: no CUDA device")
        return 77
    large = torch.tensor(1000.0, device=arguments.device)
    if large.to(torch.float8_e4m3fn).float().isnan():
        print("left out: conversions to e4m3fn, which this torch does not saturate "
              "(#178817)")
        CASTABLE.remove(torch.float8_e4m3fn)
    torch.set_num_threads(1)
    libs = [
        Kernels(arguments.library, threads, arguments.emulate) for threads in (1, 2)
    ]
    op_samples(libs[0], arguments.device)
    errors_agree(libs[0], arguments.device)
    names = [test for test, weight in TESTS for _ in range(weight)]
    done = collections.Counter()
    for i in range(arguments.count):
        seed = arguments.seed * 1_000_003 + i
        rng = random.Random(seed)
        test = rng.choice(names)
        case = Case(rng, arguments.device)
        try:
            test(libs[i % 2], case)
            case.check_guards()
        except (AssertionError, KernelError) as error:
            print(f"case {i} of seed {arguments.seed}: {test.__name__}: {error}")
            return 1
        done[test.__name__] += 1
    for name, count in sorted(done.items()):
        print(f"{name}: {count}")
    print(f"{sum(done.values())} cases equal torch's to the bit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
