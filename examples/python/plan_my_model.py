#!/usr/bin/env python3
"""Plans a Hugging Face model of yours in five lines; cell by cell, or as a whole.

  python examples/python/plan_my_model.py [MODEL] [--mesh dp=8,tp=8]
      [--batch 8] [--sequence 2048] [--memory 80GiB] [-o plan.json]

MODEL is what from_pretrained() takes, a folder with a config.json among it; only
the configuration is read. Without one a Llama of eight layers is planned, so that
nothing is downloaded. Needs torch 2.12 to 2.14 and transformers; a laptop will do.
"""

# %% Which model, on which machine
import argparse

import torch
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig

import shardprop as sp
import shardprop.torch

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("model", nargs="?", metavar="MODEL")
parser.add_argument("--mesh", default="dp=8,tp=8")
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--sequence", type=int, default=2048)
parser.add_argument("--memory", default="80GiB")
parser.add_argument("-o", "--output", metavar="FILE")
options, _ = parser.parse_known_args()  # a notebook has arguments of its own
config = (
    AutoConfig.from_pretrained(options.model)
    if options.model
    else LlamaConfig(num_hidden_layers=8, dtype="bfloat16")
)
config.use_cache = False  # nothing is generated

# %% Five lines: model and inputs on the meta device, where nothing has a value
with torch.device("meta"):
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    ids = torch.zeros(options.batch, options.sequence, dtype=torch.int64)
inputs = {"input_ids": ids, "labels": ids}
exported = sp.torch.export(model, kwargs=inputs, mode="train")
plan = sp.plan(
    exported, options.mesh, optimizer="adamw", memory=options.memory, time_limit=60
)

# %% What came out; a notebook shows `plan` by itself
print(plan.explain())

# %% Where a weight lies, and what moves most
if plan.objective_us is not None:
    names = [name for name in plan.values if name.endswith("weight")]
    for name in names[:5]:
        print(f"{name:45} {','.join(plan.placements(name))}")
    steps = [step for copy in plan.copies for step in copy["steps"]]
    for step in sorted(steps, key=lambda step: -step["bytes_per_rank"])[:5]:
        print(f"{step['collective']:15} {step['bytes_per_rank'] / 1e6:10.1f} MB")
if options.output:
    plan.save(options.output)
