"""Programs that `shardprop emit` writes compute the same results as the graph.

Each rank's file is loaded by torch.export.load and run by a process of its own
over gloo, on its shards of random weights and inputs. Every rank must get its
part of the graph's unsharded results, and the collectives that PyTorch counts
must be those of the plan. SHARDPROP_FULL=1 runs every graph on every mesh.
SHARDPROP_DEVICE=cuda runs the graphs for CUDA machines over NCCL; if there are
more ranks than GPUs, ranks share them.
"""

import collections
import functools
import gzip
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch
import torch.multiprocessing as mp
from torch._export.serde.serialize import _SERIALIZE_TO_TORCH_DTYPE

from running.emitted_ranks import (
    DEVICE,
    differs,
    drawn,
    load,
    overlapped_calls,
    planned_counts,
    run_rank,
    work,
)

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAPHS = ROOT / "examples/graphs/tiny"
FULL = os.environ.get("SHARDPROP_FULL") == "1"

# Compute and memory are expensive, sending is cheap: plans are full of shards.
TOPOLOGY = str(ROOT / "examples/topologies/dear-compute.toml")

Case = collections.namedtuple("Case", "graph mesh optimizer")

SLICE = [
    Case("llama3_train", "dp=2,tp=2", "none"),
    Case("llama3_train", "tp=3", "adamw"),
    Case("gpt2_train", "tp=4", "none"),
    Case("resnet_train", "dp=3", "sgd"),
    Case("mixtral_infer", "tp=3", "none"),
    Case("t5_train", "dp=2,tp=2", "none"),
]
ON_CUDA = [
    Case("llama3_train_cuda", "dp=2,tp=2", "none"),
    Case("llama3_train_cuda", "tp=3", "adamw"),
    Case("gpt2_train_cuda", "tp=4", "none"),
    Case("mixtral_infer_cuda", "tp=3", "none"),
    Case("t5_train_cuda", "dp=2,tp=2", "none"),
    Case("vit_infer_cuda", "dp=2", "none"),
]
EVERY = [
    Case(graph, mesh, optimizer)
    for graph in ("llama3_train", "gpt2_train", "resnet_train", "mixtral_infer",
                  "t5_train", "llama3_infer", "vit_infer", "mlp_dynamic",
                  "block_composite")
    for mesh in ("dp=2,tp=2", "tp=3", "tp=4", "dp=2", "dp=1,tp=3")
    for optimizer in ("none", "adamw")
]



def ranks_of(mesh):
    count = 1
    for dim in mesh.split(","):
        count *= int(dim.split("=")[1])
    return count


# The functions below run the unsharded program: the file's nodes, one after the
# other.


def argument(value, tensors):
    kind, held = next(iter(value.items()))
    if kind == "as_none":
        return None
    if kind == "as_tensor":
        return tensors[held["name"]]
    if kind == "as_tensors":
        return [tensors[one["name"]] for one in held]
    if kind == "as_optional_tensors":
        return [argument(one, tensors) for one in held]
    if kind == "as_scalar_type":
        return _SERIALIZE_TO_TORCH_DTYPE[held]
    if kind == "as_memory_format":
        return {1: torch.contiguous_format, 2: torch.channels_last,
                4: torch.preserve_format}[held]
    if kind == "as_layout":
        return torch.strided
    if kind == "as_device":
        return torch.device(held["type"])
    if kind == "as_float":
        return float(held)
    if kind == "as_sym_int":
        return symbol(held, tensors)
    if kind == "as_sym_ints":
        return [symbol(one, tensors) for one in held]
    return held


def symbol(value, tensors):
    return tensors[value["as_name"]] if "as_name" in value else value["as_int"]


def operator(target):
    module, *names = target.split(".")
    return functools.reduce(getattr, names, importlib.import_module(module))


