"""Plans that run: shardprop.torch on processes of gloo.

Every example trains on as many processes as its mesh has ranks and compares
itself with one process. $SHARDPROP_PACKAGE is the folder of the built package.
"""

import collections
import gzip
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from running.package import PACKAGE
from running.ranks import run_ranks
import torch
import torch._dynamo

import shardprop as sp
import shardprop.torch
from shardprop.torch import _calling

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run_example(*flags):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "examples/python/train_tiny_llama.py", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "PYTHONPATH": PACKAGE},
    )


class Training(unittest.TestCase):
    def check(self, *flags):
        done = run_example(*flags)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        steps = re.findall(r"loss ([\d.]+), one process ([\d.]+)", done.stdout)
        self.assertGreaterEqual(len(steps), 3)
        for mine, theirs in steps:
            self.assertAlmostEqual(float(mine), float(theirs), places=3)
        # A plan without collectives would prove nothing.
        self.assertRegex(done.stdout, r"'all_reduce': [1-9]")

    def test_two_by_two(self):
        self.check("--steps", "3", "--mesh", "dp=2,tp=2")

    def test_uneven(self):
        self.check("--steps", "3", "--mesh", "tp=3")


class Weighted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.inner(x).square().mean()


class Carrying(torch.nn.Module):
    """Has tensors that no state dict contains."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
        self.register_buffer("scale", torch.arange(4.0), persistent=False)
        self.shift = torch.tensor([2.0, 0.0, 1.0, 5.0])

    def forward(self, x):
        return self.inner(x) * torch.tensor([1.0, 2.0, 3.0, 4.0]) * self.scale + (
            self.shift
        )


def run_carrying(path, state, x):
    """Returns the names that load_weights() lacked and the result, for each way
    to a program."""
    mesh = torch.distributed.device_mesh.init_device_mesh(
        "cpu", (2,), mesh_dim_names=("d0",)
    )
    exported = torch.export.export(Carrying(), (x,))
    loaded = torch.export.export(Carrying(), (x,))
    loaded.state_dict.update(state)
    found = {}
    for name, program, weights in (
        ("a file", path, state),
        ("an ExportedProgram", exported, state),
        ("weights of an ExportedProgram", sp.load_graph(exported), loaded),
        ("a graph alone", sp.load_graph(exported), state),
    ):
        plan = sp.plan(program, "d0=2", execution="eager", progress=False)
        module = sp.torch.parallelize(program, plan, mesh)
        missing = sp.torch.load_weights(module, weights, strict=False)
        found[name] = missing, module(x).full_tensor()
    return found


class Constants(unittest.TestCase):
    def test_values_that_no_state_dict_has_come_from_the_program(self):
        x = torch.randn(8, 4)
        model = Carrying()
        state = {k: v.detach() for k, v in model.state_dict().items()}
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/carrying.pt2"
            torch.export.save(torch.export.export(model, (x,)), path)
            ranks = run_ranks(2, run_carrying, path, state, x)
        for found in ranks:
            # A graph has no values of weights, and load_weights() reports that.
            missing, _ = found.pop("a graph alone")
            self.assertEqual(len(missing), 3, missing)
            self.assertIn("scale", missing)
            for name, (missing, result) in found.items():
                with self.subTest(source=name):
                    self.assertEqual(missing, [])
                    torch.testing.assert_close(result, model(x).detach())


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(16, 32)
        self.down = torch.nn.Linear(32, 16)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x))).square().mean()


def run_planned(program, plan_json, state, x):
    """Trains as the plan states, without a word on compilation. Also returns the
    errors of contrary requests."""
    plan = sp.Plan.from_json(plan_json)
    mesh = torch.distributed.device_mesh.init_device_mesh(
        "cpu", (2,), mesh_dim_names=("d0",)
    )
    is_compiled = plan.data["options"]["execution"] == "compiled"
    refused = ""
    try:
        sp.torch.parallelize(program, plan, mesh, compile=not is_compiled)
    except sp.Error as error:
        refused = str(error)
    module = sp.torch.parallelize(program, plan, mesh)
    sp.torch.load_weights(module, state)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        losses.append(module(x).item())
        optimizer.step()
    return losses, torch._dynamo.utils.counters["stats"]["unique_graphs"], refused


def run_plan_calls(program):
    mesh = torch.distributed.device_mesh.init_device_mesh(
        "cpu", (2,), mesh_dim_names=("d0",)
    )
    stated = []
    for options in ({}, {"compile": True}, {"compile": False}):
        plan = sp.torch.plan(program, mesh, progress=False, **options)
        stated.append(plan.data["options"]["execution"])
    try:
        sp.torch.plan(program, mesh, compile=True, execution="eager")
    except sp.Error as error:
        stated.append(error.code)
    return stated


class Compiled(unittest.TestCase):
    def test_a_program_runs_as_its_plan_states(self):
        torch.manual_seed(0)
        model, x = Mlp(), torch.randn(8, 16)
        exported = sp.torch.export(model, (x,), mode="train", device="cpu")
        program = sp.torch.to_json(exported)
        state = {k: v.detach() for k, v in model.state_dict().items()}
        found = {}
        for execution in ("eager", "compiled"):
            plan = sp.plan(
                program,
                "d0=2",
                topology=str(ROOT / "examples/topologies/dear-compute.toml"),
                execution=execution,
                progress=False,
            )
            self.assertGreater(sum(plan.summary["collectives"].values()), 0)
            found[execution] = run_ranks(
                2, run_planned, program, plan.to_json(), state, x
            )
        [(wanted, graphs, refused), _] = found["eager"]
        self.assertEqual(graphs, 0)
        self.assertIn("the plan is for eager execution", refused)
        for losses, graphs, refused in found["compiled"]:
            self.assertGreaterEqual(graphs, 1)
            self.assertIn("the plan is for compiled execution", refused)
            self.assertLess(losses[-1], losses[0])
            for mine, theirs in zip(losses, wanted, strict=True):
                self.assertAlmostEqual(mine, theirs, delta=1e-5)

    def test_a_plan_of_a_mesh_is_for_eager_execution_unless_it_is_compiled(self):
        exported = sp.torch.export(Mlp(), (torch.randn(8, 16),), device="cpu")
        for stated in run_ranks(2, run_plan_calls, sp.torch.to_json(exported)):
            self.assertEqual(stated, ["eager", "compiled", "eager", "SP0001"])


Returned = collections.namedtuple("Returned", "count nothing loss logits")


class Returning(torch.nn.Module):
    """Returns its loss as one of several outputs, some of them not tensors, and
    writes to an input."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 4)

    def forward(self, batch, mask, seen, times=1, *, name):
        logits = self.inner(batch["x"]) * times
        seen.add_(batch["x"].sum(0))
        loss = (logits - batch["y"]).square().mean()
        return Returned(3, None, loss, {"logits": logits})


