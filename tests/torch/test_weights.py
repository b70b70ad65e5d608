"""Weights that a planned module is filled with, whatever they come from.

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
from safetensors.torch import save_file

import shardprop as sp
import shardprop.torch

RANKS, RANK = 4, 2


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(6, 10), torch.nn.Linear(10, 6)
        self.register_buffer("scale", torch.tensor(3.0))

    def forward(self, x):
        return self.down(torch.relu(self.up(x) * self.scale)).square().mean()


class Weights(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        dist.init_process_group("fake", rank=RANK, world_size=RANKS)
        torch.manual_seed(0)
        cls.model = Model()
        exported = sp.torch.export(cls.model, (torch.randn(8, 6),), mode="train")
        # Ten rows on four ranks: shards of 3, 3, 3 and 1.
        pins = {"up.weight": "S(0)", "down.weight": "S(1)", "down.bias": "R"}
        plan = sp.plan(exported, {"tp": RANKS}, pins=pins, progress=False)
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
        # Of no use here, and in nobody's index.
        save_file({"other": torch.ones(3)}, folder / "zz.safetensors")
        index = folder / "model.safetensors.index.json"
        index.write_text(json.dumps({"weight_map": names}))
        self.check(index)
        self.check(folder)

    def test_what_is_lacking_is_named(self):
        state = self.model.state_dict()
        del state["up.bias"]
        self.assertEqual(sp.torch.load_weights(self.make(), state), ["up.bias"])
        empty = self.folder / "empty"
        empty.mkdir()
        with self.assertRaises(sp.Error) as caught:
            sp.torch.load_weights(self.make(), empty)
        self.assertEqual(caught.exception.place, str(empty))


if __name__ == "__main__":
    unittest.main()