def call(function, args):
    """Calls a function on sizes (`_operator.mul`), or an operator by declared
    names."""
    if not hasattr(function, "_schema"):
        return function(*args.values())
    positional = []
    for declared in function._schema.arguments:
        # `from` cannot be a keyword argument in Python.
        if declared.name not in args or declared.kwarg_only:
            break
        positional.append(args.pop(declared.name))
    return function(*positional, **args)


def run_graph(program, tensors):
    graph = program["graph_module"]["graph"]
    for node in graph["nodes"]:
        # Operators on sizes take theirs without names.
        args = {one["name"] or i: argument(one["arg"], tensors)
                for i, one in enumerate(node["inputs"])}
        results = call(operator(node["target"]), args)
        outputs = node["outputs"]
        if len(outputs) == 1 and "as_sym_int" in outputs[0]:
            tensors[outputs[0]["as_sym_int"]["as_name"]] = results
            continue
        if len(outputs) == 1 and "as_tensor" in outputs[0]:
            tensors[outputs[0]["as_tensor"]["name"]] = results
            continue
        if len(outputs) == 1 and "as_tensors" in outputs[0]:
            outputs = [{"as_tensor": one}
                       for one in outputs[0]["as_tensors"]]
        for output, result in zip(outputs, results or ()):
            if "as_tensor" in output:
                tensors[output["as_tensor"]["name"]] = result
    return tensors


def emit_file(path, folder, mesh, *options):
    subprocess.run(
        [os.environ["SHARDPROP_BIN"], "emit", str(path), "--mesh", mesh,
         "--topology", TOPOLOGY, "--gap", "0", "--work-limit", "20000000", "-o", str(folder),
         *options],
        check=True, stdout=subprocess.DEVNULL)


def emit(case, folder, mesh):
    graph = GRAPHS / f"{case.graph}.json.gz"
    optimizer = ("--optimizer", case.optimizer)
    emit_file(graph, folder, mesh, *optimizer)
    plan = json.loads((folder / "plan.json").read_text())
    if ranks_of(mesh) == 1 or planned_counts(plan):
        return
    # If the best plan sends no data, the test pins sharded weights, which sends
    # some.
    parts = ",".join("R" for _ in mesh.split(",")[1:]) + ",S(0)"
    emit_file(graph, folder, mesh, *optimizer, "--pin",
              "*weight=" + parts.removeprefix(","))


class Scans(torch.nn.Module):
    """Operators whose ranks exchange intermediate results: places of the
    largest, totals, products, sums of exponentials."""

    def forward(self, x):
        values, places = torch.topk(x, 3, dim=0)
        return (torch.cumsum(x, 0), torch.cumprod(x, 0), values, places,
                torch.argmax(x, 0), torch.logsumexp(x, 0))


class Heads(torch.nn.Module):
    """Rows cut as heads, and the other way: exchanges between layouts that cut
    the same dim, unevenly, in strides and in other orders."""

    def forward(self, x):
        heads = torch.relu(torch.neg(x).view(9, 7, 10))
        return torch.abs(heads.view(63, 10))

    # Each line has a mesh and the layouts of neg, relu and abs.
    LAYOUTS = [
        ("dp=2,tp=2", "S(0),S(1)", "S(1),S(1)", "S(1),S(0)"),
        ("dp=2,tp=2", "S(1),S(0)", "S(1),S(2)", "S(0),S(1)"),
        ("dp=2,tp=2", "S(0),S(0)", "S(1),S(1)", "S(1),S(1)"),
        ("tp=3", "S(0)", "S(1)", "S(0)"),
        ("tp=4", "S(0)", "S(1)", "S(0)"),
        ("tp=4", "S(1)", "S(1)", "S(1)"),
    ]