def exported_returning(model, batch):
    args, kwargs = (batch, None, torch.zeros(8), 2), {"name": "a"}
    return sp.torch.export(model, args, kwargs, mode="train", loss_index=2)


def returned(path, model, batch):
    """Returns the structure, the loss and logits, the weight's gradient and the
    written input, for each way to a program and to the input."""
    mesh = torch.distributed.device_mesh.init_device_mesh(
        "cpu", (2,), mesh_dim_names=("d0",)
    )
    exported = exported_returning(model, batch)
    found = []
    for program in (exported, path):
        for whole in (True, False):
            plan = sp.plan(
                program,
                "d0=2",
                pins={"batch_x": "S(0)"},
                execution="eager",
                progress=False,
            )
            module = sp.torch.parallelize(program, plan, mesh)
            sp.torch.load_weights(module, model)
            seen = torch.zeros(8)
            if not whole:
                seen = torch.distributed.tensor.distribute_tensor(
                    seen, mesh, [torch.distributed.tensor.Shard(0)]
                )
            result = module(batch, None, seen, name="a")
            count, nothing, loss, logits = result
            found.append(
                (
                    type(result).__name__,
                    count,
                    nothing,
                    loss.item(),
                    logits["logits"].full_tensor(),
                    module.inner.weight.grad.full_tensor(),
                    seen if whole else seen.full_tensor(),
                )
            )
    return found


def run_frozen(model, x):
    module = planned(model, (x,), {}, mode="train")
    module(x)
    return {
        name: (p.requires_grad, p.grad is not None)
        for name, p in module.named_parameters()
    }


class Frozen(unittest.TestCase):
    def test_what_is_not_trained_needs_no_gradient(self):
        model = Mlp()
        model.up.requires_grad_(False)
        found, _ = run_ranks(2, run_frozen, model, torch.randn(4, 16))
        for name, (requires, has) in found.items():
            self.assertEqual((requires, has), (name.startswith("down"),) * 2, name)


