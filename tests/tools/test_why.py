"""Tests the command that lists the strategies of one operator side by side."""

import json
import unittest

import command_line
from command_line import MLP, TINY, Case, shardprop

LLAMA = str(TINY / "llama3_infer.json.gz")
ARGUMENTS = ["--mesh", "dp=2,tp=2", "--gap", "0", "--work-limit", "2000000"]


class Why(Case):
    def test_the_chosen_one_stands_first(self):
        done = shardprop("why", MLP, "addmm", *ARGUMENTS)
        self.answered(done)
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].startswith("addmm  aten.addmm.default  "), lines[0])
        self.assertEqual([line[:2] for line in lines if line.startswith("* ")], ["* "])

    def test_json(self):
        done = shardprop("why", LLAMA, "mm_1", *ARGUMENTS, "--format", "json")
        self.answered(done)
        told = json.loads(done.stdout)
        self.assertEqual(told["schema"], "shardprop.why/1")
        self.assertEqual((told["node"], told["op"]), ("mm_1", "aten.mm.default"))
        first, *others = told["strategies"]
        self.assertTrue(first["chosen"])
        self.assertEqual(first["objective_us"], told["objective_us"])
        self.assertGreater(len(others), 5)
        for one in others:
            self.assertFalse(one["chosen"])
            self.assertEqual(len(one["inputs"]), 2)
            self.assertEqual(len(one["outputs"]), 1)
            self.assertGreaterEqual(one["objective_us"], told["objective_us"])

    def test_what_has_no_strategies(self):
        self.refused(shardprop("why", LLAMA, "mmm_1", *ARGUMENTS), 2, "SP0001",
                     "--> NODE mmm_1", "did you mean `mm_1`?")
        self.refused(shardprop("why", LLAMA, "view_1", *ARGUMENTS), 2, "SP0001",
                     "`view_1` is a view", "= help: ask for `")
        # A named view refers to an operator with strategies, through any number
        # of views.
        for view in ("view_1", "view_2", "permute_1"):
            done = shardprop("why", LLAMA, view, *ARGUMENTS)
            self.refused(done, 2, "is a view")
            if "the input `" in done.stderr:
                continue
            name = done.stderr.partition("ask for `")[2].partition("`")[0]
            # One rank has one strategy, which is weighed at once.
            self.answered(shardprop("why", LLAMA, name, "--mesh", "1"))

    def test_a_module_is_not_a_node(self):
        self.refused(shardprop("why", LLAMA, "model.layers.0.mlp", *ARGUMENTS), 2, "SP0001",
                     "`model.layers.0.mlp` is a module, not a node",
                     "= help: ask for one of its nodes: `")
        self.refused(shardprop("why", LLAMA, "model.layers.0.mlp.", *ARGUMENTS), 2, "SP0001",
                     "has no node")

    def test_a_plan_that_does_not_fit(self):
        done = shardprop("why", MLP, "addmm", "--mesh", "dp=2,tp=2", "--memory", "1KiB",
                         "--work-limit", "50000000")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no plan (infeasible)", done.stdout)


if __name__ == "__main__":
    command_line.main()
