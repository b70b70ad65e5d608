"""verify_programs() compares programs of ranks with a model on one device.

Programs of `shardprop emit`, FX graphs with functional collectives and functions are
right, and wrong where they are changed.
"""

import contextlib
import json
import operator
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, os.environ.get("SHARDPROP_PACKAGE", ""))

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.fsdp  # noqa: F401  (registers torch.ops.fsdp)
from running.emitted_ranks import drawn_on_host
from torch.distributed.device_mesh import init_device_mesh
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.distributed.fake_pg import FakeStore

import shardprop as sp
from shardprop import _core
from shardprop.torch import _layout

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAPHS = ROOT / "examples/graphs/tiny"
TOPOLOGY = str(ROOT / "examples/topologies/dear-compute.toml")
FULL = os.environ.get("SHARDPROP_FULL") == "1"
SLICE = [("llama3_infer", "tp=3")]
EVERY = [
    (path.name.split(".")[0], mesh)
    for path in sorted(GRAPHS.glob("*.json.gz"))
    for mesh in ("dp=2,tp=2", "tp=3")
    # Kernels of CUDA do not run on the CPU.
    if "cuda" not in path.name
]


class Emitted(unittest.TestCase):
    def emit(self, graph, mesh, folder, *options):
        """Emits a plan, and returns the program of one rank and full inputs."""
        for to, sizes, more in ((folder, mesh, options), (folder / "one", "all=1", ())):
            with contextlib.redirect_stdout(None):
                failed = _core.run([
                    "shardprop", "emit", str(GRAPHS / f"{graph}.json.gz"), "--mesh",
                    sizes, "--topology", TOPOLOGY, "-o", str(to), *more,
                ])
            self.assertEqual(failed, 0)
        shardings = json.loads((folder / "shardings.json").read_text())
        inputs = [
            drawn_on_host(entry, index)
            for index, entry in enumerate(shardings["inputs"])
        ]
        return folder / "one" / "program.pt2", inputs

    def test_right(self):
        for graph, mesh in EVERY if FULL else SLICE:
            with self.subTest(graph=graph, mesh=mesh), tempfile.TemporaryDirectory() as to:
                model, inputs = self.emit(graph, mesh, pathlib.Path(to))
                report = sp.torch.verify_programs(to, model, inputs)
                self.assertTrue(report.ok, f"{report}")
                kinds = {value.kind for value in report.values}
                self.assertEqual(kinds, {"value", "result"})

    def test_wrong(self):
        """A program without its first sum is wrong from there on."""
        with tempfile.TemporaryDirectory() as to:
            # Megatron sums the result of every second matmul.
            model, inputs = self.emit(
                "llama3_train", "tp=2", pathlib.Path(to), "--recipe", "megatron=tp"
            )
            programs = []
            for rank in range(2):
                path = pathlib.Path(to) / f"rank{rank}.pt2"
                if not path.exists():
                    path = pathlib.Path(to) / "program.pt2"
                program = torch.export.load(str(path))
                removed = next(
                    node for node in program.graph.nodes
                    if "_c10d_functional.all_reduce" in str(node.target)
                )
                removed.replace_all_uses_with(removed.args[0])
                program.graph_module.recompile()
                programs.append(program)
            shardings = json.loads((pathlib.Path(to) / "shardings.json").read_text())
            entries = shardings["inputs"]
            report = sp.torch.verify_programs(
                programs,
                model,
                inputs,
                "tp=2",
                layouts=[_layout.layout_text(entry) for entry in entries],
                groups={group["name"]: group["ranks"] for group in shardings["groups"]},
            )
            self.assertFalse(report.ok)
            self.assertEqual(report.first.kind, "value", f"{report}")