class Structures(unittest.TestCase):
    def test_a_module_is_called_as_the_model_is(self):
        torch.manual_seed(0)
        model = Returning()
        batch = {"x": torch.randn(6, 8), "y": torch.randn(6, 4)}
        wanted = model(batch, None, torch.zeros(8), 2, name="a")
        wanted.loss.backward()
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/returning.json"
            program = sp.torch.to_json(exported_returning(model, batch))
            pathlib.Path(path).write_bytes(program)
            ranks = run_ranks(2, returned, path, model, batch)
        # A file has no name for the type.
        kinds = ["Returned", "Returned", "tuple", "tuple"]
        for found in ranks:
            for kind, result in zip(kinds, found, strict=True):
                self.assertEqual(result[:3], (kind, 3, None))
                self.assertAlmostEqual(result[3], wanted.loss.item(), places=5)
                for mine, theirs in zip(
                    result[4:],
                    (
                        wanted.logits["logits"],
                        model.inner.weight.grad,
                        batch["x"].sum(0),
                    ),
                    strict=True,
                ):
                    torch.testing.assert_close(mine, theirs.detach())


class Doubling(torch.nn.Module):
    def forward(self, x, *, times=2):
        return {"y": x * times, "times": times}


class Conventions(unittest.TestCase):
    def test_a_file_tells_how_its_program_is_called(self):
        x = torch.ones(2)
        exported = torch.export.export(Doubling(), (x,), {"times": 3})
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "doubling.pt2")
            torch.export.save(exported, path)
            written = path.read_bytes()
            text = sp.torch.to_json(exported)
            sources = [exported, path, written, text, gzip.compress(text)]
            for source in sources:
                found = _calling.of(source)
                self.assertEqual(found.tensors((x,), {"times": 3}), [x])
                self.assertEqual(found.structured([x]), {"y": x, "times": 3})
        self.assertIsNone(_calling.of(sp.load_graph(exported)))
        alone = _calling.flat(["x", "y"], 1)
        self.assertEqual(alone.tensors((x,), {"y": x}), [x, x])
        self.assertIs(alone.structured([x]), x)
        self.assertEqual(_calling.flat([], 2).structured([x, x]), (x, x))


def small_llama():
    import transformers
    from transformers.integrations import executorch

    executorch.register_dynamic_cache_export_support()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=32,
    )
    ids = torch.arange(16).view(2, 8)
    return transformers.LlamaForCausalLM(config).eval(), ids


def planned(model, args, kwargs, **options):
    mesh = torch.distributed.device_mesh.init_device_mesh(
        "cpu", (2,), mesh_dim_names=("d0",)
    )
    exported = sp.torch.export(model, args, kwargs, device="cpu", **options)
    plan = sp.plan(exported, "d0=2", execution="eager", progress=False)
    module = sp.torch.parallelize(exported, plan, mesh)
    sp.torch.load_weights(module, model)
    return module


def run_llama():
    """A training step, a prompt that leaves its cache, and a token on top of it."""
    model, ids = small_llama()
    train = {"labels": ids, "use_cache": False}
    trained = planned(model, (ids,), train, mode="train")
    loss = trained(ids, **train).loss
    prompt = planned(model, (ids,), {"use_cache": True})
    first = prompt(ids, use_cache=True)
    with torch.no_grad():
        cache = model(ids, use_cache=True).past_key_values
    token = ids[:, :1]
    more = planned(model, (token,), {"past_key_values": cache, "use_cache": True})
    # The cache that the plan made goes into the next one.
    second = more(token, past_key_values=first.past_key_values, use_cache=True)
    return (
        type(second).__name__,
        loss.item(),
        trained.lm_head.weight.grad.full_tensor(),
        first.logits.full_tensor(),
        second.logits.full_tensor(),
        second.past_key_values.layers[1].keys.full_tensor(),
    )


class Transformers(unittest.TestCase):
    def test_a_model_of_transformers_is_called_as_ever(self):
        model, ids = small_llama()
        with torch.no_grad():
            first = model(ids, use_cache=True)
            logits = first.logits
            second = model(ids[:, :1], past_key_values=first.past_key_values)
        model.train()
        loss = model(ids, labels=ids).loss
        loss.backward()
        wanted = (
            model.lm_head.weight.grad,
            logits,
            second.logits,
            second.past_key_values.layers[1].keys,
        )
        for kind, mine, *tensors in run_ranks(2, run_llama):
            self.assertEqual(kind, type(second).__name__)
            self.assertAlmostEqual(mine, loss.item(), places=5)
            for own, theirs in zip(tensors, wanted, strict=True):
                torch.testing.assert_close(own, theirs, rtol=1e-4, atol=1e-5)


