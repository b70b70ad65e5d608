"""Runs a function on every rank of a world of gloo, each a process of its own."""

import datetime
import os
import pathlib
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SECONDS = 900


def _work(rank, ranks, folder, function, args):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(os.path.join(folder, "store"), ranks),
        rank=rank,
        world_size=ranks,
        timeout=datetime.timedelta(seconds=SECONDS),
    )
    result = function(*args)
    torch.save(result, os.path.join(folder, f"result{rank}"))
    leave()


def leave():
    """Ends this rank once all ranks are here. destroy_process_group() leaves
    gloo's threads running (torch 2.13), beside which the interpreter's own end
    aborts now and then. NCCL's barrier is over when it is queued: there the
    group's end waits for it, without which others see a closed connection."""
    dist.barrier()
    if dist.get_backend() == "nccl":
        torch.cuda.synchronize()
        dist.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def run_ranks(ranks, function, *args):
    """Returns the result of function(*args) on each rank. The function must be
    importable. An exception on a rank ends all ranks and is raised here."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_work, nprocs=ranks, args=(ranks, folder, function, args))
        return [
            torch.load(pathlib.Path(folder) / f"result{rank}", weights_only=False)
            for rank in range(ranks)
        ]
