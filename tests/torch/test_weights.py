"""Fills a planned module with weights from sources of several kinds.

One process is a rank of a fake process group. $SHARDPROP_PACKAGE is the folder of
the built package.
"""

import json
import pathlib
import tempfile
import unittest

import running.package  # noqa: F401
import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # noqa: F401
from running.ranks import run_ranks
from running.scaled import Scaled
from safetensors.torch import save_file
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import shardprop as sp
import shardprop.torch

RANKS, RANK = 4, 2


def fill_from_others(exported, plans, state):
    """Tensors of a module that is filled from DTensors, by where these come from."""
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    modules = [
        sp.torch.parallelize(exported, sp.Plan.from_json(plan), mesh) for plan in plans
    ]
    sp.torch.load_weights(modules[0], state)
    line = dist.init_device_mesh("cpu", (4,), mesh_dim_names=("all",))
    sources = {
        "another planned module": modules[0],
        "its state dict": modules[0].state_dict(),
        "DTensors on another mesh": {
            name: distribute_tensor(value, line, [Shard(0) if value.ndim else Replicate()])
            for name, value in state.items()
        },
    }
    found = {}
    for name, source in sources.items():
        target = sp.torch.parallelize(exported, sp.Plan.from_json(plans[1]), mesh)
        missing = sp.torch.load_weights(target, source)
        assert missing == [], missing
        found[name] = {n: d.full_tensor() for n, d in target.state_dict().items()}
    return found


class Sources(unittest.TestCase):
    def test_distributed_tensors_are_redistributed(self):
        torch.manual_seed(0)
        model = Scaled()
        exported = sp.torch.export(model, (torch.randn(8, 6),), mode="train")
        program = sp.torch.to_json(exported)
        plans = [
            sp.plan(
                program, "dp=2,tp=2", pins=pins, execution="eager", progress=False
            ).to_json()
            for pins in (
                {"up.weight": "S(0),S(0)", "down.weight": "S(1)@1,S(1)@0"},
                {"up.weight": "S(1),R", "down.weight": "R,S(0)"},
            )
        ]
        state = {name: value.detach() for name, value in model.state_dict().items()}
        for found in run_ranks(4, fill_from_others, program, plans, state):
            for source, held in found.items():
                with self.subTest(source=source):
                    torch.testing.assert_close(held, state, rtol=0, atol=0)


