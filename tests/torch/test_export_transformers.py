"""Models of transformers as they come: static caches, experts, checkpointing.

The exported programs return the results of the models. $SHARDPROP_PACKAGE is the
folder of the built package.
"""

import unittest

import running.package  # noqa: F401
import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # noqa: F401
from models.static_cache import WithStaticCache
from torch.utils.checkpoint import checkpoint
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)
from transformers.integrations.executorch import (
    TorchExportableModuleWithStaticCache,
)

import shardprop as sp
import shardprop.torch
from shardprop.torch.exporting import program

SIZES = dict(
    vocab_size=96,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
)


def llama():
    torch.manual_seed(0)
    config = LlamaConfig(**SIZES)
    config._attn_implementation = "eager"
    return LlamaForCausalLM(config).eval()


def with_registered_cache():
    """Its cache's tensors are buffers too."""
    model = llama()
    model.config.use_cache = True
    model.generation_config = GenerationConfig(
        use_cache=True,
        cache_implementation="static",
        max_length=16,
        cache_config={"batch_size": 1, "max_cache_len": 16},
    )
    model = TorchExportableModuleWithStaticCache(model, batch_size=1, max_cache_len=16)
    return model, (), {"input_ids": torch.tensor([[5]]), "cache_position": torch.tensor([0])}


def with_own_cache():
    """Its cache is an object that no module knows."""
    return WithStaticCache(llama(), 16), (torch.tensor([[5]]), torch.tensor([[0]])), {}


def written(exported):
    """Names of the buffers that a program writes."""
    return set(exported.graph_signature.buffers_to_mutate.values())


class OneRank(unittest.TestCase):
    """A test case that runs planned modules on a mesh of one rank."""

    @classmethod
    def setUpClass(cls):
        dist.init_process_group("fake", rank=0, world_size=1)
        cls.addClassCleanup(dist.destroy_process_group)
        cls.mesh = dist.init_device_mesh("cpu", (1,), mesh_dim_names=("one",))

    def parallelized(self, exported):
        plan = sp.plan(exported, "one=1", execution="eager", progress=False)
        return sp.torch.parallelize(exported, plan, self.mesh)


class StaticCaches(OneRank):
    def exported(self, make):
        model, args, kwargs = make()
        exported = sp.torch.export(model, args, kwargs, device="cpu")
        # The model's own cache is as it was.
        cache = getattr(model, "cache", None) or model.static_cache
        self.assertEqual(cache.layers[0].keys.abs().sum(), 0)
        # A factory's tensors are of the meta device.
        with torch.device("meta"):
            example = program.Example(*make())
        on_meta = program.export_program(lambda: example, training=False)
        self.assertEqual(written(on_meta), written(exported))
        return model, exported

    def decode(self, make, names, call):
        """Tokens one by one, of the planned module and of the model."""
        model, exported = self.exported(make)
        self.assertEqual(written(exported), names)
        module = self.parallelized(exported)
        tensors = dict(model.named_buffers(remove_duplicate=False))
        tensors.update(model.named_parameters(remove_duplicate=False))
        names = [n for n, _ in (*module.named_parameters(), *module.named_buffers())]
        given = {name: tensors[name] for name in names if name in tensors}
        self.assertEqual(sp.torch.load_weights(module, given), [])
        for place, token in enumerate([5, 17, 3, 60]):
            given = torch.tensor([[token]]), place
            with torch.no_grad():
                wanted = call(model, *given)
            mine = call(module, *given)
            torch.testing.assert_close(mine.full_tensor(), wanted)

    def test_registered_buffers(self):
        names = {
            f"{kind}_{layer}"
            for kind in ("key_cache", "value_cache", "cumulative_length")
            for layer in range(2)
        }
        self.decode(
            with_registered_cache,
            names,
            lambda model, ids, place: model(
                input_ids=ids, cache_position=torch.tensor([place])
            ),
        )

    def test_tensors_of_an_object(self):
        names = {
            f"cache_layers_{layer}_{kind}"
            for kind in ("keys", "values", "cumulative_length")
            for layer in range(2)
        }
        self.decode(
            with_own_cache,
            names,
            lambda model, ids, place: model(ids, torch.tensor([[place]])),
        )

    def test_a_tensor_that_is_given_twice_is_two_inputs(self):
        class Model(torch.nn.Module):
            def forward(self, ids, labels):
                return 2 * ids + labels

        x = torch.ones(2, 4)
        exported = sp.torch.export(Model(), (x, x), device="cpu")
        module = self.parallelized(exported)
        found = module(x, 5 * x).full_tensor()
        torch.testing.assert_close(found, 7 * x)

    def test_constants_that_are_read_keep_their_values(self):
        class Table:
            def __init__(self):
                self.rows = [torch.arange(4.0), torch.ones(4)]

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = Table()

            def forward(self, x):
                return x * self.table.rows[0] + self.table.rows[1]

        exported = sp.torch.export(Model(), (torch.ones(2, 4),), device="cpu")
        module = self.parallelized(exported)
        found = module(torch.ones(2, 4)).full_tensor()
        torch.testing.assert_close(found, (torch.arange(4.0) + 1).expand(2, 4))


