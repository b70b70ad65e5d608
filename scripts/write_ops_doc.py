#!/usr/bin/env python3
"""Writes docs/ops.md from the catalogue of the command line.

  scripts/write_ops_doc.py --bin build/release/tools/shardprop
  scripts/write_ops_doc.py --bin ... --check     exits 1 if the file is old
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

DOC = pathlib.Path(__file__).resolve().parents[1] / "docs" / "ops.md"

REPLICATED = "replicated: "
HEAD = """\
# Operators

Written by `scripts/write_ops_doc.py` from `shardprop ops`; do not edit.

This is the catalogue: every overload of PyTorch that shardprop knows how to shard,
by family. A **rule** says what an operator computes, and everything else follows
from it: the shapes, dtypes and strides of its results, which arguments are refused,
every way to lay its operands out over a mesh, what each rank then runs, and what that
costs. A rule is a line in `src/ops/definitions/`, in the language of
[row_language.md](row_language.md):

| rule | means |
|---|---|
| `mk,kn->mn` | a letter is a dim that may be sharded; one that the result lacks is summed, so that sharding it leaves a partial sum |
| `m{k}`, `m[k]`, `...` | every rank has the full dim k; a factor that only a program shards; leading dims, aligned as in broadcasting |
| `(gc)`, `+mn` | one dim made of two factors, the first one outermost; an operand that is added, and may broadcast |
| `pointwise()`, `reduction()`, `along(dim)` | every element on its own; dims combined; one dim whole, the others free |
| `.linear_in(x)`, `.additive()`, `.nondecreasing()`, `.passes()` | which partial operands it takes as they are: sums, extrema, or all |
| `.per_rank()`, `.decomposed()` | a program of its own stands in where a rule alone would leave a dim whole: softmax, norms, top-k, embedding by rows |
| `.random()` | draws by the place of each element, so that shards are parts of the unsharded draw |

In-place, `out=` and foreach overloads have no rules: they follow from the functional
overload (`include/shardprop/ops/overload_form.h`).

**Proof** says how a rule was tried: `torch` is the proof against PyTorch
(`tests/torch/prove_drawn.py`). Calls are drawn from PyTorch's own schema, every
strategy found for them runs on simulated ranks with uneven and empty shards and
asymmetric partials, and what the ranks hold is put together and compared with the
unsharded operator, and so are shapes, dtypes and strides. Calls on which PyTorch's
kernels contradict each other are left out and listed
(`tests/torch/sharding/kernel_quirks.py`). `none` has not been tried; the last column
says why.

A note that starts with `replicated:` says why no dim of an operator is ever cut; those
operators are listed first.

An operator without a rule runs replicated, with a warning, and a plan with such an
operator is never called optimal; `--strict` refuses it. A rule of your own:
`--rule 'mylib.swiglu=pointwise()'` ([row_language.md](row_language.md)). Whether all
operators of a model have rules: `shardprop ops --supported model.pt2`.
"""


def catalogue(binary):
    text = subprocess.check_output([binary, "ops", "--format", "json"])
    return json.loads(text)


def escaped(text):
    return text.replace("|", "\\|")


def replicated(rows):
    """Returns the operators that are never sharded, by reason."""
    by_reason = collections.defaultdict(set)
    overloads = 0
    for row in rows:
        if row["note"].startswith(REPLICATED):
            overloads += 1
            reason = row["note"].removeprefix(REPLICATED).split(";")[0]
            by_reason[reason].add(row["op"].removeprefix("aten."))
    lines = ["## Never sharded\n"]
    lines.append(f"{overloads} overloads, beside those that derive from them.\n")
    lines += ["| because | overloads |", "|---|---|"]
    for reason, ops in sorted(by_reason.items()):
        named = ", ".join(f"`{op}`" for op in sorted(ops))
        lines.append(f"| {reason} | {named} |")
    return [*lines, ""]


def document(rows):
    by_family = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        note = row["note"].removeprefix("derived from the functional overload")
        note = note.removeprefix("derived; ")
        by_family[row["family"]][row["rule"], row["proof"], note].append(row["op"])
    lines = [HEAD]
    counts = collections.Counter(row["proof"] for row in rows)
    proofs = ", ".join(f"{count} {proof}" for proof, count in sorted(counts.items()))
    rules = len({(row["rule"], row["family"]) for row in rows})
    lines.append(f"{len(rows)} overloads, {rules} rules; proof: {proofs}.\n")
    lines += replicated(rows)
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
