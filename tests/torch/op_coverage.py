#!/usr/bin/env python3
"""Which overloads of a list have no row, and which only run replicated.

  python tests/torch/op_coverage.py --bin build/tools/shardprop OVERLOADS.tsv

The first column of the list names overloads (aten.add.Tensor); without one, every
overload that `shardprop ops` lists is looked at. Calls are drawn from PyTorch's
schemas; an operator runs replicated where no strategy of any of its calls on two
ranks shards an operand or a result.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

from sharding import capture  # noqa: E402
from sharding.ask import ask  # noqa: E402
from sharding.drawn_calls import draw_calls  # noqa: E402
from sharding.drawn_proof import propagate_command  # noqa: E402


def catalogue(binary):
    text = subprocess.check_output([binary, "ops", "--format", "json"])
    return [row["op"] for row in json.loads(text)]


def is_sharded(answer):
    return any(
        "S(" in placement
        for strategy in answer.get("strategies", ())
        for operand in strategy["inputs"] + strategy["outputs"]
        for placement in (
            operand["placements"] if isinstance(operand, dict) else operand
        )
    )


def runs_sharded(binary, op, count):
    """Returns True, False, or None if no call of it was sampled or answered."""
    drawn = draw_calls(op, count=count, seed=0).valid
    questions = [capture.batch_line(one.call, (2,), outputs=True) for one in drawn]
    answers = [a for a in ask(propagate_command(binary), questions) if "strategies" in a]
    if not answers:
        return None
    return any(is_sharded(answer) for answer in answers)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", default=os.environ.get("SHARDPROP_BIN"))
    parser.add_argument("overloads", nargs="?", type=pathlib.Path)
    parser.add_argument("--calls", type=int, default=12)
    parser.add_argument("--rows-only", action="store_true", help="draw no calls")
    options = parser.parse_args()
    known = catalogue(options.bin)
    wanted = known
    if options.overloads:
        lines = options.overloads.read_text().splitlines()
        wanted = [line.split("\t")[0] for line in lines if line.startswith(("aten.", "prims."))]
    missing = sorted(set(wanted) - set(known))
    print(f"{len(wanted)} overloads, {len(missing)} without a row")
    print("\n".join(f"  {op}" for op in missing))
    if options.rows_only:
        return 0
    replicated, undrawn = [], []
    for op in sorted(set(wanted) & set(known)):
        sharded = runs_sharded(options.bin, op, options.calls)
        if sharded is None:
            undrawn.append(op)
        elif not sharded:
            replicated.append(op)
    print(f"{len(replicated)} run replicated alone")
    print("\n".join(f"  {op}" for op in replicated))
    print(f"{len(undrawn)} of which no call was drawn that both sides take")
    print("\n".join(f"  {op}" for op in undrawn))
    return 0


if __name__ == "__main__":
    sys.exit(main())
