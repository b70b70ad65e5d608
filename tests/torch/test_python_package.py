"""The Python package as it is imported from a build.

$SHARDPROP_PACKAGE is the folder that holds it (scripts/test_torch.sh builds it).
"""

import concurrent.futures
import copy
import inspect
import io
import json
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import typing
import unittest
import zipfile

from running.package import PACKAGE
import shardprop as sp

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAPH = ROOT / "examples/graphs/tiny/llama3_train.json.gz"


class Graphs(unittest.TestCase):
    def test_a_path_bytes_and_a_file_give_the_same_graph(self):
        graph = sp.load_graph(GRAPH)
        self.assertEqual(graph.hash, sp.load_graph(GRAPH.read_bytes()).hash)
        with open(GRAPH, "rb") as file:
            self.assertEqual(graph.hash, sp.load_graph(file).hash)
        self.assertTrue(graph.has_backward)
        self.assertEqual(len(graph), sum(graph.operators.values()))
        self.assertIn(("model.embed_tokens.weight", "parameter"), graph.inputs)

    def test_what_cannot_be_read_says_why(self):
        with self.assertRaises(sp.Error) as caught:
            sp.load_graph("/nowhere/model.pt2")
        self.assertEqual(caught.exception.code, "SP0401")
        self.assertEqual(caught.exception.place, "/nowhere/model.pt2")
        self.assertIn("help: check the path", str(caught.exception))
        with self.assertRaises(sp.Error):
            sp.load_graph(b"no graph")
        for wrong in (object(), io.StringIO("{}"), 3):
            with self.assertRaisesRegex(TypeError, "not a " + type(wrong).__name__):
                sp.load_graph(wrong)

    def test_sizes_that_depend_on_data(self):
        path = ROOT / "tests" / "golden" / "inputs" / "unbacked.json"
        self.assertIn("--bound u0=N", " ".join(sp.load_graph(path).notes))
        bound = sp.load_graph(path, bounds={"u0": 4})
        self.assertNotIn("--bound", " ".join(bound.notes))
        self.assertEqual(sp.load_graph(path.read_bytes(), bounds={"u0": 4}).hash, bound.hash)
        with self.assertRaisesRegex(sp.Error, "`u9` is not a size of this program"):
            sp.load_graph(path, bounds={"u9": 4})


    def test_symbolic_sizes_are_set(self):
        path = ROOT / "examples/graphs/tiny/mlp_dynamic.json.gz"
        exported = sp.load_graph(path)
        for sizes in ({"s77": 8}, {"batch": 8}):
            graph = sp.load_graph(path, sizes=sizes)
            self.assertNotEqual(graph.hash, exported.hash)
            self.assertEqual(sp.plan(graph, 2).values["x"]["shape"], [8, 6, 12])
        with self.assertRaisesRegex(sp.Error, "`s77` cannot be 65"):
            sp.load_graph(path, sizes={"s77": 65})

    def test_fixed_sizes_follow_another_export(self):
        path = ROOT / "examples/graphs/tiny/vit_infer.json.gz"
        with self.assertRaisesRegex(sp.Error, "another export has no use"):
            sp.load_graph(path, other_sizes=path)
        for other in (path, [path], path.read_bytes()):
            with self.assertRaisesRegex(sp.Error, "in all exports"):
                sp.load_graph(path, sizes={"batch": 64}, other_sizes=other)

    def test_they_are_shown_and_documented(self):
        self.assertEqual(
            repr(sp.load_graph(GRAPH)),
            f"<Graph llama3_train: {len(sp.load_graph(GRAPH))} operators, "
            f"{len(sp.load_graph(GRAPH).inputs)} inputs, forward and backward>",
        )
        for name in ("name", "hash", "has_backward", "operators", "inputs", "notes"):
            self.assertTrue(getattr(sp.Graph, name).__doc__, name)
        self.assertIn("load_graph", sp.Graph.__doc__)


