"""Proves the sharding rules on the calls of PyTorch's own operator samples.

  python tests/torch/prove_samples.py --bin build/release/tools/shardprop

Runs the samples of the operator, foreach and optimizer databases (op_db
float32, foreach_*_op_db, optim_db) with their backward passes. Every distinct
call below autograd is captured with its values (sharding/op_samples) and goes
to `shardprop propagate --all`. On [2] and [3] every strategy in the answer runs
on simulated ranks and is compared with the unsharded operator. On larger meshes
a seeded sample runs, in which each way to treat the mesh dims has its turn; the
number of skipped strategies is printed. Strides of results are compared for
these calls, and for the same calls with another memory layout of the operands.
With --missing the run lists instead the layouts of one mesh dim that DTensor
accepts unchanged, that are right, and that we lack. Exits 1 if any result is
wrong, or missing.
"""

import argparse
import collections
import fnmatch
import importlib.util
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import time

# The samples provoke torch's kernel warnings on purpose.
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

import torch  # noqa: E402

from sharding import stock  # noqa: E402
from sharding.ask import ask  # noqa: E402
from sharding.capture import batch_line  # noqa: E402
from sharding.drawn_proof import (  # noqa: E402
    EXHAUSTIVE,
    Result,
    check_calls,
    check_strides,
    dead,
    propagate_command,
    stratified,
)
from sharding.kernel_quirks import quirk_of  # noqa: E402
from sharding.missing import find_missing  # noqa: E402
from sharding.op_samples import SampleCalls  # noqa: E402
from sharding.options import (  # noqa: E402
    add_binary,
    add_metas,
    add_processes,
    add_sampled_meshes,
)
from sharding.processes import run_each  # noqa: E402
from sharding.relaid import relaid  # noqa: E402
from sharding.report import (  # noqa: E402
    print_failures,
    print_refused,
    print_summary,
    write_failures,
)
from sharding.words import in_short, slice_of  # noqa: E402

SAMPLED = ("2,2", "2,3", "2,2,2")
_MOST_SECONDS = 1800  # for one part of an operator's calls
_PART = 100  # calls that one process proves
_RELAID = 2  # how often a call's operands are laid out otherwise, for strides
_SAY_EVERY = 60  # seconds between lines of progress, on stderr


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_binary(parser)
    add_metas(parser)
    parser.add_argument("--entry", help="only samples whose operator fits this GLOB")
    parser.add_argument("--op", nargs="+", help="only calls whose name has one of these")
    add_sampled_meshes(parser, SAMPLED)
    parser.add_argument(
        "--sample", type=int, default=6, help="strategies of a call in a sample (6)"
    )
    parser.add_argument(
        "--most", type=int, help="calls of an operator, drawn from all (default all)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--slice",
        type=slice_of,
        default=(1, 1),
        help="K/M: every M-th entry of the databases, from the K-th",
    )
    parser.add_argument(
        "--missing", action="store_true", help="list what DTensor takes and we lack"
    )
    parser.add_argument("--show", type=int, default=2, help="wrong ones of a class (2)")
    parser.add_argument(
        "--refused", action="store_true", help="list the calls that we refuse"
    )
    parser.add_argument("--json", type=pathlib.Path, help="writes failures as lines")
    add_processes(parser)
    return parser.parse_args()


def captured(options):
    """Returns the sampled calls by operator."""
    samples = SampleCalls()
    index, count = options.slice
    seen = itertools.count(1)

    def wanted(name):
        if options.entry is not None and not fnmatch.fnmatch(name, options.entry):
            return False
        return (next(seen) - index) % count == 0

    samples.record_operators(wanted)
    samples.record_foreach(wanted)
    samples.record_optimizers(wanted)
    print(
        f"{samples.entries} entries of the databases; {len(samples.calls)} calls; left "
        f"out of {len(samples.left_out)} operators: "
        + "; ".join(
            f"{why} ({n})"
            for why, n in collections.Counter(samples.left_out.values()).items()
        )
    )
    return samples.by_operator()


def chosen_calls(by_operator, options, known):
    """[(operator, some of its calls)] of operators that have a row."""
    rng = random.Random(options.seed)
    chosen, without_row, quirks = [], collections.Counter(), 0
    for op, drawn in sorted(by_operator.items()):
        if options.op and not any(part in op for part in options.op):
            continue
        if op not in known:
            without_row[op] += len(drawn)
            continue
        sound = [one for one in drawn if quirk_of(one.call) is None]
        quirks += len(drawn) - len(sound)
        if options.most and len(sound) > options.most:
            sound = rng.sample(sound, options.most)
        chosen += [(op, sound[i : i + _PART]) for i in range(0, len(sound), _PART)]
    said = ", ".join(f"{op} {n}" for op, n in without_row.most_common())
    print(
        f"without a row: {len(without_row)} operators, {sum(without_row.values())} "
        f"calls: {said or 'none'}"
    )
    print(f"left out for their kernels: {quirks} calls")
    return chosen


