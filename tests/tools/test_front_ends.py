"""The command line, the Python package and the C API give the same answer to the same
request: the same bytes apart from the time that it took.

  test_front_ends.py BINARY C_LIBRARY [PYTHON_PACKAGE]

PYTHON_PACKAGE is the folder that holds the package `shardprop`; the interpreter must
be the one that its extension module was built for. torch is not needed."""

import ctypes
import itertools
import json
import re
import sys
import unittest

LIBRARY = sys.argv.pop(2) if len(sys.argv) > 2 else ""
PACKAGE = sys.argv.pop(2) if len(sys.argv) > 2 else ""

import command_line  # noqa: E402
from command_line import MLP, ROOT, TINY, Case, shardprop  # noqa: E402

LLAMA = str(TINY / "llama3_train.json.gz")
INPUTS = ROOT / "tests/golden/inputs"
CUSTOM = str(INPUTS / "custom_op.json")
UNBACKED = str(INPUTS / "unbacked.json")
SECONDS = re.compile(r'"solve_seconds": ?[0-9.e+-]+')
WORK = ("work_limit", "20000000")
# These options concern how the graph is read.
READING = ("rule", "bound", "size")


class CApi:
    """The functions of the C API that plan. An error that they return is raised."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.shardprop_error_text.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        function = getattr(self.c, f"shardprop_{name}")
        function.restype = ctypes.c_void_p
        error = function(*arguments)
        if error:
            text = self.c.shardprop_error_text(ctypes.c_void_p(error))
            raise RuntimeError(text.decode())

    def make(self, name, *arguments):
        out = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(out))
        return out

    def options(self, options):
        made = self.make("options_create")
        for name, value in options:
            self.call("options_set", made, name.encode(), value.encode())
        return made

    def option(self, options, name):
        text = self.make("options_get", options, name.encode())
        return ctypes.string_at(text).decode()

    def plan(self, graph, mesh, topology, options, start=None):
        chosen = self.options(options) if options else None
        if start is not None:
            text = start.read_bytes()
            self.call("options_set_start_from", chosen, self.make("plan_from_json", text))
        if any(name in READING for name, _ in options):
            library = None  # the graph's own, which has the rules
            loaded = self.make("load_with", graph.encode(), chosen)
        else:
            library = self.make("library_standard")
            loaded = self.make("load", graph.encode(), library)
        plan = self.make(
            "plan_make", loaded, self.make("mesh_parse", mesh.encode()),
            self.make("topology_find", topology and topology.encode()), library, chosen)
        return ctypes.string_at(self.make("plan_to_json", plan)).decode()


def of_python(graph, mesh, topology, options, start=None):
    """The plan of the Python package as JSON."""
    import shardprop as sp

    lists = {name: [text for key, text in options if key == name]
             for name in (*READING, "pin")}
    sizes = {
        key + "s": {name: int(size) for text in lists[key] for each in text.split(",")
                    for name, size in [each.split("=")]}
        for key in ("size", "bound")}
    read = sp.load_graph(graph, rules=lists["rule"], **sizes)
    more = {} if topology is None else {"topology": topology}
    return sp.plan(
        read, mesh, pins=lists["pin"], progress=False, start_from=start, **more,
        **{name: text for name, text in options if name not in lists}).to_json()


class FrontEnds(Case):
    def same(self, graph, mesh, *options, topology=None, front_ends=("C", "Python"),
             start=None):
        flags = [] if topology is None else ["--topology", topology]
        flags += [] if start is None else ["--start-from", start]
        for name, value in options:
            flags += ["--" + name.replace("_", "-"), value]
        done = shardprop("explain", graph, "--mesh", mesh, *flags, "--format", "json")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        answers = {"C": CApi(LIBRARY).plan(graph, mesh, topology, options, start)}
        if PACKAGE and "Python" in front_ends:
            answers["Python"] = of_python(graph, mesh, topology, options, start)
        self.assertEqual(len(SECONDS.findall(done.stdout)), 1)
        expected = SECONDS.sub("", done.stdout).splitlines()
        for front_end, answer in answers.items():
            lines = SECONDS.sub("", answer).splitlines()
            differs = next(
                (pair for pair in itertools.zip_longest(lines, expected)
                 if pair[0] != pair[1]), None)
            self.assertIsNone(differs, f"{front_end} and the command line")
        return json.loads(done.stdout)["options"]

    def test_without_options(self):
        for topology in (None, "dgx-a100"):
            with self.subTest(topology):
                used = self.same(MLP, "dp=2,tp=2", topology=topology, front_ends=("C",))
                self.assertNotEqual(used["memory"], "none")
                self.assertEqual(used["gap"], "0.01")
                self.assertEqual(used["time_limit"], "30")
                self.assertEqual(used["work_limit"], "none")

    def test_plans_that_others_run_have_a_work_limit(self):
        folder = self.folder / "emitted"
        self.answered(shardprop("emit", MLP, "--mesh", "dp=2,tp=2", "-o", folder))
        used = [json.loads((folder / "plan.json").read_text())["options"]]
        if PACKAGE:
            used.append(json.loads(of_python(MLP, "dp=2,tp=2", None, []))["options"])
        for options in used:
            self.assertEqual(options["gap"], "0.01")
            self.assertGreater(int(options["work_limit"]), 1_000_000_000)
        given = self.folder / "given"
        self.answered(shardprop("emit", MLP, "--mesh", "dp=2,tp=2", "--time-limit", "20",
                                "-o", given))
        options = json.loads((given / "plan.json").read_text())["options"]
        self.assertEqual((options["time_limit"], options["work_limit"]), ("20", "none"))

    def test_a_search_that_starts_from_a_plan(self):
        file = self.folder / "start.json"
        done = shardprop("explain", LLAMA, "--mesh", "dp=2,tp=2", "--work-limit",
                         "20000000", "--format", "json", "-o", file)
        self.answered(done)
        self.same(LLAMA, "dp=2,tp=2", WORK, ("pin", "lm_head.weight=R,R"), start=file)

    def test_python_keeps_a_warm_start(self):
        if not PACKAGE:
            self.skipTest("needs the Python package")
        import shardprop as sp

        graph = sp.load_graph(LLAMA)
        plan = sp.plan(graph, "dp=2,tp=2", keep_warm_start=True, progress=False)
        pins = {"lm_head.weight": "R,R"}
        warm = sp.plan(graph, "dp=2,tp=2", start_from=plan, pins=pins, progress=False)
        exact = sp.plan(graph, "dp=2,tp=2", pins=pins, gap=0, progress=False)
        warm, exact = json.loads(warm.to_json()), json.loads(exact.to_json())
        self.assertLessEqual(warm["gap"], 0.01)
        self.assertLessEqual(warm["lower_bound_us"], exact["objective_us"])
        self.assertGreaterEqual(warm["objective_us"], exact["objective_us"])

    def test_a_work_limit_is_the_only_limit(self):
        for graph in (MLP, LLAMA):
            with self.subTest(graph):
                self.same(graph, "2,2", WORK)

    def test_options_that_are_given(self):
        cases = [[("memory", "none")], [("memory", "1KiB")], [("overlap", "none")],
                 [("optimizer", "adamw"), ("accumulate", "4")],
                 [("optimizer", "none"), ("seed", "3")], [("precision", "own")],
                 [("pin", "*=R,R")], [("recipe", "fsdp=dp")],
                 [("fusion", "none"), ("pin", "*.q_proj.weight=R,S(0)"),
                  ("pin", "*.k_proj.weight=R,S(0)")]]
        for options in cases:
            with self.subTest(options):
                self.same(LLAMA, "dp=2,tp=2", WORK, *options)

    def test_how_the_graph_is_read(self):
        cases = [(CUSTOM, [("rule", "mylib.swiglu=pointwise()")]),
                 (CUSTOM, [("rule", "mylib::swiglu(Tensor a, Tensor b) -> Tensor"
                                    "=pointwise()")]),
                 (UNBACKED, [("bound", "u0=4")]),
                 (MLP, [("size", "s77=8")]), (MLP, [("size", "batch=16")])]
        for graph, options in cases:
            with self.subTest(options):
                used = self.same(graph, "2", WORK, *options)
                for name, text in options:
                    self.assertEqual(used[name], [text])

    def test_a_file_of_operators(self):
        used = self.same(CUSTOM, "2", WORK,
                         ("rule", "@examples/operators/mylib.ops"))
        self.assertEqual(
            used["rule"],
            ["mylib::swiglu(Tensor a, Tensor b) -> Tensor=pointwise().promoted()"
             '.linear_in(b).decomposed("return a * sigmoid(a) * b")'])

    def test_the_list_of_operators_has_those_of_rules(self):
        rules = ("--rule", "@examples/operators/mylib.ops", "--rule",
                 "acme.twice=pointwise()")
        rows = {row["op"]: row for row in
                json.loads(shardprop("ops", "--format", "json", *rules).stdout)}
        self.assertEqual(rows["mylib.swiglu.default"]["family"], "user")
        self.assertEqual(rows["acme.twice"]["rule"], "pointwise()")
        listed = json.loads(shardprop("ops", "--format", "json").stdout)
        self.assertFalse([row for row in listed if row["family"] == "user"])

    def test_a_plan_suffices_to_read_its_graph(self):
        for graph, options in ((MLP, [("size", "s77=8")]),
                               (CUSTOM, [("rule", "mylib.swiglu=pointwise()")])):
            with self.subTest(options):
                plan = CApi(LIBRARY).plan(graph, "2", None, [WORK, *options])
                if PACKAGE:
                    plan = of_python(graph, "2", None, [WORK, *options])
                file = self.file("plan.json", plan)
                self.answered(shardprop("explain", graph, "--plan", file))


class COptions(Case):
    def test_options_of_the_reading(self):
        api = CApi(LIBRARY)
        options = api.options([("size", "s0=8,s1=4"), ("size", "seq=2"),
                               ("program", "second"), ("bound", "u0=1")])
        for name, text in (("size", "s0=8 s1=4 seq=2"), ("program", "second"),
                           ("bound", "u0=1"), ("rule", "")):
            self.assertEqual(api.option(options, name), text)

    def test_errors_have_the_text_as_their_place(self):
        api = CApi(LIBRARY)
        for graph, name, text in ((CUSTOM, "rule", "mylib.swiglu"),
                                  (CUSTOM, "rule", "mylib.other=pointwise()"),
                                  (UNBACKED, "bound", "u9=4"), (MLP, "size", "s77=65")):
            with self.assertRaisesRegex(RuntimeError, re.escape(f"--> {name} {text}")):
                api.make("load_with", graph.encode(), api.options([(name, text)]))


if __name__ == "__main__":
    if PACKAGE:
        sys.path.insert(0, PACKAGE)
    command_line.main()