class Weights(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        dist.init_process_group("fake", rank=RANK, world_size=RANKS)
        torch.manual_seed(0)
        cls.model = Scaled()
        exported = sp.torch.export(cls.model, (torch.randn(8, 6),), mode="train")
        # Ten rows on four ranks: shards of 3, 3, 3 and 1.
        pins = {"up.weight": "S(0)", "down.weight": "S(1)", "down.bias": "R"}
        plan = sp.plan(
            exported, {"tp": RANKS}, pins=pins, execution="eager", progress=False
        )
        mesh = dist.init_device_mesh("cpu", (RANKS,), mesh_dim_names=("tp",))
        cls.make = lambda _: sp.torch.parallelize(exported, plan, mesh)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    @classmethod
    def tearDownClass(cls):
        dist.destroy_process_group()

    def check(self, source):
        module = self.make()
        self.assertEqual(sp.torch.load_weights(module, source), [])
        held = {n: d.to_local() for n, d in module.state_dict().items()}
        whole = self.model.state_dict()
        self.assertEqual(held.keys(), whole.keys())
        for name, cut in {"up.weight": 0, "down.weight": 1}.items():
            part = whole[name].tensor_split([3, 6, 9], cut)[RANK]
            torch.testing.assert_close(held[name], part, rtol=0, atol=0)
        for name in ("down.bias", "scale"):
            torch.testing.assert_close(held[name], whole[name], rtol=0, atol=0)

    def test_models_and_state_dicts(self):
        self.check(self.model)
        self.check(self.model.state_dict())

    def test_a_file(self):
        path = self.folder / "one.safetensors"
        save_file(self.model.state_dict(), path)
        self.check(path)
        self.check(str(path))

    def test_several_files_and_their_index(self):
        folder = self.folder / "several"
        folder.mkdir()
        names = {}
        for number, (name, value) in enumerate(self.model.state_dict().items()):
            names[name] = f"model-{number % 2}.safetensors"
        for file in set(names.values()):
            held = {n: v for n, v in self.model.state_dict().items() if names[n] == file}
            save_file(held, folder / file)
        self.check(folder)
        # No index lists this file, and no parameter needs it.
        save_file({"other": torch.ones(3)}, folder / "zz.safetensors")
        index = folder / "model.safetensors.index.json"
        index.write_text(json.dumps({"weight_map": names}))
        self.check(index)
        self.check(folder)

    def refused(self, source, *named, module=None):
        """Returns the error of load_weights(), which must write nothing."""
        module = module or self.make()
        before = {n: d.to_local().clone() for n, d in module.state_dict().items()}
        with self.assertRaises(sp.Error) as caught:
            sp.torch.load_weights(module, source)
        self.assertEqual(caught.exception.code, "SP0001")
        self.assertNotEqual(caught.exception.help, "")
        for name in named:
            self.assertIn(name, str(caught.exception))
        for name, value in module.state_dict().items():
            torch.testing.assert_close(value.to_local(), before[name])
        return caught.exception

    def test_missing_names_are_an_error(self):
        state = self.model.state_dict()
        del state["up.bias"]
        self.refused(state, "missing: up.bias", "lack 1 of the module's 5 tensors")
        loose = sp.torch.load_weights(self.make(), state, strict=False)
        self.assertEqual(loose, ["up.bias"])

    def test_unknown_names_are_an_error(self):
        state = self.model.state_dict()
        state["up.biass"] = state.pop("up.bias").clone()
        error = self.refused(state, "missing: up.bias", "unknown: up.biass")
        self.assertIn("(similar: up.bias)", str(error))
        path = self.folder / "typo.safetensors"
        save_file(state, path)
        self.refused(path, "unknown: up.biass", str(path))
        many = {f"layers.{n}.weight": torch.ones(1) for n in range(300)}
        error = self.refused({**self.model.state_dict(), **many}, "290 more")
        self.assertLess(len(error.notes), 20)

    def test_tied_names_are_known(self):
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.embed, self.head = torch.nn.Embedding(8, 4), torch.nn.Linear(4, 8)
                self.head.weight = self.embed.weight

            def forward(self, x):
                return self.head(self.embed(x)).square().mean()

        model = Tied()
        example = (torch.zeros(4, 3, dtype=torch.int64),)
        mesh = dist.init_device_mesh("cpu", (RANKS,), mesh_dim_names=("tp",))
        for mode in ("train", "infer"):
            exported = sp.torch.export(model, example, mode=mode)
            plan = sp.plan(exported, {"tp": RANKS}, execution="eager", progress=False)
            module = sp.torch.parallelize(exported, plan, mesh)
            self.assertEqual(sp.torch.load_weights(module, model), [])
            self.assertEqual(sp.torch.load_weights(module, model.state_dict()), [])
        whole = torch.export.export(model, example)
        self.assertEqual(sp.torch.load_weights(module, whole), [])
        apart = {name: value.clone() for name, value in model.state_dict().items()}
        self.refused(apart, "unknown: head.weight", module=module)

    def test_other_shapes_are_an_error(self):
        # Sharded tensors would be cut and replicated ones broadcast.
        for name, other in {
            "up.weight": (12, 6),
            "down.weight": (6, 12),
            "down.bias": (1,),
            "scale": (1,),
            "up.bias": (10, 1),
        }.items():
            state = self.model.state_dict()
            planned = list(state[name].shape)
            state[name] = torch.ones(other)
            with self.subTest(name=name):
                self.refused(state, f"`{name}`", f"weights: {list(other)}", f"plan: {planned}")
                path = self.folder / "shape.safetensors"
                save_file(state, path)
                self.refused(path, f"`{name}`", str(path))
                with self.assertRaises(sp.Error):
                    sp.torch.load_weights(self.make(), state, strict=False)

    def test_other_kinds_of_values_are_an_error(self):
        for value, says in (
            (torch.ones(10, dtype=torch.complex64), "complex64"),
            (torch.empty(10, device="meta"), "has no values"),
            ([0.0] * 10, "is a list"),
        ):
            with self.subTest(says=says):
                self.refused({**self.model.state_dict(), "up.bias": value}, "`up.bias`", says)
        with torch.device("meta"):
            empty = Scaled()
        self.refused(empty, "has no values")
        self.refused(3, "int")

    def test_narrower_floats_are_widened(self):
        state = {n: v.bfloat16() for n, v in self.model.state_dict().items()}
        module = self.make()
        self.assertEqual(sp.torch.load_weights(module, state), [])
        held = module.state_dict()["down.bias"].to_local()
        self.assertEqual(held.dtype, torch.float32)
        torch.testing.assert_close(held, state["down.bias"].float())

    def test_an_empty_folder(self):
        empty = self.folder / "empty"
        empty.mkdir()
        with self.assertRaises(sp.Error) as caught:
            sp.torch.load_weights(self.make(), empty)
        self.assertEqual(caught.exception.place, str(empty))


if __name__ == "__main__":
    unittest.main()