def with_relaid(drawn, rng):
    """These calls, and each with its operands otherwise in memory."""
    others = [one for d in drawn for one in relaid(d, rng, count=_RELAID)]
    return [*drawn, *(one for one in others if quirk_of(one.call) is None)]


def prove_part(task):
    op, drawn, options = task
    began = time.monotonic()
    result = Result(op)
    result.calls = len(drawn)
    rng = random.Random(f"{op} {options.seed}")

    def choose(strategies, mesh):
        if mesh in EXHAUSTIVE or len(strategies) <= options.sample:
            return strategies
        return stratified(strategies, options.sample, rng)

    meshes = [*EXHAUSTIVE, *options.sampled_meshes]
    asked = [(one, mesh) for one in drawn for mesh in meshes]
    check_calls(result, propagate_command(options.bin), asked, choose=choose)
    if options.metas:
        check_strides(result, options.metas, with_relaid(drawn, rng))
    result.seconds = time.monotonic() - began
    return result


def not_taken(call, found, options):
    """Returns the (inputs, outputs) that the command does not accept unchanged.
    It propagates tensors of a list one by one, which no strategy of the list
    shows."""
    lines = [
        batch_line(call, (2,), placements=[[entry] for entry in inputs])
        for inputs, _ in found
    ]
    answers = ask([options.bin, "propagate", "--batch"], lines)
    return [
        (inputs, outputs)
        for (inputs, outputs), answer in zip(found, answers, strict=True)
        if [p["placements"] for p in answer.get("inputs", [])] != [[e] for e in inputs]
        or answer["cost_us"] != 0
    ]


def missing_of_part(task):
    """Lines of what DTensor takes on one mesh dim, is right, and we lack."""
    _, drawn, options = task
    lines = {}
    questions = [batch_line(one.call, (2,)) for one in drawn]
    command = propagate_command(options.bin)
    for one, answer in zip(drawn, ask(command, questions), strict=True):
        found = find_missing(
            one.call,
            answer.get("strategies", []),
            options.seed,
            inputs=list(one.inputs),
            worth=lambda inputs, call=one.call: stock.takes(call, inputs),
        )
        for inputs, outputs in not_taken(one.call, found, options):
            text = f"{one.call.op}: {','.join(inputs)}->{','.join(outputs)}"
            lines.setdefault(text, in_short(one.call))
    return lines


def in_parts(function, parts, options):
    """(operator, result or None, how it died) of every part."""
    torch.set_num_threads(1)
    tasks = [(op, drawn, options) for op, drawn in parts]
    random.Random(0).shuffle(tasks)
    ended = run_each(
        function, tasks, processes=options.processes, seconds=_MOST_SECONDS
    )
    began = said = time.monotonic()
    for done, ((op, _, _), result, died) in enumerate(ended, start=1):
        if time.monotonic() - said > _SAY_EVERY:
            said = time.monotonic()
            print(
                f"{done} of {len(tasks)} parts in {said - began:.0f} s, last {op}",
                file=sys.stderr,
            )
        yield op, result, died


def report_missing(parts, options):
    stock.takes(parts[0][1][0].call, ("R",) * len(parts[0][1][0].call.inputs))
    lines, failed = {}, 0
    for op, found, died in in_parts(missing_of_part, parts, options):
        if found is None:
            failed += 1
            print(f"{op}: the search itself ended: {died}")
        else:
            lines |= found
    for text, example in sorted(lines.items()):
        print(f"{text}    {example}")
    print(f"{len(lines)} layouts that DTensor takes, that are right, and that we lack")
    return 1 if lines or failed else 0


def main():
    options = parse_arguments()
    if importlib.util.find_spec("expecttest") is None:
        print("SKIPPED: PyTorch's samples need the package expecttest")
        return 0
    began = time.monotonic()
    done = subprocess.run(
        [options.bin, "ops", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    known = {entry["op"] for entry in json.loads(done.stdout)}
    parts = chosen_calls(captured(options), options, known)
    if options.missing:
        return report_missing(parts, options)
    results = [
        result or dead(op, died)
        for op, result, died in in_parts(prove_part, parts, options)
    ]
    results.sort(key=lambda result: result.op)
    print_failures(results, options.show)
    if options.refused:
        print_refused(results)
    if options.json:
        write_failures(results, options.json)
    wrong, _ = print_summary(results, time.monotonic() - began)
    return 0 if results and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
