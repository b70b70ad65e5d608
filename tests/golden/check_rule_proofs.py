#!/usr/bin/env python3
"""Checks that every operator of the tiny graphs that makes a tensor is said to be
proven against PyTorch: tests/torch/prove_rules.py runs its calls. Operators beyond
them are proven on drawn calls; `tests/torch/prove_drawn.py --write-proofs` notes them.
"""

import gzip
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROOFS = ROOT / "src/ops/proofs.txt"
PREFIX = "torch.ops."


def of_the_graphs():
    names = set()
    for path in sorted((ROOT / "examples/graphs/tiny").glob("*.json.gz")):
        with gzip.open(path) as file:
            program = json.load(file)
        for node in program["graph_module"]["graph"]["nodes"]:
            if node["target"].startswith(PREFIX) and node["outputs"]:
                names.add(node["target"].removeprefix(PREFIX))
    return names


def main():
    said = PROOFS.read_text(encoding="utf-8").splitlines()
    faults = [f"{name} is not said to be proven" for name in sorted(of_the_graphs())
              if f"{name} torch" not in said]
    faults += [f"`{line}` gives no reason" for line in said
               if len(line.split(" ", 2)) < (3 if line.split()[1] == "none" else 2)]
    if said != sorted(set(said)):
        faults.append("the list is not sorted, or a line appears twice")
    for fault in faults:
        print(f"{PROOFS.relative_to(ROOT)}: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