class Export(unittest.TestCase):
    def test_the_model_stays_as_it_is(self):
        model = Weighted()
        weight = model.inner.weight
        before = weight.detach().clone()
        exported = sp.torch.export(model, (torch.randn(2, 8),), mode="train")
        self.assertIs(model.inner.weight, weight)
        self.assertTrue(torch.equal(before, weight))
        graph = sp.load_graph(exported)
        self.assertTrue(graph.has_backward)
        self.assertIn(("inner.weight", "parameter"), graph.inputs)
        self.assertEqual(sp.plan(exported, "dp=2").status, "optimal")

    def test_models_on_the_meta_device(self):
        with torch.device("meta"):
            model = Weighted()
            x = torch.empty(2, 8)
        self.assertGreater(len(sp.load_graph(sp.torch.export(model, (x,)))), 0)

    def test_what_cannot_be_exported_is_explained(self):
        class Branching(torch.nn.Module):
            def forward(self, x):
                return x + 1 if x.sum() > 0 else x

        with self.assertRaises(sp.torch.ExportError) as caught:
            sp.torch.export(Branching(), (torch.randn(4),))
        self.assertIn("depends on the data", caught.exception.message)
        self.assertIn("torch.where", caught.exception.help)
        # The message names the line of the model, not a line of torch.
        self.assertIn("in forward: return x + 1 if x.sum() > 0 else x", str(caught.exception))
        self.assertIn(__file__, str(caught.exception))
        with self.assertRaises(sp.torch.ExportError):
            sp.torch.export(Weighted(), (torch.randn(2, 8),), mode="training")

    def test_types_that_torch_cannot_look_into_are_explained(self):
        class Cache:
            pass

        class Caching(torch.nn.Module):
            def forward(self, x, cache=None):
                return x + 1, Cache()

        for args in ((torch.randn(4),), (torch.randn(4), Cache())):
            with self.assertRaises(sp.torch.ExportError) as caught:
                sp.torch.export(Caching(), args)
            self.assertIn("cannot look into", caught.exception.message)
            self.assertIn("use_cache=False", caught.exception.help)

    def test_sizes_that_values_tell_are_explained(self):
        class Transcript(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(4, 7)

            def forward(self, x, letters):
                chances = self.inner(x).log_softmax(-1)
                return torch.nn.functional.ctc_loss(chances, letters, (9, 9), (3, 3))

        args = torch.randn(9, 2, 4), torch.ones(2, 3, dtype=torch.int64)
        with self.assertRaises(sp.torch.ExportError) as caught:
            sp.torch.export(Transcript(), args, mode="train")
        self.assertIn("sizes that only values tell", caught.exception.message)
        self.assertIn("CTC", caught.exception.help)

    def test_functions_that_hide_parameters_are_refused(self):
        class Called(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, module):
                return module(x)

            @staticmethod
            def backward(ctx, dx):
                return dx, None

        class Hiding(Weighted):
            def forward(self, x):
                return Called.apply(x, self.inner).square().mean()

        with self.assertRaises(sp.torch.ExportError) as caught:
            sp.torch.export(Hiding(), (torch.randn(2, 8),), mode="train")
        self.assertIn("would hide", caught.exception.message)

    def test_a_loss_is_blamed_where_torch_blames_it_alone(self):
        class Doubled(torch.nn.Module):
            def forward(self, x):
                return 2 * x.sum()

        class Broken(torch.nn.Module):
            def forward(self, x):
                raise ValueError("the loss of this model is no scalar")

        x = torch.randn(4)
        with self.assertRaises(sp.torch.ExportError) as caught:
            sp.torch.export(Doubled(), (x,), mode="train")
        self.assertIn("depends on the parameters", caught.exception.message)
        with self.assertRaises(sp.torch.ExportError) as caught:
            sp.torch.export(Broken(), (x,), mode="train")
        self.assertEqual(
            caught.exception.message, "torch.export cannot export the model"
        )
        self.assertIn("of this model", caught.exception.notes[0])


if __name__ == "__main__":
    unittest.main()
