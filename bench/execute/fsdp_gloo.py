"""Compares the FSDP recipe with PyTorch's FSDP2 over gloo: collectives, bytes and the
time of forward and backward.

  PYTHONPATH=PACKAGE python bench/execute/fsdp_gloo.py [--dim 512] [--blocks 4]
                                                      [--ranks 4] [--pairs 21]

The model is blocks of two matmuls and a norm. Both run in the same processes, one step of
each in turn. The table has the median of the ratios of the pairs. Bytes are the
unsharded bytes of the collectives.
"""

import argparse
import collections
import pathlib
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/torch"))

import shardprop as sp
import shardprop.torch
from running.ranks import run_ranks

KINDS = {
    "_allgather_base_": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "_reduce_scatter_base_": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
    "allreduce_": "all_reduce",
    "all_reduce": "all_reduce",
}


class Sent(TorchDispatchMode):
    """Counts collectives and the bytes of their largest tensor."""

    def __init__(self, ranks):
        super().__init__()
        self.ranks = ranks
        self.found = collections.defaultdict(lambda: [0, 0])

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        namespace, _, name = func._schema.name.partition("::")
        if namespace in ("c10d", "_c10d_functional"):
            kind = KINDS.get(name)
            if kind:
                self.add(kind, namespace, args)
        return func(*args, **(kwargs or {}))

    def add(self, kind, namespace, args):
        tensors = [t for t in torch.utils._pytree.tree_leaves(args) if isinstance(t, torch.Tensor)]
        size = max(t.numel() * t.element_size() for t in tensors)
        if kind == "all_gather" and namespace == "_c10d_functional":
            size *= self.ranks
        self.found[kind][0] += 1
        self.found[kind][1] += size


class Block(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)
        self.up = torch.nn.Linear(dim, 4 * dim)
        self.down = torch.nn.Linear(4 * dim, dim)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(torch.nn.Module):
    def __init__(self, dim, blocks):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(dim) for _ in range(blocks))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return (x * x).mean()


def made(dim, blocks):
    torch.manual_seed(0)
    return Model(dim, blocks)


def fsdp2(dim, blocks, mesh):
    model = made(dim, blocks)
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def planned(options, mesh):
    x = torch.randn(options.ranks * options.rows, options.dim)
    exported = sp.torch.export(made(options.dim, options.blocks), (x,), mode="train", device="cpu")
    plan = sp.torch.plan(exported, mesh, recipe="fsdp=dp", overlap=options.overlap)
    module = sp.torch.parallelize(exported, plan, mesh)
    sp.torch.load_weights(module, made(options.dim, options.blocks))
    return module


def counted(step, ranks):
    with Sent(ranks) as sent:
        step()
    return {kind: tuple(both) for kind, both in sent.found.items()}


def compare(options):
    mesh = dist.device_mesh.init_device_mesh("cpu", (options.ranks,), mesh_dim_names=("dp",))
    torch.manual_seed(1)
    whole = torch.randn(options.ranks * options.rows, options.dim)
    mine = whole.chunk(options.ranks)[dist.get_rank()]
    peer = fsdp2(options.dim, options.blocks, mesh)
    ours = planned(options, mesh)

    def peer_step():
        peer.zero_grad()
        loss = peer(mine)
        loss.backward()
        return loss

    def our_step():
        ours.zero_grad()
        loss = ours(whole)
        return loss

    losses = []
    for step in (peer_step, our_step):
        loss = step()
        loss = loss.full_tensor() if hasattr(loss, "full_tensor") else loss
        losses.append(float(loss.detach()))
    counts = [counted(step, options.ranks) for step in (peer_step, our_step)]
    ratios = []
    for _ in range(options.pairs):
        seconds = []
        for step in (peer_step, our_step):
            dist.barrier()
            start = time.perf_counter()
            step()
            dist.barrier()
            seconds.append(time.perf_counter() - start)
        ratios.append(seconds[1] / seconds[0])
    return losses, counts, ratios


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rows", type=int, default=64, help="rows of the batch of a rank")
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--overlap", default="1")
    options = parser.parse_args()
    found = run_ranks(options.ranks, compare, options)
    losses, counts, ratios = found[0]
    print(f"losses of rank 0 {losses}")
    print("| collective | FSDP2 launches | ours | FSDP2 bytes | ours |")
    print("|---|--:|--:|--:|--:|")
    for kind in sorted(set(counts[0]) | set(counts[1])):
        peer, ours = (count.get(kind, (0, 0)) for count in counts)
        print(f"| {kind} | {peer[0]} | {ours[0]} | {peer[1]} | {ours[1]} |")
    if ratios:
        print(f"forward and backward, ours / FSDP2, median of {len(ratios)} pairs: "
              f"{statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
