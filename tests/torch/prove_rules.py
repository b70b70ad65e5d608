"""Proves the sharding rules on every distinct operator call of graphs.

  python tests/torch/prove_rules.py --bin build/tools/shardprop

Each call of the graphs (unless given: examples/graphs/tiny, and a list of calls
that those lack) is put to `shardprop propagate --batch --all`. Every strategy in
the answer is run on simulated ranks and compared with the unsharded operator:
exhaustively on small meshes, a seeded sample of the strategies on larger ones.
Prints how many were checked and each that is wrong; exits 1 if any is, or if a
call has none.
"""

import argparse
import collections
import json
import multiprocessing
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import torch

from sharding import capture, stock
from sharding.missing import find_missing
from sharding.more_calls import more_calls
from sharding.options import ROOT, add_binary, add_processes, add_sampled_meshes
from sharding.proof import prove
from sharding.words import in_short, in_words, mesh_sizes, slice_of

EXHAUSTIVE = ("2", "3", "2,2")
SAMPLED = ("2,3", "2,2,2")
SHOWN = 3  # wrong strategies of one call that are printed


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_binary(parser)
    parser.add_argument(
        "--graphs", nargs="+", type=pathlib.Path, help="programs (.json.gz)"
    )
    parser.add_argument("--op", help="only operators whose name contains this")
    parser.add_argument(
        "--meshes",
        nargs="*",
        type=mesh_sizes,
        default=[mesh_sizes(mesh) for mesh in EXHAUSTIVE],
        help=f"meshes proven exhaustively (default {' '.join(EXHAUSTIVE)})",
    )
    add_sampled_meshes(parser, SAMPLED)
    parser.add_argument(
        "--sample", type=int, default=12, help="strategies of a call in a sample"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--slice", type=slice_of, default=(1, 1), help="K/M: every M-th call, from K"
    )
    parser.add_argument(
        "--missing",
        action="store_true",
        help="instead list layouts on one mesh dim that would work and no rule has",
    )
    add_processes(parser)
    return parser.parse_args()


class Tally:
    """A `Tally` counts the checks and lists the failures."""

    def __init__(self):
        self.checked = collections.Counter()  # by (operator, mesh)
        self.calls = collections.Counter()  # by operator
        self.wrong = collections.defaultdict(list)  # by call: what and why

    def add(self, other):
        self.checked += other.checked
        self.calls += other.calls
        self.wrong.update(other.wrong)

    @property
    def wrong_count(self):
        return sum(map(len, self.wrong.values()))

    def note_wrong(self, call, mesh, strategy, why):
        where = "" if mesh is None else f" on {list(mesh)}"
        what = "" if strategy is None else f": {in_words(strategy)}"
        self.wrong[call].append(f"{where}{what}\n    {why}")