class Copies(unittest.TestCase):
    """Plans and graphs go to other processes, and are copied."""

    def test_plans(self):
        plan = sp.plan(GRAPH, "dp=2,tp=2", gap=0, pins={"lm_head.weight": "S(0),R"})
        plan.interrupted = True
        for again in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan), copy.copy(plan)):
            self.assertEqual(again.data, plan.data)
            self.assertEqual(again.explain(detail=True), plan.explain(detail=True))
            self.assertTrue(again.interrupted)
        again.data["status"] = "changed"
        self.assertEqual(plan.status, "optimal")

    def test_graphs(self):
        unbacked = ROOT / "tests" / "golden" / "inputs" / "unbacked.json"
        with tempfile.TemporaryDirectory() as folder:
            archive = pathlib.Path(folder, "several.pt2")
            with zipfile.ZipFile(archive, "w") as out:
                for name in ("first", "second"):
                    out.writestr(f"root/models/{name}.json", unbacked.read_text())
                out.writestr("root/data/weights/weight_0", b"\0" * 100_000)
            for graph in (
                sp.load_graph(GRAPH),
                sp.load_graph(GRAPH.read_bytes()),
                sp.load_graph(unbacked, bounds={"u0": 4}),
                sp.load_graph(archive, program="second", bounds={"u0": 8}),
                sp.load_graph(archive.read_bytes(), program="first"),
            ):
                pickled = pickle.dumps(graph)
                self.assertLess(len(pickled), 60_000)
                again = pickle.loads(pickled)
                for one in (again, pickle.loads(pickle.dumps(again))):
                    self.assertEqual(one.hash, graph.hash)
                    self.assertEqual(one.notes, graph.notes)
                    self.assertEqual(repr(one), repr(graph))
                self.assertIs(copy.deepcopy(graph), graph)
                self.assertIs(copy.copy(graph), graph)

    def test_graphs_whose_file_has_changed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "graph.json")
            path.write_bytes((ROOT / "tests/golden/inputs/unbacked.json").read_bytes())
            graph = sp.load_graph(path)
            path.write_bytes((ROOT / "tests/golden/inputs/custom_op.json").read_bytes())
            with self.assertRaises(sp.Error) as caught:
                pickle.dumps(graph)
            self.assertEqual(caught.exception.place, str(path))
            path.unlink()
            with self.assertRaises(sp.Error) as caught:
                pickle.dumps(graph)
            self.assertEqual(caught.exception.code, "SP0401")

    def test_they_reach_other_processes(self):
        graph = sp.load_graph(GRAPH)
        plan = sp.plan(graph, 2)
        with concurrent.futures.ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn")
        ) as pool:
            self.assertEqual(pool.submit(repr, plan).result(), repr(plan))
            self.assertEqual(pool.submit(len, graph).result(), len(graph))


class Errors(unittest.TestCase):
    def test_they_are_copied_and_pickled_whole(self):
        error = sp.Error("SP0001", "no", "--mesh", ["seen: 3"], "say 4")
        for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            self.assertEqual(str(again), str(error))
            self.assertEqual(again.notes, ["seen: 3"])


