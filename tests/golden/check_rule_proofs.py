#!/usr/bin/env python3
"""Checks that the operators said to be proven against PyTorch are those whose
calls tests/torch/prove_rules.py runs: every operator of the tiny graphs that
makes a tensor. `--write` writes the list anew.
"""

import gzip
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROOFS = ROOT / "src/ops/proofs.txt"
PREFIX = "torch.ops."


def proven_operators():
    names = set()
    for path in sorted((ROOT / "examples/graphs/tiny").glob("*.json.gz")):
        with gzip.open(path) as file:
            program = json.load(file)
        for node in program["graph_module"]["graph"]["nodes"]:
            if node["target"].startswith(PREFIX) and node["outputs"]:
                names.add(node["target"].removeprefix(PREFIX))
    return names


def main():
    proven = "".join(f"{name} torch\n" for name in sorted(proven_operators()))
    if "--write" in sys.argv:
        PROOFS.write_text(proven, encoding="utf-8")
        return 0
    others = [line for line in PROOFS.read_text(encoding="utf-8").splitlines(True)
              if not line.endswith(" torch\n")]
    said = PROOFS.read_text(encoding="utf-8")
    wanted = "".join(sorted(proven.splitlines(True) + others))
    if said == wanted:
        return 0
    print(f"{PROOFS.relative_to(ROOT)} does not say what the tiny graphs prove")
    return 1


if __name__ == "__main__":
    sys.exit(main())
