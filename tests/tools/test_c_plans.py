"""Plans of the C API are those of the command line: same options, same defaults.
The Python package is held to the same in tests/torch/test_python_package.py.

Takes the command line and the shared library of the C API."""

import ctypes
import json
import sys
import unittest

LIBRARY = sys.argv.pop(2) if len(sys.argv) > 2 else ""

import command_line  # noqa: E402
from command_line import MLP, TINY, Case, shardprop  # noqa: E402

LLAMA = str(TINY / "llama3_train.json.gz")


class Api:
    """The functions of the C API that plan, raising what they return."""

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

    def plan(self, graph, mesh, topology=None, options=None):
        def text(value):
            return None if value is None else value.encode()

        library = self.make("library_standard")
        made = None
        if options is not None:
            made = self.make("options_create")
            for name, value in options.items():
                self.call("options_set", made, text(name), text(value))
        plan = self.make(
            "plan_make", self.make("load", text(graph), library),
            self.make("mesh_parse", text(mesh)),
            self.make("topology_find", text(topology)), library, made)
        json_text = self.make("plan_to_json", plan)
        return json.loads(ctypes.string_at(json_text).decode())


class Defaults(Case):
    def compared(self, graph, mesh, topology=None, options=None):
        flags = [] if topology is None else ["--topology", topology]
        for name, value in (options or {}).items():
            flags += ["--" + name.replace("_", "-"), value]
        done = shardprop("explain", graph, "--mesh", mesh, *flags, "--format", "json")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        said = json.loads(done.stdout)
        made = Api(LIBRARY).plan(graph, mesh, topology, options)
        for plan in (said, made):
            plan.pop("solve_seconds")
        self.assertEqual(made["options"], said["options"])
        self.assertEqual(made, said)
        return made

    def test_without_options(self):
        for topology in (None, "dgx-a100"):
            with self.subTest(topology):
                plan = self.compared(MLP, "dp=2,tp=2", topology)
                self.assertNotEqual(plan["options"]["memory"], "none")

    def test_a_work_limit_is_the_only_limit(self):
        options = {"work_limit": "20000000"}
        for graph in (MLP, LLAMA):
            with self.subTest(graph):
                self.compared(graph, "2,2", options=options)

    def test_options_that_are_given(self):
        cases = [{"memory": "none"}, {"memory": "1KiB"}, {"overlap": "none"},
                 {"optimizer": "adamw", "accumulate": "4"},
                 {"optimizer": "none"}, {"pin": "*=R,R"}, {"recipe": "fsdp=dp"}]
        for options in cases:
            with self.subTest(options):
                self.compared(LLAMA, "dp=2,tp=2",
                              options={"work_limit": "20000000", **options})


if __name__ == "__main__":
    command_line.main()
