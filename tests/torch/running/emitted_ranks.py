"""Emitted programs on their ranks: inputs by seed, a run, and a comparison of its
outputs with those of one device.

`work` is a process of gloo or NCCL. It runs every job that has its rank, and saves
the faults that check_rank() finds.
"""

import datetime
import json
import os
import pathlib

import torch
import torch.distributed as dist
from torch.distributed.tensor.debug import CommDebugMode

from running.ranks import leave

DEVICE = os.environ.get("SHARDPROP_DEVICE", "cpu")
SEED = 20261122

# Shards, by the definition of torch.chunk.


def local_part(tensor, entry, mesh, at):
    """Returns the part of a tensor at coordinate `at`."""
    assert not any("SS" in p or "P" in p for p in entry["placements"]), entry
    sizes = {dim["name"]: dim["size"] for dim in mesh["dims"]}
    names = [dim["name"] for dim in mesh["dims"]]
    for dim, cuts in entry["shard_order"].items():
        for name in cuts:
            chunk = -(-tensor.shape[int(dim)] // sizes[name])
            begin = min(at[names.index(name)] * chunk, tensor.shape[int(dim)])
            end = min(begin + chunk, tensor.shape[int(dim)])
            tensor = tensor.narrow(int(dim), begin, end - begin)
    return tensor.contiguous()


def coordinate(mesh, rank):
    at = []
    for dim in reversed(mesh["dims"]):
        at.append(rank % dim["size"])
        rank //= dim["size"]
    return at[::-1]


DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16,
          "f16": torch.float16, "i64": torch.int64, "i32": torch.int32,
          "bool": torch.bool}


def drawn(entry, index):
    """Returns an unsharded input, the same in every process."""
    return drawn_on_host(entry, index).to(DEVICE)


def drawn_on_host(entry, index):
    generator = torch.Generator().manual_seed(1000 + index)
    dtype = DTYPES[entry["dtype"]]
    shape = entry["shape"]
    if entry["kind"] == "seed":
        return torch.tensor(SEED)
    if entry["kind"] == "learning_rate":
        return torch.tensor(0.01)
    if entry["kind"] == "optimizer_step":
        return torch.tensor(3.0)
    if not dtype.is_floating_point:
        high = 2 if dtype == torch.bool else 10
        return torch.randint(0, high, shape, generator=generator).to(dtype)
    value = torch.randn(shape, generator=generator) * 0.5
    # Variances and second moments are positive.
    if "running_var" in entry["name"] or "exp_avg_sq" in entry["name"]:
        value = value.abs() + 0.5
    return value.to(dtype)


def load(folder, rank):
    """Returns the program and the shardings of a rank of an emitted folder."""
    one = folder / f"rank{rank}.pt2"
    path = one if one.exists() else folder / "program.pt2"
    return (torch.export.load(str(path)),
            json.loads((folder / "shardings.json").read_text()))


def arguments_of(program, shardings, rank):
    by_argument = {entry["argument"]: (i, entry)
                   for i, entry in enumerate(shardings["inputs"])}
    at = coordinate(shardings["mesh"], rank)
    names = [node.name for node in program.graph_module.graph.nodes
             if node.op == "placeholder"]
    assert names == [entry["argument"] for entry in shardings["inputs"]]
    return [local_part(drawn(by_argument[name][1], by_argument[name][0]),
                       by_argument[name][1], shardings["mesh"], at)
            for name in names]


def register_groups(shardings, rank):
    registered = []
    for group in shardings["groups"]:
        for ranks in group["ranks"]:
            made = dist.new_group(ranks)
            if rank not in ranks:
                continue
            torch._C._distributed_c10d._register_process_group(
                group["name"], made)
            registered.append(group["name"])
    return registered


def planned_counts(plan):
    counts = dict(plan["summary"]["collectives"])
    # A permutation is an exchange in which each rank sends to one.
    counts["all_to_all"] += counts.pop("permute")
    counts.pop("slice")
    return {name: count for name, count in counts.items() if count}


