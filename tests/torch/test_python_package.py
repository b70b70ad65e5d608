"""The Python package as it is imported from a build.

$SHARDPROP_PACKAGE is the folder that holds it (scripts/test_torch.sh builds it).
"""

import copy
import inspect
import io
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import typing
import unittest

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
        plan = sp.plan(self.graph, "dp=2,tp=2")
        self.assertEqual(plan.status, "optimal")
        self.assertEqual(plan.mesh, {"dp": 2, "tp": 2})
        again = sp.plan(self.graph, {"dp": 2, "tp": 2}, pins=None)
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
            # What runs in the background ignores it.
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


class Propagation(unittest.TestCase):
    def test_one_operator_says_what_moves(self):
        found = sp.propagate(
            "tp=2", "aten.mm.default", ["f32[16,8] S(1)", "f32[8,4] R"]
        )
        self.assertEqual(found.inputs, ("S(1)", "S(0)"))
        self.assertEqual(found.outputs, ("f32[16,4] P(sum)",))
        self.assertEqual(found.moves, {1: ("slice R -> S(0)",)})

    def test_lists_and_keywords(self):
        found = sp.propagate(
            (2, 2), "aten.cat.default", [["f32[4,6] S(0),R", "f32[4,2] S(0),R"]],
            {"dim": 1},
        )
        self.assertEqual(found.outputs, ("f32[4,8] S(0),R",))
        self.assertEqual(found.moves, {})

    def test_bad_calls_are_errors_with_codes(self):
        tensor = "f32[4,4] R"
        for mesh, op, args, code in (
            ("2", "aten.mmm.default", [tensor], "SP0508"),
            ("2", "aten.mm.default", [tensor, "f32[4,4] S(7)"], "SP0303"),
            ("2", "aten.mm.default", [tensor, object()], "SP0505"),
            ("2", "aten.mm.default", [tensor, tensor, tensor], "SP0503"),
        ):
            with self.subTest(op=op, args=str(args)):
                with self.assertRaises(sp.Error) as caught:
                    sp.propagate(mesh, op, args)
                self.assertEqual(caught.exception.code, code)


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
