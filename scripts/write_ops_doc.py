#!/usr/bin/env python3
"""Writes docs/ops.md from the catalogue of the command line.

  scripts/write_ops_doc.py --bin build/release/tools/shardprop
  scripts/write_ops_doc.py --bin ... --check     exits 1 where the file is old
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

DOC = pathlib.Path(__file__).resolve().parents[1] / "docs" / "ops.md"

HEAD = """\
# Operators

Written by `scripts/write_ops_doc.py` from `shardprop ops`; do not edit. One line
for each rule: the operators it serves, how many of their overloads (in-place,
`out=` and foreach ones derive from the functional one), the rule in the notation
of `include/shardprop/ops/op_definition.h`, and what proves it: `torch` is the
proof against PyTorch on drawn calls (`tests/torch/prove_drawn.py`), `property` a
test of the property that defines the operator.

Without a rule an operator runs replicated, with a warning, and the plan is never
called optimal. A rule of your own: `--rule 'mylib.swiglu=pointwise()'`
(`include/shardprop/ops/rule_text.h`).
"""


def catalogue(binary):
    text = subprocess.check_output([binary, "ops", "--format", "json"])
    return json.loads(text)


def escaped(text):
    return text.replace("|", "\\|")


def document(rows):
    by_family = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        note = row["note"].removeprefix("derived from the functional overload")
        note = note.removeprefix("derived; ")
        by_family[row["family"]][row["rule"], row["proof"], note].append(row["op"])
    lines = [HEAD]
    counts = collections.Counter(row["proof"] for row in rows)
    proofs = ", ".join(f"{count} {proof}" for proof, count in sorted(counts.items()))
    lines.append(f"{len(rows)} overloads: {proofs}.\n")
    for family in sorted(by_family):
        lines.append(f"## {family}\n")
        lines.append("| operators | overloads | rule | proof | |")
        lines.append("|---|---|---|---|---|")
        for (rule, proof, note), ops in sorted(by_family[family].items()):
            names = sorted({op.rsplit(".", 1)[0].removeprefix("aten.") for op in ops})
            listed = ", ".join(f"`{name}`" for name in names)
            lines.append(
                f"| {listed} | {len(ops)} | `{escaped(rule)}` | {proof} | {note} |"
            )
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--bin", default=os.environ.get("SHARDPROP_BIN"), required=not os.environ.get("SHARDPROP_BIN")
    )
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = document(catalogue(options.bin))
    if not options.check:
        DOC.write_text(text)
        return 0
    if DOC.exists() and DOC.read_text() == text:
        return 0
    print(f"{DOC} is old: scripts/write_ops_doc.py --bin {options.bin}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
