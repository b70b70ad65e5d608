"""Tests malformed files: deep, wide, truncated, duplicated, forged."""

import copy
import gzip
import json
import os
import pathlib
import threading
import time
import unittest
import warnings
import zipfile

import command_line
from command_line import CONTROL, MLP, Case, shardprop

GRAPH = json.loads(gzip.decompress(pathlib.Path(MLP).read_bytes()))
DEEP = "[" * 100_000 + "]" * 100_000
SECONDS = 10  # for what was quadratic; all take well under one


class Graphs(Case):
    def explain(self, graph):
        text = graph if isinstance(graph, (str, bytes)) else json.dumps(graph)
        return shardprop("explain", self.file("g.json", text), "--mesh", "2,2")

    def changed(self, change):
        graph = copy.deepcopy(GRAPH)
        change(graph["graph_module"]["graph"]["tensor_values"])
        return self.explain(graph)

    def test_impossible_tensors_are_malformed_input(self):
        def strides(values):
            values["relu"]["strides"][0] = {"as_int": -2147483649}

        def large(values):
            values["addmm"]["strides"][1] = {"as_int": 2**62}

        def short(values):
            del values["p_up_bias"]["strides"][0]

        def rank(values):
            values["relu"]["sizes"] = [{"as_int": 1}] * 65
            values["relu"]["strides"] = [{"as_int": 1}] * 65

        def beyond(values):
            values["relu"]["strides"][0] = {"as_int": 2**63}

        for change in (strides, large, short, rank, beyond):
            with self.subTest(change.__name__):
                self.refused(self.changed(change), 3, "g.json")

    def test_names_do_not_reach_the_terminal_raw(self):
        graph = copy.deepcopy(GRAPH)
        nodes = graph["graph_module"]["graph"]["nodes"]
        nodes[0]["target"] = "torch.ops.aten.\x1b[31mX\x07\nerror[SP9999]: forged"
        done = self.explain(graph)
        self.assertIn("\\x1b[31mX\\x07\\n", done.stderr + done.stdout)
        for text in (done.stdout, done.stderr):
            self.assertIsNone(CONTROL.search(text))
            self.assertNotIn("\nerror[SP9999]", text)

    def test_parameter_and_module_names_are_escaped(self):
        text = json.dumps(GRAPH).replace("up.weight", "\\u001b[31mup\\nforged\\u009b")
        done = self.explain(text)
        self.answered(done)
        self.assertIn("\\x1b[31mup\\nforged\\x9b", done.stdout)
        self.assertIsNone(CONTROL.search(done.stdout))
        self.assertNotIn("\nforged", done.stdout)

    def test_a_path_that_is_not_utf8(self):
        path = bytes(self.folder) + b"/\xff\x1b.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(GRAPH, file)
        for form in ("text", "json"):
            done = shardprop(
                "explain", path.decode("utf-8", "surrogateescape"), "--mesh", "2",
                "--format", form,
            )  # fmt: skip
            self.answered(done)
        with open(path, "w", encoding="utf-8") as file:
            file.write("{")
        done = shardprop("explain", path.decode("utf-8", "surrogateescape"), "--mesh", "2")
        self.refused(done, 3, "\\xff\\x1b.json")


