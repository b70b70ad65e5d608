"""Tests the answers, findings and errors of `shardprop verify`. tests/verify
tests that plans of the example graphs agree."""

import gzip
import json
import resource
import unittest

import command_line
from command_line import MLP, TINY, Case, shardprop

LLAMA = str(TINY / "llama3_infer.json.gz")
DEAR = TINY.parents[1] / "topologies/dear-compute.toml"


class Verify(Case):
    def verify(self, *arguments, graph=LLAMA, **options):
        return shardprop("verify", graph, *arguments, **options)

    def plan(self):
        """A plan that moves things, as data."""
        done = shardprop("explain", LLAMA, "--mesh", "2,2", "--topology", DEAR,
                         "--gap", "0", "--work-limit", "20000000", "--format", "json")
        self.answered(done)
        return json.loads(done.stdout)

    def saved(self, plan):
        return self.file("plan.json", json.dumps(plan))

    def test_a_plan_agrees_with_the_graph(self):
        plan = self.plan()
        done = self.verify("--plan", self.saved(plan), "--format", "json",
                           "--trace")
        self.answered(done)
        report = json.loads(done.stdout)
        self.assertTrue(report["ok"])
        self.assertEqual(report["findings"], [])
        self.assertEqual(report["collectives"], plan["summary"]["collectives"])
        self.assertGreater(sum(report["collectives"].values()), 0)
        self.assertEqual(report["bytes_per_rank"],
                         plan["summary"]["bytes_per_rank"])
        self.assertLessEqual(report["peak_bytes_per_rank"],
                             plan["memory"]["unfused_peak_bytes_per_rank"])
        for one in report["trace"]:
            self.assertEqual(one["bytes_per_rank"],
                             one["planned_bytes_per_rank"])

    def test_causal_attention_runs_over_the_sequence(self):
        """Queries are sharded, keys gathered, forward and backward."""
        for name in ("llama3_train", "llama3_train_cuda"):
            for mesh in ("cp=3", "dp=2,cp=2"):
                layout = ",".join(["S(0)"] * (mesh.count("=") - 1) + ["S(2)"])
                done = self.verify(
                    "--mesh", mesh, "--pin", f"op:*flash_attention*={layout}",
                    "--format", "json", graph=str(TINY / f"{name}.json.gz"))
                self.answered(done)
                self.assertTrue(json.loads(done.stdout)["ok"])

    def test_a_plan_for_another_graph_or_mesh_is_refused(self):
        plan = self.saved(self.plan())
        self.refused(self.verify("--plan", plan, graph=MLP), 3, "SP0708")
        self.refused(self.verify("--plan", plan, "--mesh", "4"), 3, "SP0708")

    def test_changed_plans_are_refused_or_found_out(self):
        def layout(plan):
            for node in plan["nodes"]:
                for output in node["outputs"]:
                    if any("S" in p for p in output["placements"]):
                        output["placements"] = ["R", "R"]
                        return

        def dropped(plan):
            del plan["copies"][-1]

        def freed(plan):
            for copy in plan["copies"]:
                copy["freed_at"] = copy["made_at"]

        def other_copy(plan):
            for node in plan["nodes"]:
                for taken in node["inputs"]:
                    if "copy" in taken:
                        taken["copy"] = (taken["copy"] + 1) % len(plan["copies"])
                        return

        for change in (layout, dropped, freed, other_copy):
            plan = self.plan()
            change(plan)
            with self.subTest(change.__name__):
                done = self.verify("--plan", self.saved(plan))
                self.refused(done, 3, "error[SP07")

        def sends_less(plan):
            step = next(copy["steps"][0] for copy in plan["copies"]
                        if copy["steps"] and copy["steps"][0]["bytes_per_rank"])
            step["bytes_per_rank"] -= 1
            plan["summary"]["bytes_per_rank"] -= 1

        def holds_less(plan):
            plan["memory"]["unfused_peak_bytes_per_rank"] //= 2

        for change in (sends_less, holds_less):
            plan = self.plan()
            change(plan)
            with self.subTest(change.__name__):
                done = self.verify("--plan", self.saved(plan))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("not as planned: ", done.stdout)

    def test_an_operator_that_the_reference_lacks_is_named(self):
        with gzip.open(MLP, "rt") as file:
            graph = json.load(file)
        for node in graph["graph_module"]["graph"]["nodes"]:
            if node["target"] == "torch.ops.aten.relu.default":
                node["target"] = "torch.ops.aten.special_airy_ai.default"
                node["inputs"][0]["name"] = "x"
        graph = self.file("airy.json", json.dumps(graph))
        self.refused(self.verify("--mesh", "2", graph=graph), 4, "SP1001",
                     "special_airy_ai")

    def test_more_ranks_than_threads_are_refused(self):
        done = self.verify("--mesh", "700000", graph=MLP)
        self.refused(done, 2, "SP0001", "700000 ranks", "at most 30000",
                     "--mesh d0=700000")

    @unittest.skipIf(command_line.SANITIZED, "sanitizers take addresses")
    def test_ranks_without_memory_for_their_threads_are_refused(self):
        limit = (6_000_000 << 10, 6_000_000 << 10)
        done = self.verify(
            "--mesh", "30000", "--threads", "1", graph=MLP,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^error\[SP(0004|0910)\]")

    def test_no_plan_is_a_finding(self):
        none = ["--mesh", "2", "--memory", "1KiB"]
        done = self.verify(*none, graph=MLP)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, "no plan to verify: infeasible\n")
        done = self.verify(*none, "--format", "json", graph=MLP)
        self.assertEqual(done.returncode, 1, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["schema"], "shardprop.verify/1")
        self.assertFalse(report["ok"])
        self.assertEqual(report["status"], "infeasible")
        self.assertEqual(report["outputs"], [])

    def test_a_full_disk_is_told(self):
        self.refused(self.verify("--mesh", "2", "-o", "/dev/full", graph=MLP), 2,
                     "SP0002")
        with open("/dev/full", "w") as full:
            done = self.verify("--mesh", "2", graph=MLP, stdout=full)
        self.refused(done, 2, "SP0002")


if __name__ == "__main__":
    command_line.main()
