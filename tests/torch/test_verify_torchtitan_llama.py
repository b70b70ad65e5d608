"""verify() finds nothing wrong in the debug Llama that torchtitan parallelizes.

Configuration, model, parallelize function and loss are those of torchtitan 0.3.0. The
test is skipped without this release or without torch 2.14. SHARDPROP_TORCHTITAN may name
the folder that has torchtitan.
"""

import contextlib
import dataclasses
import logging
import os
import sys
import unittest

sys.path.insert(0, os.environ.get("SHARDPROP_PACKAGE", ""))
# torch looks for spmd_types, which torchtitan needs, when it is imported.
if os.environ.get("SHARDPROP_TORCHTITAN"):
    sys.path.insert(0, os.environ["SHARDPROP_TORCHTITAN"])

import torch
import torch.distributed as dist
import torchtitan_on_cpu

import shardprop as sp

TOKENS, WORDS = 16, 2048


class Llama:
    """Llama is torchtitan's debug model with the degrees of its parallelism.

    The trainer's configuration needs data sets. This class therefore sets what the
    trainer sets in the configuration of the model.
    """

    def __init__(self, data=1, tensor=1, layers=2):
        from torchtitan.config import ParallelismConfig, TrainingConfig
        from torchtitan.distributed.activation_checkpoint import SelectiveAC
        from torchtitan.models.llama3 import model_registry
        from torchtitan.models.llama3.sharding import set_llama3_sharding_config

        self.spec = model_registry("debugmodel")
        self.data = data
        self.parallelism = ParallelismConfig(
            data_parallel_shard_degree=data, tensor_parallel_degree=tensor
        )
        self.training = TrainingConfig(mixed_precision_param="float32")
        self.checkpoints = SelectiveAC.Config()
        model = self.spec.model
        model.layers = model.layers[:layers]
        for layer in model.layers:
            layer.attention.rope = dataclasses.replace(
                layer.attention.rope, max_seq_len=TOKENS
            )
        set_llama3_sharding_config(
            model, enable_sp=self.parallelism.enable_sequence_parallel
        )

    def build(self):
        model = self.spec.model.build()
        with torch.no_grad():
            model.init_weights(buffer_device=None)
        return model

    def parallelize(self, model, mesh):
        from torchtitan.config import CompileConfig
        from torchtitan.distributed import ParallelDims
        from torchtitan.distributed.utils import get_spmd_context

        dims = ParallelDims.from_config(self.parallelism, mesh.size())
        dims.build_mesh()
        model = self.spec.parallelize_fn(
            model,
            parallel_dims=dims,
            training=self.training,
            parallelism=self.parallelism,
            compile_config=CompileConfig(),
            ac_config=self.checkpoints,
            dump_folder="",
        )
        model.context = get_spmd_context(parallel_dims=dims)
        model.dims = dims
        return model

    def step(self, model, given):
        """Runs the trainer's forward and backward pass, and AdamW."""
        from torchtitan.components.loss import CrossEntropyLoss
        from torchtitan.distributed.spmd_types import annotate_input_spmd_types

        inputs, labels = given
        count = torch.tensor(float(labels.numel()))
        context = getattr(model, "context", contextlib.nullcontext)
        if dist.get_world_size() > 1:
            part = dist.get_rank() * self.data // dist.get_world_size()
            inputs, labels = (t.chunk(self.data)[part] for t in (inputs, labels))
        positions = torch.arange(TOKENS).expand(inputs.shape)
        more = {
            "positions": positions,
            "attention_masks": model.get_attention_masks(positions=positions),
        }
        if hasattr(model, "dims"):
            inputs, labels, more = annotate_input_spmd_types(
                model.dims, inputs, labels, more
            )
        loss_of = CrossEntropyLoss(CrossEntropyLoss.Config(global_vocab_size=WORDS))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        with context():
            loss, _ = loss_of(model(inputs, **more), labels, count)
            loss.backward()
        optimizer.step()
        return loss

    def batch(self):
        tokens = torch.randint(0, WORDS, (4, TOKENS + 1))
        return tokens[:, :-1], tokens[:, 1:]


@unittest.skipIf(torchtitan_on_cpu.missing, f"SKIPPED: {torchtitan_on_cpu.missing}")
class DebugModel(unittest.TestCase):
    def setUp(self):
        logging.disable(logging.WARNING)
        self.addCleanup(logging.disable, logging.NOTSET)

    @staticmethod
    def report(llama, mesh):
        from torchtitan.distributed.utils import set_spmd_backend

        set_spmd_backend(llama.parallelism.spmd_backend)
        return sp.torch.verify(
            llama.build, llama.parallelize, llama.step, llama.batch, mesh
        )

    def passes(self, mesh, **sizes):
        report = self.report(Llama(**sizes), mesh)
        self.assertTrue(report.ok, f"{report}")
        self.assertGreater(report.compared, 100)
        left = [v.title for v in report.values if v.status == "not compared"]
        self.assertEqual(left, [])
        return report

    def test_tensor_parallel(self):
        self.passes("tp=2", tensor=2)

    def test_fully_shard(self):
        self.passes("dp=2", data=2)

    def test_both(self):
        self.passes("dp=2,tp=2", data=2, tensor=2)

    def test_lost_reduction(self):
        """A norm of sharded tokens whose weight is declared to need no reduction."""
        import spmd_types
        from torchtitan.models.common.decoder_sharding import (
            dense_param_placement,
            norm_config,
        )

        llama = Llama(tensor=2)
        wrong = norm_config(enable_sp=True)
        wrong.state_shardings["weight"] = dense_param_placement(tp=spmd_types.I)
        llama.spec.model.layers[1].ffn_norm.sharding_config = wrong
        report = self.report(llama, "tp=2")
        first = report.first
        self.assertIsNotNone(first, f"{report}")
        self.assertEqual(
            (first.kind, first.name), ("gradient", "layers.1.ffn_norm.weight"), f"{report}"
        )


if __name__ == "__main__":
    if "--only" in sys.argv:
        sizes = dict(part.split("=") for part in sys.argv[2].split(","))
        case = DebugModel()
        case.setUp()
        print(case.passes(sys.argv[2], data=int(sizes.get("dp", 1)),
                          tensor=int(sizes.get("tp", 1))))
        sys.exit()
    unittest.main()
