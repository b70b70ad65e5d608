"""Pins of optimizer state, and layouts that are pinned as a plan prints them."""

import json
import random

import command_line
from command_line import FULL, ROOT, TINY, Case, shardprop

TOPOLOGY = str(ROOT / "examples/topologies/dear-compute.toml")
LLAMA = str(TINY / "llama3_train.json.gz")
# A pinned view of all elements has a layout of its own, so its copies are others.
VIEWS = ("view", "permute", "unsqueeze", "squeeze", "t", "transpose", "alias",
         "_unsafe_view", "reshape", "detach")


def printed(plan):
    """Returns (what to pin, layout) for the layouts that the plan prints."""
    for name, value in plan["values"].items():
        yield f"stored:{name}", value["placements"]
        if "state_placements" in value:
            yield f"state:{name}", value["state_placements"]
    for node in plan["nodes"]:
        is_view = node["op"].split(".")[1] in VIEWS
        if node["outputs"] and not is_view and not node["op"].startswith("optimizer."):
            yield node["id"], node["outputs"][0]["placements"]


class Pins(Case):
    def plan(self, graph, *more):
        done = shardprop("explain", graph, "--mesh", "dp=2,tp=2", "--topology", TOPOLOGY,
                         "--memory", "none", "--gap", "0", "--work-limit", "200000000",
                         "--format", "json", *more)
        self.answered(done)
        return json.loads(done.stdout)

    def test_a_state_is_pinned(self):
        name = "lm_head.weight"
        for layout in (["S(0)", "S(1)"], ["S(1)", "S(0)"], ["R", "R"]):
            plan = self.plan(LLAMA, "--pin", f"state:{name}=" + ",".join(layout))
            value = plan["values"][name]
            self.assertEqual(value.get("state_placements", value["placements"]), layout)
        # The parameter is gathered from its state: ZeRO-1.
        plan = self.plan(LLAMA, "--pin", f"state:{name}=S(0),S(0)", "--pin",
                         f"stored:{name}=S(0),R")
        self.assertEqual(plan["values"][name]["placements"], ["S(0)", "R"])
        self.assertEqual(plan["values"][name]["state_placements"], ["S(0)", "S(0)"])

    def test_states_that_cannot_be_pinned(self):
        name = "lm_head.weight"
        explain = lambda *more: shardprop(  # noqa: E731
            "explain", LLAMA, "--mesh", "dp=2,tp=2", *more)
        self.refused(explain("--pin", f"state:{name}=R,R", "--pin",
                             f"stored:{name}=S(0),R"), 2, "SP0704",
                     f"the state of `{name}` cannot be R,R",
                     "the parameter is pinned to S(0),R", "gathered from it")
        self.refused(explain("--pin", f"state:{name}=R,R", "--optimizer", "none"), 2,
                     f"`{name}` has no optimizer state", "--optimizer adamw")
        self.refused(explain("--pin", "state:input_ids=R,R"), 2,
                     "matches nothing", "parameters that have a gradient")
        self.refused(explain("--pin", f"state:{name}=R,R", "--pin",
                             f"state:{name}=S(0),R"), 2, "two pins ask")

    def test_printed_layouts_give_the_plan_back(self):
        draw = random.Random(58)
        for graph, number in (("llama3_train", 8), ("gpt2_train", 8),
                              ("mixtral_infer", 4)):
            path = str(TINY / f"{graph}.json.gz")
            plan = self.plan(path)
            saved = self.folder / f"{graph}.json"
            saved.write_text(json.dumps(plan))
            for what, layout in draw.sample(list(printed(plan)), number * (5 if FULL else 1)):
                with self.subTest(graph=graph, what=what, layout=layout):
                    again = self.plan(path, "--start-from", saved, "--pin",
                                      f"{what}={','.join(layout)}")
                    self.assertEqual(again["objective_us"], plan["objective_us"])


if __name__ == "__main__":
    command_line.main()
