"""The styles that `shardprop emit --as tp-plan` writes run in PyTorch and in
Hugging Face: a tiny Llama on processes over gloo has the logits and gradients of
the same model on one process."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import torch

from running.ranks import run_ranks

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAPH = ROOT / "examples/graphs/tiny/llama3_train.json.gz"
# Compute and memory are expensive and sending is cheap, so plans are full of shards.
TOPOLOGY = ROOT / "examples/topologies/dear-compute.toml"

ATTENTION = "model.layers.*.self_attn."
# The matmul of q reads the full weight, which is stored in shards.
GATHERED_Q = [
    f"stored:{ATTENTION}q_proj.weight=S(0)",
    f"used:{ATTENTION}q_proj.weight=R",
    *(f"used:{ATTENTION}{name}_proj.weight=S(0)" for name in "kv"),
    f"used:{ATTENTION}o_proj.weight=S(1)",
]

# (name, ranks, flags of emit). Two ranks cannot share the 3 heads of keys.
PLANS = [
    ("megatron", 3, ["--recipe", "megatron=tp"]),
    ("uneven heads", 2, ["--recipe", "megatron=tp"]),
    ("free", 2, []),
    ("gathered q", 2, [word for pin in GATHERED_Q for word in ("--pin", pin)]),
]


def emitted(folder, ranks, flags):
    subprocess.run(
        [os.environ["SHARDPROP_BIN"], "emit", GRAPH, "--mesh", f"tp={ranks}",
         "--topology", TOPOLOGY, "--work-limit", "20000000", *flags,
         "--as", "tp-plan", "-o", folder],
        check=True, stdout=subprocess.DEVNULL, timeout=600)
    return json.loads((pathlib.Path(folder) / "tp_plan.json").read_text())


def small_llama():
    """The model of the graph, with random weights."""
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=30, hidden_size=24, intermediate_size=36, num_hidden_layers=2,
        num_attention_heads=6, num_key_value_heads=3, head_dim=8)
    return transformers.LlamaForCausalLM(config).eval()


def step(model):
    """The logits, and the gradients by name, full on every rank."""
    def full(tensor):
        has_shards = isinstance(tensor, torch.distributed.tensor.DTensor)
        return (tensor.full_tensor() if has_shards else tensor).detach()

    ids = torch.arange(24).view(4, 6)
    out = model(ids, labels=ids, use_cache=False)
    out.loss.backward()
    return full(out.logits), {
        name: full(weight.grad) for name, weight in model.named_parameters()}


def run_pytorch(ranks, modules):
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, RowwiseParallel, parallelize_module)

    known = {"ColwiseParallel": ColwiseParallel, "RowwiseParallel": RowwiseParallel,
             "Replicate": Replicate}
    mesh = torch.distributed.device_mesh.init_device_mesh(
        "cpu", (ranks,), mesh_dim_names=("tp",))
    model = small_llama()
    styles = {name: eval(style, {"__builtins__": {}}, known)
              for name, style in modules.items()}
    missing = set(styles) - {name for name, _ in model.named_modules()}
    assert not missing, missing
    return step(parallelize_module(model, mesh, styles))


def run_transformers(ranks, tp_plan, folder):
    import transformers
    from transformers.distributed import DistributedConfig

    config = DistributedConfig(tp_size=ranks, tp_plan=tp_plan)
    model = transformers.LlamaForCausalLM.from_pretrained(
        folder, distributed_config=config)
    return step(model.eval())


class EmittedStyles(unittest.TestCase):
    def check_same(self, found, expected):
        for logits, gradients in found:
            torch.testing.assert_close(logits, expected[0], rtol=1e-4, atol=1e-5)
            self.assertEqual(set(gradients), set(expected[1]))
            for name, gradient in gradients.items():
                with self.subTest(gradient=name):
                    torch.testing.assert_close(
                        gradient, expected[1][name], rtol=1e-4, atol=1e-5)

    def test_pytorch_runs_them(self):
        expected = step(small_llama())
        for name, ranks, flags in PLANS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                said = emitted(folder, ranks, flags)["parallelize_module"]
                self.check_same(run_ranks(ranks, run_pytorch, ranks, said), expected)

    def test_hugging_face_follows_them(self):
        """Each linear layer and embedding has the emitted style, and none that of the
        model's own plan."""
        from transformers.distributed import DistributedConfig
        from transformers.distributed.tensor_parallel import ALL_PARALLEL_STYLES

        for name, ranks, flags in PLANS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                said = emitted(folder, ranks, flags)["tp_plan"]
                self.assertLessEqual(set(said.values()),
                                     set(ALL_PARALLEL_STYLES.keys()))
                model = small_llama()
                resolved, _, _ = model._resolve_parallel_plans(
                    DistributedConfig(tp_size=ranks, tp_plan=said))
                # A parameter has the style of its module.
                parameters = dict(model.named_parameters())
                for full_name, style in resolved.items():
                    module = full_name
                    if full_name in parameters:
                        module = full_name.rpartition(".")[0]
                    starred = re.sub(r"\.\d+\.", ".*.", module)
                    self.assertEqual(said.get(starred), style, full_name)

    @unittest.skipUnless(importlib.util.find_spec("accelerate"),
                         "Hugging Face shards models with accelerate only")
    def test_hugging_face_runs_them(self):
        expected = step(small_llama())
        for name, ranks, flags in PLANS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                said = emitted(folder, ranks, flags)["tp_plan"]
                small_llama().save_pretrained(f"{folder}/model")
                self.check_same(
                    run_ranks(ranks, run_transformers, ranks, said,
                              f"{folder}/model"), expected)


if __name__ == "__main__":
    unittest.main()
