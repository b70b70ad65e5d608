#!/usr/bin/env python3
"""Trains a tiny Llama by a plan, on four processes of one CPU.

  python examples/python/train_tiny_llama.py [--steps 20] [--mesh dp=2,tp=2]

Exports the model, plans it on a topology where the plan really shards (on the
default one everything so small is replicated), runs it over gloo with AdamW and
compares losses and final weights with one process that trains the model as it
is. Needs torch 2.12 to 2.14 and transformers.
"""

import argparse
import math
import os
import pathlib
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from transformers import LlamaConfig, LlamaForCausalLM

import shardprop as sp
import shardprop.torch

# Plans shard here, because compute and memory cost much and sending costs little.
TOPOLOGY = pathlib.Path(__file__).parents[1] / "topologies/dear-compute.toml"


class Model(torch.nn.Module):
    """A causal language model whose forward is its loss."""

    def __init__(self):
        super().__init__()
        config = LlamaConfig(
            vocab_size=96,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=32,
            attn_implementation="eager",
        )
        self.llama = LlamaForCausalLM(config)

    def forward(self, ids, labels):
        return self.llama(ids, labels=labels, use_cache=False).loss


def batches(steps):
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        ids = torch.randint(0, 96, (4, 16), generator=generator)
        yield ids, ids.clone()


def train(module, steps):
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    losses = []
    for ids, labels in batches(steps):
        optimizer.zero_grad()
        loss = module(ids, labels)
        if loss.requires_grad:  # the planned module leaves the gradients itself
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def new_model():
    torch.manual_seed(0)
    return Model()


def run_rank(rank, options, program, plan_json, rendezvous):
    mesh = dict(dim.split("=") for dim in options.mesh.split(","))
    sizes = [int(size) for size in mesh.values()]
    dist.init_process_group(
        "gloo", f"file://{rendezvous}", rank=rank, world_size=math.prod(sizes)
    )
    device_mesh = dist.device_mesh.init_device_mesh(
        "cpu", sizes, mesh_dim_names=tuple(mesh)
    )
    plan = sp.Plan.from_json(plan_json)
    module = sp.torch.parallelize(program, plan, device_mesh)
    missing = sp.torch.load_weights(module, new_model())
    assert not missing, missing
    losses = train(module, options.steps)
    weights = {
        name: value.full_tensor() for name, value in module.named_parameters()
    }
    if rank == 0:
        compare(losses, weights, options)
    dist.barrier()
    # destroy_process_group() leaves gloo's threads running (torch 2.13), beside
    # which the interpreter's own end aborts now and then.
    sys.stdout.flush()
    os._exit(0)


def compare(losses, weights, options):
    model = new_model()
    wanted = train(model, options.steps)
    for step, (mine, theirs) in enumerate(zip(losses, wanted)):
        print(f"step {step:2}: loss {mine:.6f}, one process {theirs:.6f}")
    state = model.state_dict()
    worst = max(
        (value - state[name]).abs().max().item() for name, value in weights.items()
    )
    print(f"largest difference of a weight: {worst:.2e}")
    assert max(abs(a - b) for a, b in zip(losses, wanted)) < 1e-3
    assert worst < 1e-2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--mesh", default="dp=2,tp=2")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    model = new_model()
    ids = torch.zeros(4, 16, dtype=torch.int64)
    exported = sp.torch.export(model, (ids, ids), mode="train", device="cpu")
    program = sp.torch.to_json(exported)
    with tempfile.TemporaryDirectory() as folder:
        plan = sp.plan(
            program, options.mesh, topology=str(TOPOLOGY), execution="eager"
        )
        counts = {k: n for k, n in plan.summary["collectives"].items() if n}
        print(f"{plan}\ncollectives: {counts}")
        ranks = math.prod(plan.mesh.values())
        mp.spawn(
            run_rank,
            (options, program, plan.to_json(), os.path.join(folder, "rendezvous")),
            nprocs=ranks,
        )


if __name__ == "__main__":
    main()
