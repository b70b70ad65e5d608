"""A cache that a program updates is written in place: the plan, its check on
simulated ranks and the program that PyTorch runs hold one cache, and every step has
the results of the model itself."""

import json
import unittest

import running.package  # noqa: F401
import torch
from running.ranks import run_ranks

import shardprop as sp
import shardprop.torch

ROWS, WIDTH = 64, 16
CACHE_BYTES = ROWS * WIDTH * 4


class Decoding(torch.nn.Module):
    """Writes one row of a cache, which is then read. It reads the old rows afterwards if
    `keeps` is true."""

    def __init__(self, write, keeps=False):
        super().__init__()
        self.write, self.keeps = write, keeps
        self.query = torch.nn.Linear(WIDTH, WIDTH)
        self.register_buffer("cache", torch.zeros(ROWS, WIDTH))

    def forward(self, x, at):
        old = self.cache * 2 if self.keeps else None
        self.write(self, x, at)
        out = self.query(x) @ self.cache.T
        return out + (x @ old.T) if self.keeps else out


def by_index_copy(model, x, at):
    model.cache.index_copy_(0, at, x)


def by_index_put(model, x, at):
    model.cache[at] = x


def by_slice(model, x, at):
    model.cache[ROWS - 1 : ROWS] = x


def by_row(model, x, at):
    model.cache[ROWS - 1] = x[0]


def by_two_writes(model, x, at):
    model.cache.index_copy_(0, at, x)
    model.cache[ROWS - 1] = 2 * x[0]


WRITES = [by_index_copy, by_index_put, by_slice, by_row, by_two_writes]


def temporary_bytes(write):
    """PyTorch's functional copy into a view clones all memory of the viewed tensor."""
    return 0 if write in (by_index_copy, by_index_put) else CACHE_BYTES


class Peak(torch.fx.Interpreter):
    """Runs a program and measures the bytes of the tensors that it holds."""

    def run(self, *inputs):
        self.given, self.bytes = inputs, 0
        return super().run(*inputs)

    def run_node(self, node):
        result = super().run_node(node)
        held = [*self.given, *self.env.values(), result]
        tensors = [x for x in torch.utils._pytree.tree_leaves(held)
                   if isinstance(x, torch.Tensor)]
        sizes = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes()
                 for x in tensors}
        self.bytes = max(self.bytes, sum(sizes.values()))
        return result


def decode(jobs, steps):
    """Returns for each model and plan: the results and the cache after each step, and
    the bytes that the program holds."""
    return [decode_one(model, sp.Plan.from_json(plan), steps) for model, plan in jobs]


def decode_one(model, plan, steps):
    mesh = torch.distributed.device_mesh.init_device_mesh(
        "cpu", tuple(plan.mesh.values()), mesh_dim_names=tuple(plan.mesh))
    exported = torch.export.export(model, steps[0])
    module = sp.torch.parallelize(exported, plan, mesh)
    sp.torch.load_weights(module, model.state_dict())
    found = []
    for step in steps:
        result = module(*step).full_tensor()
        # Without shards, the full tensor is the buffer itself, which is written again.
        found.append((result, module.get_buffer("cache").full_tensor().clone()))
    peak = Peak(module.program.graph_module)
    # A shard may be a part of a larger tensor.
    peak.run(*(x.clone() for x in module._arguments(steps[-1])))
    return found, peak.bytes


class WrittenInPlace(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.steps = [(torch.randn(1, WIDTH), torch.tensor([at])) for at in (3, 63, 3)]

    def decoded(self, mesh, models):
        """Checks models, each with a layout of its cache, against themselves. Returns the
        name of each, the bytes in its plan, and the bytes that its program holds without
        the temporary of a copy."""
        jobs, found = [], []
        for model, layout in models:
            exported = torch.export.export(model, self.steps[0])
            plan = sp.plan(
                exported,
                mesh,
                execution="eager",
                progress=False,
                pins={"cache": layout},
            )
            jobs.append((model, plan.to_json()))
        ranks = run_ranks(int(mesh.split("=")[1]), decode, jobs, self.steps)
        for job, (model, layout) in enumerate(models):
            name = f"{model.write.__name__}, {layout}"
            for at, step in enumerate(self.steps):
                with torch.no_grad():
                    result = model(*step)
                for rank in ranks:
                    with self.subTest(name, step=at):
                        torch.testing.assert_close(rank[job][0][at][0], result)
                        torch.testing.assert_close(rank[job][0][at][1], model.cache)
            planned = json.loads(jobs[job][1])["memory"]["peak_bytes_per_rank"]
            held = max(rank[job][1] for rank in ranks)
            found.append((name, planned, held - temporary_bytes(model.write)))
        return found

    def test_one_cache_is_held(self):
        models = [(Decoding(write), "R") for write in WRITES]
        for name, planned, held in self.decoded("tp=1", models):
            with self.subTest(name):
                self.assertLess(planned, 1.5 * CACHE_BYTES)
                self.assertLessEqual(held, planned)
                if "index" in name:
                    self.assertEqual(held, planned)

    def test_a_cache_that_is_read_later_is_kept(self):
        models = [(Decoding(write, keeps=True), "R") for write in WRITES]
        for name, planned, held in self.decoded("tp=1", models):
            with self.subTest(name):
                self.assertGreater(planned, 1.5 * CACHE_BYTES)
                self.assertLessEqual(held, planned)

    def test_shards(self):
        """The program that writes sharded rows gathers the written rows and makes the
        new shard, as temporaries of its operator, which plans do not count."""
        models = [(Decoding(write), layout)
                  for write in WRITES for layout in ("S(1)", "S(0)", "R")]
        for name, planned, held in self.decoded("tp=2", models):
            with self.subTest(name):
                spare = CACHE_BYTES + 1024 if name.endswith("S(0)") else 0
                self.assertLessEqual(held, planned + spare)


if __name__ == "__main__":
    unittest.main()