def answers(binary, calls, meshes):
    """Per call the answers on every mesh, in order."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as batch:
        for call in calls:
            for mesh in meshes:
                print(json.dumps(capture.batch_line(call, mesh)), file=batch)
        batch.flush()
        command = [binary, "propagate", "--batch", batch.name, "--all", "--strided"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tool:
            for _ in calls:
                lines = [tool.stdout.readline() for _ in meshes]
                if not lines[-1].endswith("\n"):
                    raise RuntimeError(f"{' '.join(command)} stopped at its input")
                yield [json.loads(line) for line in lines]
        if tool.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} exited {tool.returncode}")


def check_calls(options, calls):
    """Returns the tally of one process."""
    torch.set_num_threads(1)
    tally = Tally()
    rng = random.Random(options.seed)
    meshes = [*options.meshes, *options.sampled_meshes]
    answered = answers(options.bin, calls, meshes)
    for call, by_mesh in zip(calls, answered, strict=True):
        tally.calls[call.op] += 1
        chosen = []
        for mesh, answer in zip(meshes, by_mesh, strict=True):
            if "strategies" not in answer:
                why = json.dumps(answer.get("error", "no answer"), ensure_ascii=False)
                tally.note_wrong(call, mesh, None, why)
                continue
            strategies = answer["strategies"]
            if mesh in options.sampled_meshes and len(strategies) > options.sample:
                strategies = rng.sample(strategies, options.sample)
            chosen += [(mesh, strategy) for strategy in strategies]
            tally.checked[call.op, mesh] += len(strategies)
        for mesh, strategy, why in prove(call, chosen, options.seed):
            tally.note_wrong(call, mesh, strategy, why)
    return tally


def report_missing(options, calls):
    """Prints, per operator, the layouts that would be right and that the rules
    lack, with a call, and whether DTensor's own rules have them."""
    torch.set_num_threads(1)
    printed = set()
    known_to_stock = 0
    for call, (answer,) in zip(calls, answers(options.bin, calls, [(2,)]), strict=True):
        strategies = answer.get("strategies", [])
        for inputs, outputs in find_missing(call, strategies, options.seed):
            text = f"{call.op}: {','.join(inputs)}->{','.join(outputs)}"
            if text not in printed:
                theirs = stock.takes(call, inputs)
                note = "  (DTensor has it)" if theirs else ""
                print(f"{text}    {in_short(call)}{note}", flush=True)
                printed.add(text)
                known_to_stock += theirs
    print(f"{len(printed)} more would work, {known_to_stock} of them by DTensor's rules")


def families(binary):
    """Operator name to family, from the catalogue, if the tool has one."""
    command = [binary, "ops", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return {}
    return {entry["op"]: entry["family"] for entry in json.loads(done.stdout)}


def report(options, tally, seconds):
    family_of = families(options.bin)
    by_family = collections.defaultdict(collections.Counter)
    for (op, mesh), count in tally.checked.items():
        by_family[family_of.get(op, "all")][mesh] += count
    meshes = [*options.meshes, *options.sampled_meshes]
    heads = [
        str(list(mesh)) + ("*" if mesh in options.sampled_meshes else "")
        for mesh in meshes
    ]
    print(f"{'family':<14}{'calls':>7}" + "".join(f"{head:>12}" for head in heads))
    for family, counts in sorted(by_family.items()):
        calls = sum(
            n for op, n in tally.calls.items() if family_of.get(op, "all") == family
        )
        cells = "".join(f"{counts[mesh]:>12}" for mesh in meshes)
        print(f"{family:<14}{calls:>7}{cells}")
    totals = [sum(c[mesh] for c in by_family.values()) for mesh in meshes]
    cells = "".join(f"{total:>12}" for total in totals)
    print(f"{'total':<14}{sum(tally.calls.values()):>7}{cells}")
    if options.sampled_meshes:
        print(f"* a sample of {options.sample} strategies per call")
    for call, wrongs in tally.wrong.items():
        for wrong in wrongs[:SHOWN]:
            print(f"wrong: {in_short(call)}{wrong}")
        if len(wrongs) > SHOWN:
            print(f"  and {len(wrongs) - SHOWN} more of this call")
    print(
        f"{len(tally.calls)} operators, {sum(tally.calls.values())} calls, "
        f"{sum(totals)} strategies checked in {seconds:.0f} s: "
        f"{tally.wrong_count} wrong"
    )


def main():
    options = parse_arguments()
    paths = options.graphs or sorted((ROOT / "examples/graphs/tiny").glob("*.json.gz"))
    calls = capture.distinct_calls(paths)
    if options.graphs is None:
        calls += more_calls()
    if options.op:
        calls = [call for call in calls if options.op in call.op]
    index, count = options.slice
    calls = calls[index - 1 :: count]
    if options.missing:
        report_missing(options, calls)
        return 0
    start = time.monotonic()
    parts = [calls[i :: options.processes] for i in range(options.processes)]
    tally = Tally()
    with multiprocessing.Pool(options.processes) as pool:
        for part in pool.starmap(check_calls, [(options, part) for part in parts]):
            tally.add(part)
    report(options, tally, time.monotonic() - start)
    if not tally.checked:
        print("nothing was checked")
        return 1
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
