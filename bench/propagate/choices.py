#!/usr/bin/env python3
"""Compares the choice of a strategy on one to five mesh dims with torch's DTensor.

    choices.py build/release/bench/propagate/bench_choice [SECONDS]

The function of torch is ShardingPropagator.propagate_op_sharding_non_cached; the time is
the median of up to 21 calls. A case that takes either side longer than SECONDS (60) is not
repeated. Both are asked in turn, in one run. The script prints a table in Markdown.
"""

import multiprocessing
import statistics
import subprocess
import sys
import time

HEADS = ("bf16", (64, 32, 1024, 128))
# Tensors; then by tensor, the tensor dim that each of the first mesh dims shards: once so
# that all operands fit, and once so that some must move.
CASES = {
    "mm": (
        "aten.mm.default",
        [("bf16", (4096, 2048)), ("bf16", (2048, 1024))],
        [[0], [None, 1]],
        [[0, 1], [1, 0]],
    ),
    "attention": (
        "aten._scaled_dot_product_flash_attention.default",
        [HEADS, HEADS, HEADS],
        [[0, 1], [0, 1], [0, 1]],
        [[0, 1], [1, 0], [None, 1]],
    ),
    "embedding": (
        "aten.embedding.default",
        [("bf16", (32000, 4096)), ("i64", (64, 1024))],
        [[None, 1], [0]],
        [[1], [0, 1]],
    ),
}


def case(name, dims, moves):
    """Returns the operator, and per tensor: dtype, shape and the dim that each mesh dim shards."""
    op, tensors, fit, moved = CASES[name]
    cuts = [(cut + [None] * dims)[:dims] for cut in (moved if moves else fit)]
    return op, [(*tensor, cut) for tensor, cut in zip(tensors, cuts)]


def torch_microseconds(name, dims, moves, answer):
    import torch
    import torch.distributed as dist
    import torch.testing._internal.distributed.fake_pg  # noqa: F401
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
    from torch.distributed.tensor._op_schema import OpSchema

    dist.init_process_group("fake", rank=0, world_size=2**dims)
    mesh = init_device_mesh("cpu", (2,) * dims)
    op, tensors = case(name, dims, moves)
    dtypes = {"bf16": torch.bfloat16, "i64": torch.int64}
    specs = []
    for dtype, shape, cuts in tensors:
        like = torch.empty(shape, dtype=dtypes[dtype], device="meta")
        specs.append(
            DTensorSpec(
                mesh,
                tuple(Replicate() if cut is None else Shard(cut) for cut in cuts),
                TensorMeta(like.shape, like.stride(), like.dtype),
            )
        )
    _, packet, overload = op.split(".")
    overload = getattr(getattr(torch.ops.aten, packet), overload)
    schema = OpSchema(overload, tuple(specs), {})
    work = DTensor._op_dispatcher.sharding_propagator.propagate_op_sharding_non_cached
    times = []
    until = time.perf_counter() + 5
    while len(times) < 21 and (len(times) < 2 or time.perf_counter() < until):
        begin = time.perf_counter()
        work(schema)
        times.append(1e6 * (time.perf_counter() - begin))
        answer.put(statistics.median(times))


def ask_torch(seconds, *case):
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=torch_microseconds, args=(*case, answer))
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
    found = None
    while not answer.empty():
        found = answer.get()
    return found


def ask_ours(seconds, bench, name, dims, moves):
    op, tensors = case(name, dims, moves)
    operands = [
        f"{dtype}[{','.join(map(str, shape))}] "
        + ",".join("R" if cut is None else f"S({cut})" for cut in cuts)
        for dtype, shape, cuts in tensors
    ]
    call = [bench, ",".join(["2"] * dims), op, *operands]
    try:
        said = subprocess.check_output(call, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, None
    median, first = map(float, said.split())
    return first, median


def main():
    bench = sys.argv[1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60
    print("| operator | mesh dims | inputs | ours first, us | ours | torch | times |")
    print("|---|---|---|---|---|---|---|")
    for name in CASES:
        for dims in range(1, 6):
            for moves in (False, True):
                first, mine = ask_ours(seconds, bench, name, dims, moves)
                theirs = ask_torch(seconds, name, dims, moves)
                said = [
                    f"over {seconds:.0f} s" if one is None else f"{one:,.1f}"
                    for one in (first, mine, theirs)
                ]
                times = f"{theirs / mine:,.0f}" if mine and theirs else ""
                what = "move" if moves else "fit"
                row = [name, str(dims), what, *said, times]
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