def experts(kind):
    torch.manual_seed(0)
    if kind == "mixtral":
        config = MixtralConfig(**SIZES, num_local_experts=4, use_cache=False)
        return MixtralForCausalLM(config)
    config = Qwen3MoeConfig(
        **SIZES,
        head_dim=8,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=24,
        use_cache=False,
    )
    return Qwen3MoeForCausalLM(config)


class Experts(OneRank):
    def check(self, kind):
        model = experts(kind)
        self.assertEqual(model.config._experts_implementation, "grouped_mm")
        ids = torch.randint(0, 96, (4, 16))
        exported = sp.torch.export(
            model, kwargs={"input_ids": ids, "labels": ids}, mode="train", device="cpu"
        )
        graph = sp.load_graph(exported)
        self.assertIn("aten._grouped_mm.default", graph.operators)
        self.assertFalse([op for op in graph.operators if op.startswith("transformers")])
        module = self.parallelized(exported)
        sp.torch.load_weights(module, model)
        loss = module(input_ids=ids, labels=ids).loss
        wanted = model(input_ids=ids, labels=ids).loss
        wanted.backward()
        torch.testing.assert_close(loss.item(), wanted.item())
        for name, value in model.named_parameters():
            found = module.get_parameter(name).grad
            torch.testing.assert_close(found.full_tensor(), value.grad, msg=name)

    def test_mixtral(self):
        self.check("mixtral")

    def test_qwen3_moe(self):
        self.check("qwen3_moe")


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


class Blocks(torch.nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))
        self.reentrant = reentrant

    def forward(self, x):
        for block in self.blocks[:2]:
            if self.reentrant is None:
                x = block(x)
            else:
                x = checkpoint(block, x, use_reentrant=self.reentrant)
        return self.blocks[2](x).square().mean()


class Checkpoints(unittest.TestCase):
    def graph_of(self, model, mode="train", **kwargs):
        args = () if kwargs else (torch.zeros(4, 8, requires_grad=True),)
        return sp.load_graph(
            sp.torch.export(model, args, kwargs, mode=mode, device="cpu")
        )

    def test_regions_are_counted_in_a_note(self):
        plain = self.graph_of(Blocks(None))
        self.assertEqual(plain.notes, [])
        for reentrant in (True, False):
            graph = self.graph_of(Blocks(reentrant))
            self.assertEqual(
                graph.notes,
                [
                    "the model checkpoints 2 regions of 12 operators, which run again "
                    "with --recompute model, and with auto if that is cheapest in the "
                    "memory limit"
                ],
            )
            # The program is the one without.
            self.assertEqual(graph.hash, plain.hash)

    def test_inference_keeps_nothing(self):
        self.assertEqual(self.graph_of(Blocks(False), mode="infer").notes, [])

    def test_gradient_checkpointing_enable(self):
        model = LlamaForCausalLM(LlamaConfig(**SIZES, use_cache=False))
        ids = torch.zeros(2, 8, dtype=torch.int64)
        call = {"input_ids": ids, "labels": ids}
        self.assertEqual(self.graph_of(model, **call).notes, [])
        model.gradient_checkpointing_enable()
        (note,) = self.graph_of(model, **call).notes
        self.assertIn("the model checkpoints 2 regions of ", note)


if __name__ == "__main__":
    unittest.main()