COUNTED = {
    "all_reduce": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "all_to_all_single": "all_to_all",
}


def run_rank(folder, rank):
    """Returns the names, kinds and values of a rank's outputs, and the
    counts."""
    program, shardings = load(folder, rank)
    names = register_groups(shardings, rank)
    mode = CommDebugMode()
    with torch.no_grad(), mode:
        results = program.graph_module(
            *arguments_of(program, shardings, rank))
    counts = {}
    for op, count in mode.get_comm_counts().items():
        name = COUNTED[str(op).split(".")[-1]]
        counts[name] = counts.get(name, 0) + count
    for name in names:
        torch._C._distributed_c10d._unregister_process_group(name)
    return shardings, results, counts


def overlapped_calls(program):
    """Returns the number of collectives with a matmul between start and wait."""
    started = {}
    matmuls = 0
    overlapped = 0
    for node in program.graph.nodes:
        name = str(node.target)
        if name.startswith("_c10d_functional.wait_tensor"):
            overlapped += matmuls > started[node.args[0]]
        elif name.startswith("_c10d_functional."):
            started[node] = matmuls
        matmuls += name.startswith("aten.mm")
    return overlapped


def differs(found, wanted):
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype} {list(found.shape)}, not {list(wanted.shape)}"
    if found.numel() == 0:
        return None
    share = 2e-4 if found.dtype not in (torch.bfloat16, torch.float16) else 4e-2
    found, wanted = found.double(), wanted.double()
    scale = wanted.abs().max().item()
    most = (found - wanted).abs().max().item()
    if most <= share * scale + 1e-6 and scale == scale:
        return None
    return f"off by {most:.3g} of {scale:.3g}"


def check_rank(folder, rank):
    """Returns the faults in a rank's outputs."""
    plan = json.loads((folder / "plan.json").read_text())
    shardings, results, counts = run_rank(folder, rank)
    wrong = []
    if counts != planned_counts(plan):
        wrong.append(f"counted {counts}, planned {planned_counts(plan)}")
    whole = torch.load(folder / "unsharded.pt")
    at = coordinate(shardings["mesh"], rank)
    sharded = 0
    for entry, result in zip(shardings["outputs"], results, strict=True):
        key = (entry["kind"], entry.get("target", entry["name"]))
        part = local_part(whole[key], entry, shardings["mesh"], at)
        sharded += part.shape != whole[key].shape
        difference = differs(result, part)
        if difference:
            wrong.append(f"{key}: {difference}")
    return wrong, sum(counts.values()), sharded, len(results)


def work(rank, size, store, jobs, results):
    """A process of gloo or NCCL: every job that has its rank."""
    torch.set_num_threads(1)
    gpu = None
    if DEVICE == "cuda":
        gpu = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(gpu)
        # NCCL lets ranks share a GPU where each says it is another machine.
        if size > torch.cuda.device_count():
            os.environ["NCCL_HOSTID"] = str(rank)
    dist.init_process_group(
        "nccl" if DEVICE == "cuda" else "gloo",
        store=dist.FileStore(store, size), rank=rank, world_size=size,
        timeout=datetime.timedelta(seconds=600), device_id=gpu)
    found = {}
    for name, folder, ranks in jobs:
        if rank < ranks:
            try:
                found[name] = check_rank(pathlib.Path(folder), rank)
            except Exception as error:  # ends all ranks, which wait for this one
                raise RuntimeError(f"{name}: {error}") from error
        else:
            shardings = json.loads(
                (pathlib.Path(folder) / "shardings.json").read_text())
            register_groups(shardings, rank)  # every process makes every group
        try:
            dist.barrier()
        except RuntimeError as error:
            raise RuntimeError(f"{name}: {found.get(name)}: {error}") from error
    torch.save(found, f"{results}{rank}")
    leave()
