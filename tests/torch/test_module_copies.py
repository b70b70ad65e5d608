"""Planned modules are copied, pickled, and named as the model is.

One process is a rank of a fake process group, or four are ranks of gloo.
$SHARDPROP_PACKAGE is the folder of the built package.
"""

import copy
import io
import pathlib
import pickle
import tempfile
import unittest
import zipfile

import running.package  # noqa: F401
import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # noqa: F401
from running.ranks import run_ranks
from running.scaled import Scaled
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import shardprop as sp
import shardprop.torch


PINS = {"up.weight": "R,S(0)", "down.weight": "S(0)@1,S(0)@0"}


def planned():
    torch.manual_seed(0)
    model = Scaled()
    x = torch.randn(8, 6)
    program = sp.torch.to_json(sp.torch.export(model, (x,), mode="train"))
    plan = sp.plan(program, "dp=2,tp=2", pins=PINS, execution="eager", progress=False)
    return model, x, program, plan


def run_copies(program, plan, state, x):
    """Losses of a module and of its copies, and how far an average of it is."""
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    module = sp.torch.parallelize(program, plan, mesh)
    sp.torch.load_weights(module, state)
    average = AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(0.5))
    copied = copy.deepcopy(module)
    written = io.BytesIO()
    torch.save(module, written)
    written.seek(0)
    read = torch.load(written, weights_only=False)
    average.update_parameters(module)
    losses = {}
    for name, one in (("module", module), ("copied", copied), ("read", read)):
        losses[name] = [one(x).item(), one(x).item()]
    # A change of one leaves the others as they are.
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    average.update_parameters(module)
    losses["zeroed"] = module(x).item()
    losses["copied after"] = copied(x).item()
    halves = {
        name: value.full_tensor()
        for name, value in average.module.named_parameters()
    }
    grads = {
        name: value.grad.full_tensor() for name, value in read.named_parameters()
    }
    return losses, halves, grads


class Copies(unittest.TestCase):
    def test_they_run_and_are_apart(self):
        model, x, program, plan = planned()
        state = {name: value.detach() for name, value in model.state_dict().items()}
        want = model(x)
        want.backward()
        for losses, halves, grads in run_ranks(4, run_copies, program, plan, state, x):
            for name in ("module", "copied", "read"):
                for loss in losses[name]:
                    self.assertAlmostEqual(loss, want.item(), places=5, msg=name)
            self.assertEqual(losses["zeroed"], 0)
            self.assertAlmostEqual(losses["copied after"], want.item(), places=5)
            for name, value in model.named_parameters():
                torch.testing.assert_close(halves[name], value.detach() / 2)
                torch.testing.assert_close(grads[name], 2 * value.grad)


class Odd(torch.nn.Module):
    """Named as attributes of a planned module, or of its class, are."""

    def __init__(self):
        super().__init__()
        for name in ("plan", "device_mesh", "program", "_plan", "_index", "placements"):
            self.add_module(name, torch.nn.Linear(4, 4, bias=False))
        self.seed = torch.nn.Parameter(torch.ones(4))
        self.register_buffer("input_metas", torch.ones(4))

    def forward(self, x):
        for name, layer in self.named_children():
            x = torch.relu(layer(x)) + self.seed * self.input_metas
        return x.square().mean()


class OneProcess(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        dist.init_process_group("fake", rank=1, world_size=4)
        cls.addClassCleanup(dist.destroy_process_group)
        cls.mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))

    def test_names_of_the_model_come_first(self):
        exported = sp.torch.export(Odd(), (torch.ones(4, 4),), mode="train")
        plan = sp.plan(exported, "dp=2,tp=2", execution="eager", progress=False)
        module = sp.torch.parallelize(exported, plan, self.mesh)
        self.assertEqual(sp.torch.load_weights(module, Odd()), [])
        self.assertEqual(module.state_dict().keys(), Odd().state_dict().keys())
        for name in ("plan", "device_mesh", "program"):
            self.assertIs(getattr(module, name), module.get_submodule(name))
        self.assertIs(module.seed, module.get_parameter("seed"))
        self.assertIs(module.input_metas, module.get_buffer("input_metas"))
        module(torch.ones(4, 4))
        self.assertIsNotNone(module.seed.grad)

    def test_own_names_are_there_otherwise(self):
        _, x, program, plan = planned()
        module = sp.torch.parallelize(program, plan, self.mesh)
        self.assertIs(module.plan, plan)
        self.assertIs(module.device_mesh, self.mesh)
        self.assertEqual(module.input_metas, [(torch.Size([8, 6]), torch.float32)])
        self.assertIsInstance(module.program, torch.export.ExportedProgram)
        self.assertEqual(module.seed, 0)
        module(x)
        self.assertEqual(module.seed, 1)
        module.seed = 7
        module(x)
        self.assertEqual(module.seed, 8)
        with self.assertRaises(AttributeError):
            module.no_such_name

    def test_a_pickled_module_keeps_its_program(self):
        _, x, program, plan = planned()
        module = sp.torch.parallelize(program, plan, self.mesh)
        again = pickle.loads(pickle.dumps(module))
        self.assertEqual(again.plan.data, plan.data)
        self.assertEqual(again.state_dict().keys(), module.state_dict().keys())
        for read, own in zip(again.state_dict().values(), module.state_dict().values()):
            self.assertEqual(read.placements, own.placements)
        with sp.torch.count(plan) as counted:
            again(x)
        self.assertTrue(counted.ok, counted)

    def test_archives_in_both_layouts(self):
        """PyTorch before 2.8 wrote the program flat."""
        _, x, program, plan = planned()
        with tempfile.TemporaryDirectory() as folder:
            for name, record in (
                ("legacy", "serialized_exported_program.json"),
                ("rooted", "rooted/serialized_exported_program.json"),
                ("today", "today/models/model.json"),
                ("named", "named/models/other.json"),
            ):
                path = pathlib.Path(folder, f"{name}.pt2")
                with zipfile.ZipFile(path, "w") as archive:
                    archive.writestr(record, program)
                for source in (path, path.read_bytes()):
                    with self.subTest(layout=name, source=type(source).__name__):
                        module = sp.torch.parallelize(source, plan, self.mesh)
                        # It knows forward()'s argument by its name.
                        module(x=x)


if __name__ == "__main__":
    unittest.main()
