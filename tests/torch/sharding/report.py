"""Prints the results of a proof of many operators as lines of text."""

import collections
import json

from .failure_classes import CLASSES
from .words import in_short


def print_failures(results, most):
    """Prints at most so many failures of each operator and class."""
    for result in results:
        shown = collections.Counter()
        for failure in result.failures:
            key = failure.kind, failure.letter
            shown[key] += 1
            if shown[key] <= most:
                print(f"{failure.kind} ({failure.letter}): {failure.text}")
        for (kind, letter), count in shown.items():
            if count > most:
                more = count - most
                print(f"  and {more} more of {result.op}: {kind} ({letter})")


def print_refused(results):
    for result in results:
        for kind, found in (
            ("PyTorch refuses, we answer", result.we_answer),
            ("we refuse, PyTorch answers", result.we_refuse),
        ):
            for call, why in found[:3]:
                print(f"{kind}: {in_short(call)}\n    {why}")


def print_summary(results, seconds):
    """(how much is wrong, the operators without a call)."""
    by_class = collections.defaultdict(collections.Counter)
    kinds = collections.Counter()
    for result in results:
        for failure in result.failures:
            by_class[failure.letter][result.op] += 1
            kinds[failure.kind] += 1
    for letter, meaning in CLASSES.items():
        if letter in by_class:
            ops = ", ".join(f"{op} {n}" for op, n in by_class[letter].most_common(8))
            print(f"{letter:<6}{sum(by_class[letter].values()):>6}  {meaning}: {ops}")
    slow = sorted(results, key=lambda result: -result.seconds)[:4]
    said = ", ".join(f"{result.op} {result.seconds:.0f} s" for result in slow)
    print(f"slowest: {said}")
    none = [result.op for result in results if not result.calls]
    if none:
        print(f"no call was drawn of: {', '.join(none)}")
    total = collections.Counter()
    for result in results:
        total.update(
            operators=int(bool(result.calls)),
            calls=result.calls,
            answers=result.answers,
            pairs=result.pairs,
            skipped=result.skipped,
            quirks=result.quirks,
            strides=result.strides_compared,
            we_refuse=len(result.we_refuse),
            we_answer=len(result.we_answer),
        )
    print(
        f"{total['operators']} of {len(results)} operators, {total['calls']} calls "
        f"({total['quirks']} left out for their kernels), {total['answers']} answers, "
        f"{total['pairs']} strategies run, {total['skipped']} skipped, in "
        f"{seconds:.0f} s"
    )
    print(
        f"refused by us: {total['we_refuse']} calls; refused by PyTorch and answered: "
        f"{total['we_answer']}; strides compared of {total['strides']} outputs"
    )
    print(
        f"wrong: {kinds['strategy']} strategies, {kinds['shape']} shapes, "
        f"{kinds['dtype']} dtypes, {kinds['strides']} strides, {kinds['died']} deaths"
    )
    return sum(kinds.values()), none


def write_failures(results, path):
    """Writes a line of JSON for each failure."""
    with open(path, "w") as file:
        for result in results:
            for failure in result.failures:
                print(json.dumps(failure.line, default=str), file=file)