class Types(unittest.TestCase):
    def test_hints_are_read_without_torch(self):
        for name in sp.__all__:
            value = getattr(sp, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                typing.get_type_hints(value)
        for function in (sp.Plan.save, sp.Plan.placements, sp.Error.__init__):
            self.assertIn("return", typing.get_type_hints(function))

    def test_the_stub_lists_what_the_extension_has(self):
        stub = pathlib.Path(sp.__file__).with_name("_core.pyi").read_text()
        for name in dir(sp._core):
            if not name.startswith("_"):
                self.assertRegex(stub, rf"(?m)^(class|def) {name}\b")


class Plans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.graph = sp.load_graph(GRAPH)

    def test_meshes_are_written_in_several_ways(self):
        plan = sp.plan(self.graph, "dp=2,tp=2", gap=0)
        self.assertEqual(plan.status, "optimal")
        self.assertEqual(plan.mesh, {"dp": 2, "tp": 2})
        again = sp.plan(self.graph, {"dp": 2, "tp": 2}, gap=0, pins=None)
        self.assertEqual(plan.objective_us, again.objective_us)
        self.assertEqual(list(sp.plan(self.graph, (2, 2)).mesh), ["d0", "d1"])
        self.assertEqual(sp.plan(self.graph, 2).mesh, {"d0": 2})

    def test_options_are_those_of_the_library(self):
        plan = sp.plan(
            self.graph,
            "dp=2,tp=2",
            memory=None,
            optimizer="adamw",
            pins={"lm_head.weight": "S(0),R"},
            seed=3,
        )
        self.assertEqual(plan.placements("lm_head.weight"), ["S(0)", "R"])
        self.assertIsNone(plan.memory["limit_bytes"])
        names = {row["name"] for row in sp.plan_options()}
        self.assertLessEqual({"memory", "optimizer", "pin", "time_limit"}, names)
        with self.assertRaises(sp.Error) as caught:
            sp.plan(self.graph, "dp=2", memori="1GiB")
        self.assertIn("memory", caught.exception.help)
        with self.assertRaises(KeyError):
            plan.placements("no.such.weight")

    def test_a_search_starts_from_a_plan(self):
        limits = {"work_limit": 20_000_000}
        first = sp.plan(self.graph, "dp=2,tp=2", **limits)
        pins = {"lm_head.weight": "R,R"}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plan.json"
            first.save(path)
            answers = [sp.plan(self.graph, "dp=2,tp=2", start_from=start, pins=pins, **limits)
                       for start in (first, path, str(path))]
        for plan in answers:
            self.assertIn("earlier_plan", str(plan.data["notes"]))
            self.assertEqual(plan.data["copies"], answers[0].data["copies"])
        with self.assertRaises(sp.Error):
            sp.plan(self.graph, "dp=2,tp=2", start_from="no/such/plan.json")

    def test_plans_are_those_of_the_command_line(self):
        for more in ({}, {"memory": None, "overlap": 0.2}):
            options = {"gap": 0, "work_limit": 20_000_000, **more}
            with self.subTest(options), tempfile.TemporaryDirectory() as folder:
                out = pathlib.Path(folder) / "plan.json"
                flags = []
                for name, value in options.items():
                    text = "none" if value is None else str(value)
                    flags += ["--" + name.replace("_", "-"), text]
                command = ["shardprop", "explain", str(GRAPH), "--mesh", "dp=2,tp=2", *flags]
                self.assertEqual(
                    sp._core.run([*command, "--format", "json", "-o", str(out)]), 0)
                said = json.loads(out.read_text())
                made = json.loads(sp.plan(self.graph, "dp=2,tp=2", **options).to_json())
                for plan in (said, made):
                    plan.pop("solve_seconds")
                self.assertEqual(made["options"], said["options"])
                self.assertEqual(made, said)

    def test_a_declaration_is_given_when_the_graph_is_read(self):
        path = ROOT / "tests" / "golden" / "inputs" / "custom_op.json"
        rule = "mylib::swiglu(Tensor a, Tensor b) -> Tensor=pointwise()"
        with self.assertRaisesRegex(sp.Error, "without the declaration of `mylib.swiglu`"):
            sp.plan(sp.load_graph(path), 2, rules=rule)
        plan = sp.plan(sp.load_graph(path, rules=rule), 2, rules=rule)
        self.assertEqual(plan.data["unsupported"], [])
        self.assertEqual(sp.plan(path, 2, rules=rule).data["unsupported"], [])

    def test_rules_are_those_of_the_command_line(self):
        graph = sp.load_graph(ROOT / "tests" / "golden" / "inputs" / "custom_op.json")
        rule = "mylib.swiglu=pointwise()"
        self.assertEqual(len(sp.plan(graph, 2).data["unsupported"]), 1)
        for rules in ([rule], {"mylib.swiglu": "pointwise()"}, rule):
            plan = sp.plan(graph, 2, rules=rules)
            self.assertEqual(plan.data["unsupported"], [])
            self.assertEqual(plan.data["options"]["rule"], [rule])
        # The plan brings its rules to what reads it.
        again = sp.Plan.from_json(plan.to_json())
        self.assertIn("mylib.swiglu", str(sp._core.lower(again._core, graph)))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plan.json"
            plan.save(path)
            program = str(ROOT / "tests" / "golden" / "inputs" / "custom_op.json")
            out = str(pathlib.Path(folder) / "out.txt")
            self.assertEqual(
                sp._core.run(["shardprop", "explain", program, "--plan", str(path), "-o", out]), 0
            )
        for wrong, says in (
            ("mylib.other=pointwise()", "not an operator of the graph"),
            ("mylib.swiglu", "written OP=ROW"),
            ("mylib.swiglu=nothing()", "nothing"),
        ):
            with self.assertRaisesRegex(sp.Error, says):
                sp.plan(graph, 2, rules=[wrong])

    def test_saved_plans_read_back(self):
        plan = sp.plan(self.graph, "dp=2,tp=2")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plan.json"
            plan.save(path)
            self.assertEqual([path], list(pathlib.Path(folder).iterdir()))
            self.assertEqual(sp.Plan.load(path).data, plan.data)
        with self.assertRaises(sp.Error):
            sp.Plan.from_json("{}")

    def test_files_that_are_no_plans_say_why(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, written, says in (
                ("absent.json", None, "does not exist"),
                (".", None, "directory"),
                ("bytes.json", b"\xff\xfe", ""),
                ("graph.json", b"{}", ""),
            ):
                path = pathlib.Path(folder, name)
                if written is not None:
                    path.write_bytes(written)
                with self.subTest(name=name), self.assertRaises(sp.Error) as caught:
                    sp.Plan.load(path)
                self.assertTrue(caught.exception.place.startswith(str(path)))
                self.assertIn(says, caught.exception.message)

    def test_pins_and_topologies_are_given_in_several_ways(self):
        topology = ROOT / "examples" / "topologies" / "dear-compute.toml"
        name = "lm_head.weight"
        plan = sp.plan(self.graph, "dp=2,tp=2", topology=topology, pins={name: "S(0),R"})
        text = sp.plan(
            self.graph, "dp=2,tp=2", topology=str(topology), pins={name: "S(0),R"}
        )
        self.assertEqual(plan.objective_us, text.objective_us)
        for pins in (
            {name: plan.placements(name)},
            {name: ("S(0)", "R")},
            [(name, "S(0),R")],
            [f"{name}=S(0),R"],
            f"{name}=S(0),R",
        ):
            again = sp.plan(self.graph, "dp=2,tp=2", topology=topology, pins=pins)
            self.assertEqual(again.placements(name), ["S(0)", "R"], pins)
            self.assertEqual(again.objective_us, plan.objective_us)

    def test_what_is_neither_is_an_error(self):
        for given, says in (
            ({"pins": 3}, "WHAT=HOW"),
            ({"pins": [("lm_head.weight",)]}, "WHAT=HOW"),
            ({"pins": {"lm_head.weight": 3}}, "not a placement"),
            ({"pins": {"lm_head.weight": [None, "R"]}}, "not a placement"),
            ({"pins": {"lm_head.weigth": "R,R"}}, "lm_head.weight"),
            ({"rules": {"mylib.op": 3}}, "WHAT=HOW"),
            ({"optimizer": "adam"}, "adamw"),
            ({"tim_limit": 3}, "time_limit"),
            ({"time_limit": "soon"}, "time_limit"),
            ({"topology": "dgx-h10"}, "dgx-h100"),
        ):
            with self.subTest(given=given), self.assertRaises(sp.Error) as caught:
                sp.plan(self.graph, "dp=2,tp=2", **given)
            self.assertIn(says, str(caught.exception))
        for mesh in (None, 2.5, object(), True):
            with self.subTest(mesh=mesh), self.assertRaises(sp.Error) as caught:
                sp.plan(self.graph, mesh)
            self.assertIn("is not a mesh", caught.exception.message)

    def test_text_is_escaped_in_notebooks(self):
        plan = sp.plan(self.graph, "dp=2,tp=2")
        html = plan._repr_html_()
        self.assertTrue(html.startswith("<pre>llama3_train"))
        self.assertNotIn("<", html[len("<pre>") : -len("</pre>")])

    def test_progress_is_told_and_its_exceptions_come_back(self):
        phases = []
        sp.plan(self.graph, "dp=2", progress=lambda phase, *_: phases.append(phase))
        self.assertEqual(phases[0], "set up")
        self.assertEqual(phases[-1], "report")

        def stop(*_):
            raise LookupError("enough")

        with self.assertRaises(LookupError):
            sp.plan(self.graph, "dp=2", progress=stop)

    def test_control_c_keeps_the_best_plan(self):
        program = (
            "import os, signal, sys, threading\n"
            f"sys.path.insert(0, {PACKAGE!r})\n"
            # A process that runs in the background ignores SIGINT.
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "import shardprop as sp\n"
            f"graph = sp.load_graph({str(ROOT)!r} + "
            "'/examples/graphs/llama3_8b_train.json.gz')\n"
            "def tell(phase, seconds, best, bound):\n"
            "    if best is not None: os.kill(os.getpid(), signal.SIGINT)\n"
            "plan = sp.plan(graph, '8,8', optimizer='adamw', progress=tell)\n"
            "print(plan.interrupted, plan.status)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("True "), done.stdout)


class Redistributions(unittest.TestCase):
    def test_steps_lead_from_source_to_target(self):
        plan = sp.redistribute("dp=2,tp=4", (4096, 4096), "bf16", "S(0),R", "R,S(1)")
        self.assertEqual([s.collective for s in plan.steps], ["slice", "all_gather"])
        self.assertEqual(plan.steps[0].src, "S(0),R")
        self.assertEqual(plan.steps[-1].dst, "R,S(1)")
        self.assertEqual(plan.bytes_per_rank, 4096 * 4096 * 2 // 8)
        self.assertIn("all_gather", str(plan))
        with self.assertRaises(sp.Error):
            sp.redistribute("dp=2", (4,), "f33", "R", "R")

    def test_dtypes_and_layouts_are_given_in_several_ways(self):
        plan = sp.redistribute("dp=2,tp=2", (4, 4), "f32", "R,R", "S(0),R")
        for dtype in ("float32", "torch.float32", "f32"):
            for dst in (["S(0)", "R"], ("S(0)", "R"), "S(0),R"):
                again = sp.redistribute("dp=2,tp=2", (4, 4), dtype, ["R", "R"], dst)
                self.assertEqual(again, plan)
        with self.assertRaisesRegex(sp.Error, "not a placement"):
            sp.redistribute("dp=2,tp=2", (4, 4), "f32", [1, 2], "R,R")


class Propagation(unittest.TestCase):
    def test_one_operator_says_what_moves(self):
        found = sp.propagate(
            "tp=2", "aten.mm.default", ["f32[16,8] S(1)", "f32[8,4] R"]
        )
        self.assertEqual(found.inputs, ("S(1)", "S(0)"))
        self.assertEqual(found.outputs, ("f32[16,4] P(sum)",))
        self.assertEqual(found.moves, {1: ("slice R -> S(0)",)})

    def test_an_operator_of_another_library(self):
        file = pathlib.Path("examples/operators/torchvision.ops")
        found = sp.propagate(
            "dp=2", "torchvision.roi_align.default",
            ["f32[2,8,32,32] R", "f32[100,5] S(0)", 0.25, 7, 5, 2, True],
            rules=file,
        )
        self.assertEqual(found.inputs, ("R", "S(0)"))
        self.assertEqual(found.outputs, ("f32[100,8,7,5] S(0)",))
        self.assertEqual(found.moves, {})
        with self.assertRaises(sp.Error):
            sp.propagate("dp=2", "mylib.f.default", ["f32[2] R"], rules="@none.ops")

    def test_a_file_of_rules_is_read_again(self):
        """An edited file, and the same relative path in another folder."""

        def outputs():
            return sp.propagate(
                "dp=2", "mylib.f.default", ["f32[4,6] S(0)"], rules="@own.ops"
            ).outputs

        def write(rule):
            declaration = "mylib::f(Tensor x) -> Tensor"
            pathlib.Path("own.ops").write_text(f"{declaration} = {rule}\n")

        before = pathlib.Path.cwd()
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            try:
                os.chdir(one)
                write("ab->ab")
                self.assertEqual(outputs(), ("f32[4,6] S(0)",))
                write("ab -> ba")
                self.assertEqual(outputs(), ("f32[6,4] S(1)",))
                os.chdir(two)
                write("ab->b")
                self.assertEqual(outputs(), ("f32[6] P(sum)",))
            finally:
                os.chdir(before)

    def test_lists_and_keywords(self):
        found = sp.propagate(
            (2, 2), "aten.cat.default", [["f32[4,6] S(0),R", "f32[4,2] S(0),R"]],
            {"dim": 1},
        )
        self.assertEqual(found.outputs, ("f32[4,8] S(0),R",))
        self.assertEqual(found.moves, {})

    def test_an_operator_on_lists_has_no_program(self):
        propagator = sp._core.Propagator([("d0", 2)], [], "dgx-h100")
        lists = [[propagator.parse("f32[4] S(0)"), propagator.parse("f32[6] R")]] * 2
        found = propagator.propagate("aten._foreach_mul.List", lists, {})
        self.assertFalse(found.needs_program)
        with self.assertRaisesRegex(sp.Error, "has no program of its own"):
            found.program(0)

    def test_bad_calls_are_errors_with_codes(self):
        tensor = "f32[4,4] R"
        for mesh, op, args, code in (
            ("2", "aten.mmm.default", [tensor], "SP0508"),
            ("2", "aten.mm.default", [tensor, "f32[4,4] S(7)"], "SP0303"),
            ("2", "aten.mm.default", [tensor, object()], "SP0505"),
            ("2", "aten.mm.default", [tensor, tensor, tensor], "SP0503"),
            ("2", object(), [tensor], "SP0001"),
        ):
            with self.subTest(op=op, args=str(args)):
                with self.assertRaises(sp.Error) as caught:
                    sp.propagate(mesh, op, args)
                self.assertEqual(caught.exception.code, code)


    def test_arguments_are_counted(self):
        tensor = "f32[4,4] R"
        for op, args, kwargs, says in (
            ("aten.mm.default", [tensor] * 3, {}, "given 3 positional arguments and takes 2"),
            # Its other arguments are given by name alone.
            ("aten.sum.default", [tensor, "f32"], {}, "given 2 positional arguments and takes 1"),
            ("aten.mm.default", [tensor] * 2, {"mat2": tensor}, "by position and by name"),
            ("aten.mm.default", [tensor] * 2, {"mat3": tensor}, "no argument `mat3`"),
            ("aten.mm.default", [tensor], {}, "lacks its argument `mat2`"),
        ):
            with self.subTest(op=op, args=args), self.assertRaises(sp.Error) as caught:
                sp.propagate("2", op, args, kwargs)
            self.assertIn(says, caught.exception.message)

    def test_dtypes_by_their_names(self):
        for dtype in ("bf16", "bfloat16"):
            found = sp.propagate("2", "aten._to_copy.default", ["float32[4,4] R"], {"dtype": dtype})
            self.assertEqual(found.outputs, ("bf16[4,4] R",))


class WithoutTorch(unittest.TestCase):
    def test_what_needs_torch_says_so(self):
        program = (
            "import sys\n"
            f"sys.path.insert(0, {PACKAGE!r})\n"
            "sys.modules['torch'] = None\n"
            "import shardprop as sp\n"
            "sp.torch.export\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True
        )
        self.assertIn("shardprop.torch needs PyTorch", done.stderr)


class CommandLine(unittest.TestCase):
    def test_the_console_script_is_the_command(self):
        done = subprocess.run(
            [sys.executable, "-m", "shardprop", "topologies"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": PACKAGE},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("dgx-h100", done.stdout)
        done = subprocess.run(
            [sys.executable, "-m", "shardprop", "explain", "nowhere.pt2", "--mesh", "2"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": PACKAGE},
        )
        self.assertEqual(done.returncode, 3, done.stderr)


if __name__ == "__main__":
    unittest.main()
