"""Command lines that once crashed, hung, took all memory, lost an answer or
printed a false one. README.md in this folder lists the test of each report.

  test_reproducers.py BINARY
"""

import gzip
import json
import os
import pathlib
import resource
import subprocess
import tempfile
import time
import unittest

import command_line
import made_graphs
from command_line import MLP, SANITIZED, Case, shardprop

MIB = 1 << 20


def measured(*arguments, limits=()):
    """The finished run, its wall seconds and its peak of memory in MiB."""

    def set_limits():
        for what, value in limits:
            resource.setrlimit(what, (value, value))

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        child = subprocess.Popen(
            [command_line.BINARY, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={"NO_COLOR": "1"},
            preexec_fn=set_limits,
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        took = time.monotonic() - began
        out.seek(0)
        err.seek(0)
        done = subprocess.CompletedProcess(
            arguments, child.returncode, out.read().decode(), err.read().decode()
        )
    return done, took, usage.ru_maxrss / 1024


class Ranks(Case):
    def test_64_kib_on_1024_ranks(self):
        done, took, mib = measured(
            "redistribute", "--mesh", "1024", "--shape", "1024,16", "--run", "local", "S(0)", "R"
        )
        self.answered(done)
        self.took_memory(mib, 500)
        self.took_time(took, 30)  # 10 where nothing else runs

    @unittest.skipIf(SANITIZED, "sanitizers need more addresses than that")
    def test_little_memory_is_an_error(self):
        for limit in (100 * MIB, *[160 * MIB] * 4, 400 * MIB, 4_000_000 * 1024):
            done, _, _ = measured(
                "redistribute",
                "--mesh",
                "1024",
                "--shape",
                "1024,16",
                "--run",
                "local",
                "S(0)",
                "R",
                limits=[(resource.RLIMIT_AS, limit)],
            )
            self.assertIn(done.returncode, (0, 1), done.stderr)
            if done.returncode == 1:
                self.assertRegex(done.stderr, r"^error\[SP\d{4}\]")

    def test_between_meshes_of_100000_ranks(self):
        done, took, mib = measured(
            "redistribute",
            "--mesh",
            "1000,100",
            "--shape",
            "100000,16",
            "--dst-mesh",
            "1000,100",
            "--dst-first-rank",
            "100000",
            "S(0),R",
            "R,R",
        )
        self.refused(done, 2, "SP0604", "262144 messages")
        self.took_time(took, 5)  # 1 where nothing else runs
        self.took_memory(mib, 200)
        done, took, _ = measured(
            "redistribute",
            "--mesh",
            "1000,100",
            "--shape",
            "100000,16",
            "--dst-mesh",
            "1000,100",
            "--dst-first-rank",
            "100000",
            "S(0),R",
            "S(0),R",
        )
        self.answered(done)
        self.took_time(took, 10)


class Sizes(Case):
    def made(self, kind, n, change=None):
        graph = made_graphs.build(kind, n)
        if change:
            change(graph["graph_module"]["graph"])
        return self.file(f"{kind}.json", json.dumps(graph))

    def test_a_deep_module_path(self):
        def deepen(graph):
            path = ".".join("a" * 10_000)
            graph["nodes"][0]["metadata"]["nn_module_stack"] = f"L,{path},torch.nn.Linear"

        done = shardprop("explain", self.made("relu", 1, deepen), "--mesh", "2,4")
        self.answered(done)

    def test_a_product_beyond_the_clock(self):
        def enlarge(graph):
            n = 2**28
            for meta in graph["tensor_values"].values():
                meta["dtype"] = 29
                meta["sizes"] = [{"as_int": n}] * 2
                meta["strides"] = [{"as_int": n}, {"as_int": 1}]

        file = self.made("mlp", 1, enlarge)
        done = shardprop("explain", file, "--mesh", "2,4", "--memory", "none")
        self.answered(done)
        self.assertNotIn("-", done.stdout.splitlines()[1].split(" us")[0])

    def test_many_parameters_take_linear_time(self):
        began = time.monotonic()
        done = shardprop(
            "explain", self.made("params", 10_000), "--mesh", "2,4", "--format", "json"
        )
        self.answered(done)
        self.took_time(time.monotonic() - began, 30)

    def test_a_big_training_graph_under_a_memory_limit(self):
        file = self.made("mlp", 20_000)
        done, took, mib = measured(
            "explain",
            file,
            "--mesh",
            "2,4",
            "--memory",
            "40MiB",
            "--time-limit",
            "5",
            "--format",
            "json",
        )
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.took_time(took, 25)
        self.took_memory(mib, 2048)

    def test_what_clashes_in_a_big_training_graph(self):
        done, _, mib = measured(
            "explain",
            self.made("mlp", 8_000),
            "--mesh",
            "2,4",
            "--memory",
            "4MB",
            "--time-limit",
            "20",
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.took_memory(mib, 500)


class Problems(Case):
    def test_room_for_half(self):
        n = 10_000
        problem = {
            "name": "k",
            "nodes": {"intervals": [[0, 1]] * n, "costs": [[1, 2]] * n, "usages": [[1, 0]] * n},
            "edges": {"nodes": [], "costs": []},
            "usage_limit": n // 2,
        }
        file = self.file("k.json", json.dumps({"problem": problem}))
        done = shardprop("solve", file, "--format", "json", "--work-limit", 1_000_000_000)
        self.answered(done)
        answer = json.loads(done.stdout)
        self.assertEqual((answer["status"], answer["cost"]), ("optimal", n // 2 * 3))


class Topologies(Case):
    def test_figures_out_of_proportion(self):
        for text in (
            "[device]\nmemory_gib = 85899345920\n",
            "[node]\nlatency_us = 1e300\n",
            "[device]\nlaunch_us = 1e300\n",
            "[node]\nall_to_all_gbps = 1e-300\n",
            "[device]\nf32_tflops = 1e-300\n",
            "[device]\nmemory_gbps = 1e-300\n",
            "[device]\nefficiency = 1e-300\n",
        ):
            done = shardprop(
                "explain", MLP, "--mesh", "2,2", "--topology", self.file("t.toml", text)
            )
            self.assertIn(done.returncode, (0, 3), (text, done.stderr))

    def test_a_mesh_of_measurements_beyond_64_bits(self):
        table = self.file("t.txt", "8 1\n16 2\n")
        many = "9223372036854775807x9223372036854775807"
        done = shardprop("topologies", "--fit", f"all_gather:{many}={table}")
        self.assertEqual(done.returncode, 2, done.stderr)


class Files(Case):
    def test_malformed_tensors_are_malformed_input(self):
        text = gzip.decompress(pathlib.Path(MLP).read_bytes())
        for change in (
            lambda t: t["relu"]["strides"].__setitem__(0, {"as_int": -2147483649}),
            lambda t: t["addmm"]["strides"].__setitem__(1, {"as_int": 2**62}),
            lambda t: t["p_up_bias"]["strides"].clear(),
            lambda t: t["relu"].update(
                sizes=[{"as_int": 1}] * 65, strides=[{"as_int": 1}] * 65
            ),
        ):
            graph = json.loads(text)
            change(graph["graph_module"]["graph"]["tensor_values"])
            done = shardprop("explain", self.file("g.json", json.dumps(graph)), "--mesh", "2,2")
            self.assertEqual(done.returncode, 3, done.stderr)

    def test_a_place_without_end(self):
        done, took, mib = measured("explain", MLP, "--plan", "/dev/zero", "--max-input", "50MB")
        self.refused(done, 3)
        self.took_memory(mib, 600)
        self.took_time(took, 20)


if __name__ == "__main__":
    command_line.main()