class Graphs(unittest.TestCase):
    """FX graphs and functions with collectives of other kinds."""

    def setUp(self):
        torch.manual_seed(1)
        self.inputs = [torch.randn(6, 8), torch.randn(8, 4)]

    def model(self, x, weight):
        return torch.relu(x @ weight)

    def test_functions(self):
        def program(x, weight):
            y = x @ weight
            dist.all_reduce(y)
            return torch.relu(y)

        def wrong(x, weight):
            y = torch.relu(x @ weight)
            dist.all_reduce(y)
            return y

        given = dict(layouts=["S(1)", "S(0)"], output_layouts=["R"])
        report = sp.torch.verify_programs(
            [program] * 2, self.model, self.inputs, "tp=2", **given
        )
        self.assertTrue(report.ok, f"{report}")
        report = sp.torch.verify_programs(
            [wrong] * 2, self.model, self.inputs, "tp=2", **given
        )
        self.assertEqual(report.first.kind, "result")

    def test_graphs(self):
        def program(x, weight):
            y = torch.ops._c10d_functional.all_reduce(x @ weight, "sum", "tp")
            return torch.relu(torch.ops._c10d_functional.wait_tensor(y))

        def scattered(x, weight):
            return torch.ops._c10d_functional.wait_tensor(
                torch.ops._c10d_functional.reduce_scatter_tensor(
                    x @ weight, "sum", 2, "tp"
                )
            )

        for function, model, layout in (
            (program, self.model, "R"), (scattered, torch.mm, "S(0)"),
        ):
            graph = torch.fx.Graph()
            x, weight = graph.placeholder("x"), graph.placeholder("weight")
            graph.output(graph.call_function(function, (x, weight)))
            module = torch.fx.GraphModule({}, graph)
            report = sp.torch.verify_programs(
                [module] * 2, model, self.inputs, "tp=2",
                layouts=["S(1)", "S(0)"], output_layouts=[layout],
            )
            self.assertTrue(report.ok, f"{report}")

    def test_traced_collectives(self):
        """A program of a rank is traced with a fake process group."""

        def program(x, weight):
            y = x @ weight
            dist.all_reduce(y, op=dist.ReduceOp.AVG)
            half = torch.empty(3, 4)
            dist.reduce_scatter_tensor(half, y)
            dist.broadcast(half.clone(), 0)
            full = torch.empty(6, 4)
            dist.all_gather_into_tensor(full, half)
            parts = [torch.empty(3, 4) for _ in range(2)]
            dist.all_gather(parts, half)
            moved = torch.empty(6, 4)
            dist.all_to_all_single(moved, full)
            dist.barrier()
            return torch.relu(full), torch.cat(parts), moved

        def model(x, weight):
            # The mean of both ranks is summed again.
            y = x @ weight
            first, second = y[:3], y[3:]
            return torch.relu(y), y, torch.cat([first, first, second, second])

        x, weight = self.inputs
        graphs = []
        for rank in range(2):
            dist.init_process_group("fake", rank=rank, world_size=2, store=FakeStore())
            graphs.append(make_fx(program)(x[:, :4], weight[:4]))
            dist.destroy_process_group()
        names = {node.name for node in graphs[0].graph.nodes}
        self.assertIn("_reduce_scatter_base_", names)
        report = sp.torch.verify_programs(
            graphs, model, self.inputs, "tp=2", layouts=["S(1)", "S(0)"],
            output_layouts=["R", "R", "S(0)"],
        )
        self.assertTrue(report.ok, f"{report}")

    def test_first_wrong_node(self):
        """The model's value is named that the ranks' programs no longer have."""
        def model(x, weight):
            y = torch.sin(x @ weight)
            return torch.cos(torch.relu(y) + 1) * 2

        def program(x, weight):
            y = x @ weight
            if sums:
                dist.all_reduce(y)
            y = torch.sin(y)
            return torch.cos(torch.relu(y) + 1) * 2

        x, weight = self.inputs
        for sums in (True, False):
            dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
            graph = make_fx(program)(x[:, :4], weight[:4])
            dist.destroy_process_group()
            report = sp.torch.verify_programs(
                [graph] * 2, make_fx(model)(x, weight), self.inputs, "tp=2",
                layouts=["S(1)", "S(0)"],
            )
            self.assertEqual(report.ok, sums, f"{report}")
        self.assertEqual((report.first.kind, report.first.name), ("value", "sin"))
        self.assertIn("at node mm, in the layout P(sum)", " ".join(report.first.notes))

    def test_gradients_on_a_mesh(self):
        """Programs with a backward pass, traced on a mesh of two dims. The mistake sums
        the gradient of the first weight over the wrong dim."""

        def loss_of(x, up, down, mesh=None):
            up, down = (weight.detach().requires_grad_() for weight in (up, down))
            part = torch.relu(x @ up) @ down
            y = part.detach()
            if mesh is not None:
                y = functional.all_reduce(y, "sum", (mesh, 1))
            gradient = 2 * (y - 1) / y.numel()
            return y, torch.autograd.grad(part, (up, down), gradient)

        def program_of(mesh, wrong):
            def program(x, up, down):
                y, gradients = loss_of(x, up, down, mesh)
                dims = (1, 0) if wrong else (0, 0)
                return y, *(
                    functional.all_reduce(gradient, "avg", (mesh, dim))
                    for gradient, dim in zip(gradients, dims)
                )

            return program

        def model(x, up, down):
            y, gradients = loss_of(x, up, down)
            return y, *gradients

        x, up = self.inputs
        inputs = [x, up, torch.randn(4, 8)]
        for wrong in (False, True):
            graphs, groups = [], {}
            for rank in range(4):
                dist.init_process_group(
                    "fake", rank=rank, world_size=4, store=FakeStore()
                )
                mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
                program = program_of(mesh, wrong)
                graphs.append(make_fx(program)(x[:3], up[:, :2], inputs[2][:2]))
                for dim, ranks in ((0, [[0, 2], [1, 3]]), (1, [[0, 1], [2, 3]])):
                    groups[mesh.get_group(dim).group_name] = ranks
                dist.destroy_process_group()
            report = sp.torch.verify_programs(
                graphs, model, inputs, "dp=2,tp=2",
                layouts=["S(0),R", "R,S(1)", "R,S(0)"],
                output_layouts=["S(0),R", "R,S(1)", "R,S(0)"], groups=groups,
            )
            self.assertEqual(report.ok, not wrong, f"{report}")
        self.assertEqual((report.first.kind, report.first.path), ("result", "[1]"))

    def test_gather_of_fully_shard(self):
        """The collectives of FSDP2 in a graph: a gather of all shards as one vector."""
        aten, fsdp = torch.ops.aten, torch.ops.fsdp
        functional_ops = torch.ops._c10d_functional

        def program(rank, transposed):
            graph = torch.fx.Graph()
            call = graph.call_function
            x, first, second = map(graph.placeholder, ("x", "first", "second"))
            flat = [call(aten.view.default, (w, [-1])) for w in (first, second)]
            buffer = call(aten.empty.memory_format, ([48],))
            copied = call(
                fsdp.all_gather_copy_in.default, (flat, buffer, [16, 8], 24, rank)
            )
            own, full = (call(operator.getitem, (copied, i)) for i in range(2))
            gathered = call(
                functional_ops.all_gather_into_tensor_out.default, (own, 2, "dp"),
                {"out": full},
            )
            gathered = call(functional_ops.wait_tensor.default, (gathered,))
            rows = call(aten.view.default, (gathered, [2, 24]))
            split = call(aten.split_with_sizes.default, (rows, [16, 8], 1))
            a, b = (call(operator.getitem, (split, i)) for i in range(2))
            a = call(aten.reshape.default, (a, [8, 4]))
            b = call(aten.reshape.default, (b, [4, 4]))
            if transposed:
                b = call(aten.t.default, (b,))
            y = call(aten.mm.default, (call(aten.mm.default, (x, a)), b))
            graph.output((y,))
            return torch.fx.GraphModule({}, graph)

        x, weight = self.inputs
        inputs = [x, weight, torch.randn(4, 4)]

        def report(transposed):
            return sp.torch.verify_programs(
                [program(rank, transposed) for rank in range(2)],
                lambda x, a, b: x @ a @ b, inputs, "dp=2",
                layouts=["S(0)"] * 3, output_layouts=["S(0)"],
            )

        found = report(False)
        self.assertTrue(found.ok, f"{found}")
        self.assertFalse(report(True).ok)

    def test_group_without_counterpart(self):
        def program(x):
            dist.all_reduce(x)
            return x

        dist.init_process_group("fake", rank=0, world_size=3, store=FakeStore())
        graph = make_fx(program)(torch.ones(2))
        dist.destroy_process_group()
        with self.assertRaises(sp.Error) as raised:
            sp.torch.verify_programs(
                [graph] * 2, torch.relu, [torch.ones(2)], "tp=2", layouts=["R"]
            )
        self.assertEqual(raised.exception.code, "SP0903")
        self.assertIn("ranks: 3", str(raised.exception))

    def test_stated_layout(self):
        report = sp.torch.verify_programs(
            [torch.mm] * 2, torch.mm, self.inputs, "tp=2",
            layouts=["S(1)", "S(0)"], output_layouts=["R"],
        )
        self.assertEqual(report.first.layout, ("P(sum)",))
        self.assertIn("A sum over tp is missing.", report.first.notes)

    def test_strided_layouts(self):
        """Each rank has a part of each half of the rows, as of a fused weight."""
        weight = torch.randn(8, 3)
        for layout in ("SS(0,2),R", "S(0)@1,S(0)@0", "R,SS(0,2)"):
            report = sp.torch.verify_programs(
                [torch.relu] * 4, torch.relu, [weight], "dp=2,tp=2",
                layouts=[layout], output_layouts=[layout],
            )
            self.assertTrue(report.ok, f"{report}")
        report = sp.torch.verify_programs(
            [torch.relu] * 4, torch.relu, [weight], "dp=2,tp=2",
            layouts=["SS(0,2),R"], output_layouts=["S(0),R"],
        )
        self.assertFalse(report.ok)
        report = sp.torch.verify_programs(
            [torch.relu] * 4, torch.relu, [weight], "dp=2,tp=2",
            layouts=["S(0),R"], output_layouts=["SS(0,2),R"],
        )
        self.assertIn("its strided shard of dim 0", " ".join(report.first.notes))

    def test_errors(self):
        wrong = [
            ([torch.mm], dict(layouts=["R", "R"])),
            ([torch.mm] * 2, dict(layouts=["R"])),
            ("no such folder", {}),
        ]
        for programs, options in wrong:
            with self.assertRaises(sp.Error) as raised:
                sp.torch.verify_programs(
                    programs, torch.mm, self.inputs, "tp=2", **options
                )
            self.assertEqual(raised.exception.code, "SP0903")


if __name__ == "__main__":
    unittest.main()
