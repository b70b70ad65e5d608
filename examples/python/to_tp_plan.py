#!/usr/bin/env python3
"""Writes a plan as a `tp_plan` of Hugging Face, and lists what that cannot say.

  python examples/python/to_tp_plan.py GRAPH [PLAN] [--mesh tp=4] [-o FILE]

GRAPH is an exported program; PLAN is what Plan.save() wrote, or GRAPH is planned
on --mesh. A tp_plan knows the weights of linear layers and embeddings, and one
mesh dim: whatever else the plan says is listed with the reason, and the price is
that of the best plan which lays the weights out as the tp_plan does.

    model = AutoModelForCausalLM.from_pretrained(name, tp_plan=tp_plan)
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import shardprop as sp


def to_tp_plan(graph, plan):
    """The styles of a plan: `tp_plan`, `unsaid`, `price_us` and more, as
    docs/programs.md has them."""
    with tempfile.TemporaryDirectory() as folder:
        saved = os.path.join(folder, "plan.json")
        plan.save(saved)
        words = os.path.join(folder, "words")
        subprocess.run(
            [sys.executable, "-m", "shardprop", "emit", os.fspath(graph)]
            + ["--plan", saved, "--as", "tp-plan", "-o", words],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with open(os.path.join(words, "tp_plan.json"), encoding="utf-8") as file:
            return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", metavar="GRAPH")
    parser.add_argument("plan", metavar="PLAN", nargs="?")
    parser.add_argument("--mesh", default="tp=4")
    parser.add_argument("--topology", default="dgx-h100")
    parser.add_argument("-o", "--output", metavar="FILE", help="tp_plan as JSON")
    options = parser.parse_args()
    if options.plan:
        plan = sp.Plan.load(options.plan)
    else:
        plan = sp.plan(options.graph, options.mesh, topology=options.topology)
    styles = to_tp_plan(options.graph, plan)
    print("tp_plan = {")
    for module, style in styles["tp_plan"].items():
        print(f'    "{module}": "{style}",')
    print("}")
    print(f"\ncould not be said, over mesh dim {styles['mesh_dim']}:")
    for one in styles["unsaid"]:
        layout = ",".join(one["placements"])
        print(f"  {one['value']} {layout} ({one['values']}): {one['why']}")
    if not styles["unsaid"]:
        print("  nothing")
    for note in styles["notes"]:
        print(f"note: {note}")
    if styles["price_us"] is None:
        print("no plan with these weights fits into memory")
    else:
        print(f"\nprice beside the plan: {styles['price_us']:.1f} us a step at least")
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(styles["tp_plan"], file, indent=2)


if __name__ == "__main__":
    main()