class Windows(torch.nn.Module):
    """Images are sharded into rows, and their convolution windows reach into
    the adjacent parts: plain, strided, dilated, and their gradients."""

    def forward(self, x, weight):
        plain = torch.ops.aten.convolution(
            x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        strided = torch.ops.aten.convolution(
            x, weight, None, [2, 2], [1, 1], [1, 1], False, [0, 0], 1)
        dilated = torch.ops.aten.convolution(
            x, weight, None, [1, 1], [2, 2], [2, 2], False, [0, 0], 1)
        gradients = torch.ops.aten.convolution_backward(
            dilated, x, weight, None, [1, 1], [2, 2], [2, 2], False, [0, 0], 1,
            [True, True, False])
        return plain, strided, dilated, gradients[0], gradients[1]


class GroupedHeads(torch.nn.Module):
    """Attention of eight query heads and two key heads, with its gradients."""

    def forward(self, grad, query, key, value):
        name = "_scaled_dot_product_flash_attention_for_cpu"
        out, sums = getattr(torch.ops.aten, name)(query, key, value, 0.0, True)
        gradients = getattr(torch.ops.aten, name + "_backward")(
            grad, query, key, value, out, sums, 0.0, True)
        return (out, *gradients)


def keyed(shardings, results):
    return {(entry["kind"], entry.get("target", entry["name"])): result
            for entry, result in zip(shardings["outputs"], results,
                                     strict=True)}


class EmittedPrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def unsharded(self, case, folder):
        """Returns the results of the program of one rank, and checks them
        against the graph if it can run."""
        emit(case, folder / "one", "all=1")
        shardings, results, counts = run_rank(folder / "one", 0)
        self.assertEqual(counts, {})
        whole = keyed(shardings, results)
        self.compare_with_graph(case, shardings, whole)
        torch.save(whole, folder / "unsharded.pt")

    def compare_with_graph(self, case, shardings, whole):
        with gzip.open(GRAPHS / f"{case.graph}.json.gz") as file:
            program = json.load(file)
        if any(entry["kind"] == "seed" for entry in shardings["inputs"]):
            return  # it draws by element, the graph does not
        tensors = {}
        specs = program["graph_module"]["signature"]["input_specs"]
        values = {entry["name"]: drawn(entry, i)
                  for i, entry in enumerate(shardings["inputs"])}
        for spec in specs:
            kind, held = next(iter(spec.items()))
            arg = held["arg"].get("as_tensor", held["arg"])["name"]
            name = {"parameter": "parameter_name", "buffer": "buffer_name",
                    "tensor_constant": "tensor_constant_name"}.get(kind)
            tensors[arg] = values[held[name] if name else arg]
        with torch.no_grad():
            run_graph(program, tensors)
        compared = 0
        for spec in program["graph_module"]["signature"]["output_specs"]:
            kind, held = next(iter(spec.items()))
            arg = held["arg"].get("as_tensor", held["arg"])["name"]
            key = {
                "loss_output": ("loss", arg),
                "user_output": ("user", arg),
                "gradient_to_parameter": (
                    "gradient", held.get("parameter_name")),
                "buffer_mutation": ("update", held.get("buffer_name")),
            }[kind]
            if key not in whole:  # named otherwise: by its only kind
                [key] = [k for k in whole if k[0] == key[0]]
            self.assertIsNone(differs(whole[key], tensors[arg]),
                              f"{case}: {key}")
            compared += 1
        self.assertGreater(compared, 0)

    def found_by_ranks(self, root, jobs):
        """Returns the findings of each process for its jobs, by rank."""
        size = max(ranks for _, _, ranks in jobs)
        mp.spawn(work, nprocs=size,
                 args=(size, str(root / "store"), jobs, str(root / "found")))
        return [torch.load(root / f"found{rank}") for rank in range(size)]

    def test_operators_that_gather_inside(self):
        root = pathlib.Path(self.folder.name) / "scans"
        root.mkdir()
        graph = root / "scans.pt2"
        torch.export.save(
            torch.export.export(
                Scans(), (torch.randn(37, 10, device=DEVICE),)), str(graph))
        jobs = []
        for mesh in ("tp=2", "tp=3", "dp=2,tp=2"):
            folder = root / mesh
            rows = ",".join("S(0)" for _ in mesh.split(","))
            emit_file(graph, folder, mesh, "--pin", f"x={rows}", "--pin",
                      f"op:aten.cumsum.default={rows}", "--pin",
                      f"op:aten.cumprod.default={rows}")
            plan = json.loads((folder / "plan.json").read_text())
            inside = [step["collective"] for node in plan["nodes"]
                      for step in node["inside"]]
            self.assertEqual(inside.count("all_gather"), 6)
            self.assertEqual(inside.count("all_reduce"), 4)
            shardings = json.loads((folder / "shardings.json").read_text())
            x = drawn(shardings["inputs"][0], 0)
            torch.save(keyed(shardings, Scans()(x)), folder / "unsharded.pt")
            jobs.append((mesh, str(folder), ranks_of(mesh)))
        found = self.found_by_ranks(root, jobs)
        for name, _, ranks in jobs:
            for rank in range(ranks):
                wrong, counted, sharded, _ = found[rank][name]
                with self.subTest(mesh=name, rank=rank):
                    self.assertEqual(wrong, [])
                    self.assertEqual(counted, 10)
                    self.assertEqual(sharded, 2)

    def test_windows_that_reach_into_other_parts(self):
        root = pathlib.Path(self.folder.name) / "windows"
        root.mkdir()
        graph = root / "windows.pt2"
        example = (torch.randn(1, 3, 24, 9, device=DEVICE),
                   torch.randn(4, 3, 3, 3, device=DEVICE))
        torch.export.save(torch.export.export(Windows(), example), str(graph))
        jobs = []
        for mesh in ("tp=2", "tp=3", "dp=2,tp=2"):
            folder = root / mesh
            rows = ",".join("S(2)" for _ in mesh.split(","))
            emit_file(graph, folder, mesh, "--pin", f"x={rows}", "--pin",
                      f"op:aten.convolution.default={rows}")
            plan = json.loads((folder / "plan.json").read_text())
            inside = [step["collective"] for node in plan["nodes"]
                      for step in node["inside"]]
            self.assertEqual(inside.count("all_gather"), 9, mesh)
            shardings = json.loads((folder / "shardings.json").read_text())
            x, weight = (drawn(entry, i)
                         for i, entry in enumerate(shardings["inputs"]))
            torch.save(keyed(shardings, Windows()(x, weight)),
                       folder / "unsharded.pt")
            jobs.append((mesh, str(folder), ranks_of(mesh)))
        self.check(jobs, self.found_by_ranks(root, jobs))

    def test_more_ranks_than_key_heads(self):
        root = pathlib.Path(self.folder.name) / "grouped"
        root.mkdir()
        graph = root / "grouped.pt2"
        example = [torch.randn(2, heads, 6, 8, device=DEVICE)
                   for heads in (8, 8, 2, 2)]
        torch.export.save(
            torch.export.export(GroupedHeads(), tuple(example)), str(graph))
        jobs = []
        for mesh, heads in (("tp=4", "S(1)"), ("dp=2,tp=2", "S(1),S(1)")):
            folder = root / mesh
            emit_file(graph, folder, mesh, "--pin", f"query={heads}", "--pin",
                      f"grad={heads}")
            plan = json.loads((folder / "plan.json").read_text())
            attention = [node for node in plan["nodes"]
                         if "attention" in node["op"]]
            self.assertEqual(len(attention), 2)
            moved = {copy["of"] for copy in plan["copies"]}
            self.assertFalse(moved & {"query", "grad"}, mesh)
            shardings = json.loads((folder / "shardings.json").read_text())
            values = [drawn(entry, i)
                      for i, entry in enumerate(shardings["inputs"])]
            torch.save(keyed(shardings, GroupedHeads()(*values)),
                       folder / "unsharded.pt")
            jobs.append((mesh, str(folder), ranks_of(mesh)))
        self.check(jobs, self.found_by_ranks(root, jobs))

    def test_exchanges_within_a_dim(self):
        root = pathlib.Path(self.folder.name) / "heads"
        root.mkdir()
        graph = root / "heads.pt2"
        torch.export.save(
            torch.export.export(
                Heads(), (torch.randn(63, 10, device=DEVICE),)), str(graph))
        jobs = []
        strided = 0
        for i, (mesh, rows, heads, out) in enumerate(Heads.LAYOUTS):
            folder = root / str(i)
            emit_file(graph, folder, mesh, "--pin", f"neg={rows}", "--pin",
                      f"relu={heads}", "--pin", f"abs_1={out}")
            plan = json.loads((folder / "plan.json").read_text())
            strided += sum(
                step["collective"] == "all_to_all" and
                any("SS" in p for p in step["src"] + step["dst"])
                for copy in plan["copies"] for step in copy["steps"])
            shardings = json.loads((folder / "shardings.json").read_text())
            x = drawn(shardings["inputs"][0], 0)
            torch.save(keyed(shardings, [Heads()(x)]), folder / "unsharded.pt")
            jobs.append((f"{i} {mesh}", str(folder), ranks_of(mesh)))
        self.assertGreater(strided, 5)
        self.check(jobs, self.found_by_ranks(root, jobs))

    def check(self, jobs, found):
        """Sums of collectives, of outputs that are parts, and of outputs."""
        sums = [0, 0, 0]
        for name, _, ranks in jobs:
            for rank in range(ranks):
                wrong, *counts = found[rank][name]
                with self.subTest(case=name, rank=rank):
                    self.assertEqual(wrong, [])
                    self.assertGreater(counts[0], 0)
                sums = [a + b for a, b in zip(sums, counts)]
        return sums

    def test_transfers_overlap_with_compute(self):
        root = pathlib.Path(self.folder.name) / "overlapped"
        root.mkdir()
        cases = [(Case("llama3_train", "dp=2,tp=2", "none"), "fsdp=dp,megatron=tp"),
                 (Case("gpt2_train", "pod=2,dp=2", "adamw"), "hsdp=pod:dp")]
        jobs = []
        for i, (case, recipe) in enumerate(cases):
            folder = root / str(i)
            folder.mkdir()
            self.unsharded(case, folder)
            emit_file(GRAPHS / f"{case.graph}.json.gz", folder, case.mesh,
                      "--optimizer", case.optimizer, "--recipe", recipe,
                      "--overlap", "1")
            plan = json.loads((folder / "plan.json").read_text())
            in_flight = [copy for copy in plan["copies"] if "issued_at" in copy]
            self.assertGreater(len(in_flight), 10)
            # The copies of a bucket are one transfer. Most have a matmul beside
            # them.
            transfers = {copy.get("bucket", copy["id"]) for copy in in_flight}
            overlapped = overlapped_calls(load(folder, 0)[0])
            self.assertGreater(overlapped, 5)
            self.assertGreater(2 * overlapped, len(transfers))
            jobs.append((str(case), str(folder), ranks_of(case.mesh)))
        self.check(jobs, self.found_by_ranks(root, jobs))

    def test_ranks_hand_back_their_parts(self):
        root = pathlib.Path(self.folder.name)
        cases = ON_CUDA if DEVICE == "cuda" else EVERY if FULL else SLICE
        jobs = []
        for i, case in enumerate(cases):
            folder = root / str(i)
            folder.mkdir()
            self.unsharded(case, folder)
            emit(case, folder, case.mesh)
            jobs.append((str(case), str(folder), ranks_of(case.mesh)))
        collectives, sharded, outputs = self.check(
            jobs, self.found_by_ranks(root, jobs))
        print(f"{len(jobs)} programs, {outputs} outputs of ranks of which "
              f"{sharded} are parts, {collectives} collectives")
        self.assertGreater(collectives, 100)
        self.assertGreater(sharded, 50)


if __name__ == "__main__":
    unittest.main(verbosity=2)
