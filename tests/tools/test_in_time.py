"""Planning finds a plan in time on any mesh of up to five dims, for any graph
that fits. Otherwise the error names the resource that ran out.

  test_in_time.py BINARY
"""

import itertools
import json
import resource
import time

import command_line
import made_graphs
from command_line import FULL, ROOT, TINY, Case, shardprop

# `SLACK_S` is the margin beyond the time limit for a busy machine.
SLACK_S = 15
MESHES = ("2,2,2", "2,2,2,2", "2,2,2,2,2")


def some_of(cases):
    """Returns all cases at full counts, otherwise every fourth one from the last."""
    return list(cases)[:: -1 if FULL else -4]


class InTime(Case):
    def explained(self, graph, mesh, seconds, *more):
        began = time.monotonic()
        done = shardprop(
            "explain", graph, "--mesh", mesh, "--time-limit", seconds, "--gap", 0, "--format", "json",
            *more
        )
        self.took_time(time.monotonic() - began, seconds + SLACK_S)
        return done

    def planned(self, *arguments):
        done = self.explained(*arguments)
        self.answered(done)
        plan = json.loads(done.stdout)
        self.assertIn(plan["status"], ("optimal", "feasible"))
        self.assertIsNotNone(plan["gap"])
        self.assertEqual(plan["status"] == "optimal", plan["gap"] == 0 and "space" not in plan)
        return plan

    def test_many_mesh_dims(self):
        for graph, mesh in some_of(itertools.product(
                ("mlp_dynamic", "block_composite", "vit_infer_cuda"), MESHES)):
            with self.subTest(graph=graph, mesh=mesh):
                self.planned(TINY / f"{graph}.json.gz", mesh, 1)

    def test_experts(self):
        # The graph has about 700 operators, with the two best of 8 experts for
        # each token.
        for graph, mesh in some_of(itertools.product(
                (TINY, ROOT / "examples/graphs"), MESHES)):
            with self.subTest(graph=graph.name, mesh=mesh):
                self.planned(graph / "deepseek_moe_train.json.gz", mesh, 2)

    def test_no_time_at_all(self):
        plan = self.planned(TINY / "llama3_train.json.gz", "2,2,2", 0)
        self.assertEqual(plan["ran_out"], "time")
        self.assertEqual(plan["space"], {"most_runs": 0})
        self.assertEqual(plan["copies"], [])

    def test_no_time_and_no_room(self):
        done = self.explained(TINY / "llama3_train.json.gz", "2,2", 0, "--memory", "1KiB")
        self.assertEqual(done.returncode, 1)
        plan = json.loads(done.stdout)
        self.assertEqual((plan["status"], plan["ran_out"]), ("unknown", "time"))
        text = shardprop(
            "explain",
            TINY / "llama3_train.json.gz",
            "--mesh",
            "2,2",
            "--time-limit",
            "0",
            "--memory",
            "1KiB",
        ).stdout
        self.assertIn("unknown: time ran out before there was a plan within 1.0 KiB", text)

    def test_a_conflict_that_is_not_measured_has_no_bytes(self):
        problem = {
            "name": "p",
            "nodes": {
                "intervals": [[0, 2], [0, 2], [1, 3], [1, 3]],
                "costs": [[1, 2]] * 4,
                "usages": [[5, 4]] * 4,
            },
            "usage_limit": 9,
        }
        file = self.file("p.json", json.dumps({"problem": problem}))
        limit = "  the usage limit at time 1"
        lines = shardprop("solve", file).stdout.splitlines()
        self.assertIn(limit + ": 7 short", lines)
        lines = shardprop("solve", file, "--time-limit", 0).stdout.splitlines()
        self.assertIn(limit, lines)

    def test_tensors_of_twelve_dims(self):
        self.planned(self.made("rank12", 20), "2,2,2", 2)

    def test_trained_tensors_of_five_dims_on_five_mesh_dims(self):
        # Once each pair of layouts of a weight was searched for alone, for seconds.
        began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        graph = ROOT / "tests" / "data" / "conv3d_train.json.gz"
        self.planned(graph, "2,2,2,2,2", 2, "--optimizer", "adamw")
        spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
        self.took_time(spent, 4)

    def test_100_000_ranks_in_2_seconds(self):
        meshes = ([100_000], [1000, 100], [100, 10, 100])
        commands = (self.propagate, self.redistribute, self.explain)
        for dims, command in itertools.product(meshes, commands):
            with self.subTest(command=command.__name__, mesh=dims):
                began, spent = time.monotonic(), self.processor_seconds()
                command(dims)
                self.took_time(self.processor_seconds() - spent, 2)
                self.took_time(time.monotonic() - began, 2 + SLACK_S)

    def propagate(self, dims):
        rows = {"shape": [1_000_000, 4096], "dtype": "bf16", "placements": ["S(0)"] * len(dims)}
        weight = {"shape": [4096, 1024], "dtype": "bf16", "placements": ["R"] * len(dims)}
        indices = {**rows, "dtype": "i64"}
        calls = (
            {"op": "aten.mm.default", "mesh": dims, "args": [rows, weight]},
            # Its sizes are others on each rank.
            {"op": "aten.view.default", "mesh": dims, "args": [rows, [1000, 1000, 4096]]},
            {"op": "aten.embedding.default", "mesh": dims, "args": [weight, indices]},
        )
        lines = self.file("calls.jsonl", "".join(json.dumps(call) + "\n" for call in calls))
        done = shardprop("propagate", "--batch", lines)
        self.answered(done)
        for answer in map(json.loads, done.stdout.splitlines()):
            self.assertEqual(len(answer["outputs"][0]["placements"]), len(dims))

    def redistribute(self, dims):
        mesh = ",".join(map(str, dims))
        rows, columns = (",".join([f"S({dim})"] * len(dims)) for dim in (0, 1))
        for to in (columns, ",".join(["R"] * len(dims))):
            where = ("--mesh", mesh, "--shape", "100000,100000", "--dtype", "bf16")
            done = shardprop("redistribute", *where, "--format", "json", rows, to)
            self.answered(done)
            self.assertTrue(json.loads(done.stdout)["steps"])

    def explain(self, dims):
        mesh = ",".join(map(str, dims))
        for name in ("llama3_infer", "llama3_train"):
            graph = TINY / f"{name}.json.gz"
            done = shardprop("explain", graph, "--mesh", mesh, "--format", "json")
            self.answered(done)
            self.assertIn(json.loads(done.stdout)["status"], ("optimal", "feasible"))

    def processor_seconds(self):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def test_a_value_of_many_users(self):
        self.planned(self.made("fan", 2_000), "2,4", 2)

    def test_memory_that_binds(self):
        self.planned(self.made("mlp", 2_000), "2,4", 2, "--memory", "8MiB")

    def made(self, kind, size):
        return self.file("made.json", json.dumps(made_graphs.build(kind, size)))


if __name__ == "__main__":
    command_line.main()
