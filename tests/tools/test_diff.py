"""Tests the comparison of two saved plans."""

import json
import unittest

import command_line
from command_line import MLP, Case, shardprop

LIMIT = ["--gap", "0", "--work-limit", "20000000"]


class Diff(Case):
    def plan(self, name, *arguments):
        path = self.folder / name
        self.answered(shardprop("explain", MLP, "--mesh", "dp=2,tp=2", *LIMIT,
                                "--format", "json", "-o", path, *arguments))
        return path

    def test_a_plan_and_itself(self):
        path = self.plan("a.json")
        done = shardprop("diff", path, path)
        self.answered(done)
        self.assertEqual(done.stdout, "no difference\n")
        told = json.loads(shardprop("diff", path, path, "--format", "json").stdout)
        self.assertEqual(told["schema"], "shardprop.diff/1")
        self.assertTrue(told["same"])

    def test_what_differs_and_what_it_costs(self):
        best, pinned = self.plan("a.json"), self.plan(
            "b.json", "--pin", "*weight=S(0),R")
        done = shardprop("diff", best, pinned)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("the second plan costs", done.stdout)
        self.assertIn("R,R -> S(0),R", done.stdout)
        self.assertIn("as the files say", done.stdout)
        told = json.loads(
            shardprop("diff", best, pinned, "--format", "json").stdout)
        self.assertFalse(told["same"])
        self.assertEqual(told["proof"], "as the files say")
        costs = [json.loads(path.read_text())["objective_us"]
                 for path in (best, pinned)]
        self.assertAlmostEqual(told["objective_us"], costs[1] - costs[0], 3)
        options = {one["what"]: (one["a"], one["b"]) for one in told["settings"]}
        self.assertEqual(options["pin"], ("", "*weight=S(0),R"))
        self.assertTrue(all(one["b"] == ["S(0)", "R"] for one in told["inputs"]
                            if one["value"].endswith("weight")))
        back = json.loads(
            shardprop("diff", pinned, best, "--format", "json").stdout)
        self.assertAlmostEqual(back["objective_us"], -told["objective_us"], 3)

    def test_what_is_no_plan(self):
        path = self.plan("a.json")
        broken = self.folder / "broken.json"
        broken.write_text(path.read_text()[:-40])
        self.refused(shardprop("diff", path, broken), 3, "SP", "broken.json")
        self.refused(shardprop("diff", path, self.folder / "none.json"), 3,
                     "SP", "none.json")


if __name__ == "__main__":
    command_line.main()