class Archives(Case):
    def archive(self, names, patch=None):
        path = self.folder / "g.pt2"
        with zipfile.ZipFile(path, "w") as packed:
            for name in names:
                packed.writestr(f"g/models/{name}.json", json.dumps(GRAPH))
        if patch is not None:
            # The loop visits every local (PK 3 4) and central (PK 1 2) header.
            data = bytearray(path.read_bytes())
            for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
                spot = data.find(mark)
                while spot >= 0:
                    patch(data, spot + at)
                    spot = data.find(mark, spot + 4)
            path.write_bytes(data)
        return path

    def explain(self, path, *flags):
        return shardprop("explain", path, "--mesh", "2", *flags)

    def test_several_programs(self):
        path = self.archive([f"p{i}" for i in range(50)])
        self.refused(self.explain(path), 3, "SP0405", "--program", "and 42 more")
        self.answered(self.explain(path, "--program", "p7"))
        self.answered(shardprop("ops", "--supported", path, "--program", "p7"))
        self.refused(self.explain(path, "--program", "p77"), 3, "`p77`", "and 42 more")

    def test_a_plan_says_of_which_program_it_is(self):
        path = self.archive(["p1", "p2"])
        plan = self.file("plan.json", self.explain(path, "--program", "p2", "--format", "json").stdout)
        self.assertEqual(json.loads(plan.read_bytes())["options"]["program"], "p2")
        self.answered(shardprop("explain", path, "--plan", plan))
        self.refused(shardprop("explain", path, "--plan", plan, "--program", "p1"), 2, "SP0001",
                     "the plan was made with --program p2", "--> --program p1")

    def test_a_name_that_occurs_twice(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = self.archive(["model", "model"])
        self.refused(self.explain(path), 3, "g/models/model.json twice")

    def test_encrypted(self):
        def encrypt(data, flags):
            data[flags] |= 1

        done = self.explain(self.archive(["model"], encrypt))
        self.refused(done, 3, "encrypted", "without a password")

    def test_another_compression(self):
        def method(data, flags):
            data[flags + 2] = 97

        done = self.explain(self.archive(["model"], method))
        self.refused(done, 3, "cannot be read", "torch.export.save")

    def test_a_pipe(self):
        read, write = os.pipe()
        content = self.archive(["model"]).read_bytes()
        feeder = threading.Thread(
            target=lambda: (os.write(write, content), os.close(write))
        )
        feeder.start()
        done = shardprop("explain", "/dev/stdin", "--mesh", "2", stdin=read)
        feeder.join()
        os.close(read)
        self.answered(done)


class Plans(Case):
    def setUp(self):
        super().setUp()
        done = shardprop("explain", MLP, "--mesh", "dp=2,tp=2", "--format", "json")
        self.answered(done)
        self.text = done.stdout

    def explain(self, text):
        return shardprop("explain", MLP, "--plan", self.file("plan.json", text))

    def test_deep_values(self):
        for place in ('"name": "mlp_dynamic"', '"size": 2', '"solve_seconds": '):
            self.assertIn(place, self.text)
            key = place.split(":")[0]
            text = self.text.replace(place, f"{key}: {DEEP}, \"x\": ", 1)
            self.refused(self.explain(text), 3, "SP0706", "nests deeper")

    def test_wide_objects_take_linear_time(self):
        wide = ",".join(f'"k{i}": {i}' for i in range(100_000))
        began = time.monotonic()
        text = self.text.replace("{", "{" + wide + ",", 1)
        self.refused(self.explain(text), 3, "unknown key `k0`")
        self.took_time(time.monotonic() - began, SECONDS)

    def test_doubled_and_unknown_keys(self):
        status = '"status": "optimal"'
        self.refused(
            self.explain(self.text.replace(status, f"{status}, {status}")),
            3,
            "twice",
            "$.status",
        )
        self.refused(
            self.explain(self.text.replace(status, status + ', "Status": 1')),
            3,
            "unknown key `Status`",
        )
        nested = self.text.replace('"role":', '"rolle": 1, "role":', 1)
        self.refused(self.explain(nested), 3, "unknown key `rolle`", "$.values.")

    def test_numbers(self):
        for number in ("NaN", "-1", "9223372036854775808", "1e400"):
            text = self.text.replace(
                '"solve_seconds": ', f'"solve_seconds": {number}, "x": '
            )
            if number != "-1":
                self.refused(self.explain(text), 3, "SP0706")
        text = self.text.replace('"ops": 7', '"ops": 18446744073709551623')
        self.refused(self.explain(text), 3, "64 bits", "$.graph.ops")

    def test_a_plan_of_another_graph(self):
        other = command_line.TINY / "vit_infer.json.gz"
        plan = self.file("plan.json", self.text)
        done = shardprop("explain", other, "--plan", plan)
        self.refused(done, 3, "SP0708")

    def test_cut_off_anywhere(self):
        for i in range(1, 40):
            text = self.text[: len(self.text) * i // 40]
            self.refused(self.explain(text), 3, "SP0706", "-->")


class Problems(Case):
    GOOD = (
        '{"problem": {"name": "x", "nodes": {"intervals": [[0, 1]], '
        '"costs": [[1, 2]], "usages": [[0, 0]]}, "edges": {"nodes": [], "costs": []}}}'
    )

    def solve(self, content, name="p.json"):
        return shardprop("solve", self.file(name, content), "--format", "json")

    def test_a_gzip_that_ends_early(self):
        packed = gzip.compress(self.GOOD.encode())
        self.answered(self.solve(packed, "p.json.gz"))
        for cut in range(1, len(packed) - 2):
            done = self.solve(packed[:-cut], "p.json.gz")
            self.refused(done, 3, "ends too early")

    def test_doubled_keys(self):
        nodes = '"nodes": {"intervals": [[0, 1]], "costs": [[5]], "usages": [[0]]}'
        for first in ('"name": "y"', nodes, '"edges": {"nodes": [], "costs": []}'):
            text = self.GOOD.replace("{", "{" + first + ", ", 2).replace(first + ", ", "", 1)
            self.refused(self.solve(text), 3, "appears twice", "$.problem")
        text = self.GOOD.replace('"edges"', nodes + ', "edges"')
        self.refused(self.solve(text), 3, "`nodes` appears twice", "$.problem")

    def test_unknown_and_missing_keys(self):
        self.refused(
            self.solve(self.GOOD.replace('"nodes"', '"Nodes"', 1)),
            3,
            "unknown key `Nodes`",
            "did you mean `nodes`?",
        )
        self.refused(self.solve('{"problem": {}}'), 3, "`nodes` is missing")
        self.refused(self.solve("{}"), 3, "`problem` is missing")
        self.refused(self.solve(self.GOOD[:-1] + ', "later": 1}'), 3, "`later`")

    def test_numbers(self):
        for number, word in {
            "1.": "a number is malformed",
            "01": "a number is malformed",
            "+1": "a number is malformed",
            "--1": "a number is malformed",
            "1.5": "not an integer",
            "9223372036854775808": "64 bits",
            "-9223372036854775809": "64 bits",
            "1e400": "64 bits",
            "1e19": "64 bits",
            "NaN": "an integer is expected",
        }.items():
            done = self.solve(self.GOOD.replace("[1, 2]", f"[{number}, 2]"))
            self.refused(done, 3, word, "$.problem.nodes.costs[0][0]")
        for number, cost in {"1.0": 1, "-0": 0, "1e2": 2, "-3e0": -3}.items():
            done = self.solve(self.GOOD.replace("[1, 2]", f"[{number}, 2]"))
            self.answered(done)
            self.assertEqual(json.loads(done.stdout)["cost"], cost)

    def test_places(self):
        done = self.solve(self.GOOD.replace("[1, 2]", "[1 2]"))
        self.refused(done, 3, "$.problem.nodes.costs[0]", "at byte", "help")
        self.refused(self.solve(DEEP), 3, "an object is expected")
        text = self.GOOD.replace("[1, 2]", DEEP)
        self.refused(self.solve(text), 3, "an integer is expected")


class Topologies(Case):
    def load(self, content):
        return shardprop(
            "explain", MLP, "--mesh", "2", "--topology", self.file("t.toml", content)
        )

    def test_deep_keys_and_values(self):
        dotted = ".".join(["a"] * 100_000)
        for text in (f"{dotted} = 1\n", f"[{dotted}]\n", f"a = {DEEP}\n",
                     "a = " + "{b=" * 100_000 + "1" + "}" * 100_000):  # fmt: skip
            self.refused(self.load(text), 3, "SP0111")

    def test_as_deep_as_is_read(self):
        dotted = ".".join(["a"] * 10_000)
        self.refused(self.load(f"{dotted} = 1\n"), 3, "unknown key `a`")

    def test_wide_tables(self):
        began = time.monotonic()
        wide = "".join(f"k{i} = 1\n" for i in range(80_000))
        self.refused(self.load(wide), 3, "unknown key `k0`")
        self.took_time(time.monotonic() - began, SECONDS)
        self.refused(self.load("#" * (2 << 20)), 3, "more than 1048576 bytes")

    def test_faults_inside_are_malformed_input(self):
        self.refused(self.load('base = "nope"\n'), 3, "t.toml")
        self.refused(self.load("[node]\nlatency_us = -1\n"), 3, "t.toml")
        self.refused(self.load("[node]\nlatency_uss = 1\n"), 3, "latency_us`?")

    def test_names_are_escaped(self):
        done = self.load('name = "\\u001b[31m\\nforged"\n')
        self.answered(done)
        self.assertIn("\\x1b[31m\\nforged", done.stdout)
        done = shardprop(
            "redistribute", "--mesh", "2", "--shape", "8", "S(0)", "R",
            "--topology", self.folder / "t.toml",
        )  # fmt: skip
        self.answered(done)
        self.assertIn("\\x1b[31m\\nforged", done.stdout)


if __name__ == "__main__":
    command_line.main()
