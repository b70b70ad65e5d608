"""Lists the operators that cannot keep a dim that they only carry.

  python tests/torch/carried_dims.py --bin build/release/tools/shardprop \\
      --spaces build/release/tests/oracle/op_spaces

An operator carries a dim if an input and a result are sharded along it together. This
dim should stay in any shard order and with any stride. Every distinct call of graphs
(examples/graphs/tiny, and a list of calls that those lack) is put to `shardprop
propagate --batch --all` on [2,2] and [2]. Each strategy that shards one factor is asked
again, with its shards in the other order of mesh dims, or strided. A layout that no
strategy keeps has an input that moves. With --samples, the calls of PyTorch's operator
samples are added, which takes minutes. Prints the moves by reason, then those by
operator that have no allowed reason; exits 1 if there are any, or if no strategy
carries a dim.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

import json

from sharding import capture
from sharding.ask import ask
from sharding.kernel_quirks import quirk_of
from sharding.more_calls import more_calls
from sharding.op_samples import SampleCalls
from sharding.options import ROOT, add_binary

_ORDER = ("S({0})@1", "S({0})@0")
_STRIDE = ("SS({0},2)",)

# The closed list of allowed reasons.
DIVIDED = "a mesh dim would be divided between two factors"
ORDERED = "the kernel needs elements in order"
NO_PROGRAM = "windowed, scanned or segmented without a program"
UNEVEN = "a minor factor of an uneven major one"
NONE = "NONE"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_binary(parser)
    parser.add_argument(
        "--spaces",
        default=str(ROOT / "build/release/tests/oracle/op_spaces"),
        help="the tool that prints index spaces",
    )
    parser.add_argument(
        "--graphs", nargs="+", type=pathlib.Path, help="programs (.json.gz)"
    )
    parser.add_argument("--op", help="only operators whose name contains this")
    parser.add_argument(
        "--samples", action="store_true", help="the samples of PyTorch's database too"
    )
    parser.add_argument(
        "--most", type=int, default=20, help="samples of an operator (20)"
    )
    parser.add_argument("--all", action="store_true", help="list allowed ones too")
    return parser.parse_args()


def captured(options):
    """Returns the distinct calls, by operator name."""
    graphs = options.graphs or sorted((ROOT / "examples/graphs/tiny").glob("*.json.gz"))
    calls = dict.fromkeys([*capture.distinct_calls(graphs), *more_calls()])
    if options.samples:
        samples = SampleCalls()
        samples.record_operators(lambda name: True)
        samples.record_foreach(lambda name: True)
        samples.record_optimizers(lambda name: True)
        for drawn in samples.by_operator().values():
            sound = [one.call for one in drawn if quirk_of(one.call) is None]
            calls.update(dict.fromkeys(sound[: options.most]))
    wanted = [call for call in calls if options.op is None or options.op in call.op]
    return sorted(wanted, key=lambda call: call.op)


def dims_of(layouts):
    """Returns by operand the dim that all entries of its layout shard, or None;
    nothing if a layout has other entries."""
    dims = []
    for entries in layouts:
        if all(entry == "R" for entry in entries):
            dims.append(None)
        elif len(set(entries)) == 1 and entries[0].startswith("S("):
            dims.append(int(entries[0][2:-1]))
        else:
            return None
    return dims


def carries(strategy):
    """Returns the sharded dim by input if the strategy shards one factor of an
    input and of a result, and nothing is sent inside."""
    inputs, outputs = dims_of(strategy["inputs"]), dims_of(strategy["outputs"])
    if inputs is None or outputs is None or strategy.get("cost_us", 0) > 0:
        return None
    if all(dim is None for dim in inputs) or all(dim is None for dim in outputs):
        return None
    return inputs


def rank_of(call, operand):
    return len(call.inputs[operand].shape)


def asked(calls, options):
    """Yields (call, mesh, dims by input, placements by input, form)."""
    command = [options.bin, "propagate", "--all", "--limit", "2000", "--batch"]
    for mesh, form in (((2, 2), _ORDER), ((2,), _STRIDE)):
        lines = [capture.batch_line(call, mesh) for call in calls]
        for call, answer in zip(calls, ask(command, lines), strict=True):
            for strategy in answer.get("strategies", []):
                dims = carries(strategy)
                if dims is None:
                    continue
                if mesh == (2,) and any(
                    dim is not None and call.inputs[i].shape[dim] % 4
                    for i, dim in enumerate(dims)
                ):
                    continue
                placements = [
                    ["R"] * len(mesh)
                    if dim is None
                    else [entry.format(dim) for entry in form]
                    for dim in dims
                ]
                yield call, mesh, dims, placements, form


def kept_by_some(moved, options):
    """Returns for each (call, mesh, placements) whether a strategy keeps all inputs:
    then the chosen one costs less."""
    lines = []
    for call, mesh, placements in moved:
        shardings = {
            tuple(re.sub(r"S\(\d+", "S(0", entry) for entry in entries)
            for entries in placements
            if entries[0] != "R"
        }
        lines.append(
            capture.batch_line(call, mesh, shardings=[list(one) for one in shardings])
        )
    command = [options.bin, "propagate", "--all", "--limit", "20000", "--strided"]
    for (_, _, placements), answer in zip(
        moved, ask([*command, "--batch"], lines), strict=True
    ):
        yield any(
            strategy["inputs"] == placements for strategy in answer["strategies"]
        )


def spaces_of(calls, options):
    """Returns the printed index space of every call."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as batch:
        for call in calls:
            print(json.dumps(capture.batch_line(call, (2,))), file=batch)
        batch.flush()
        done = subprocess.run(
            [options.spaces, batch.name], capture_output=True, text=True, check=True
        )
    texts = [line.split("| ", 2)[-1] for line in done.stdout.splitlines()]
    return dict(zip(calls, texts, strict=True))


class Space:
    """A `Space` is a printed index space, with the facts that are reasons."""

    def __init__(self, text):
        found = re.match(r"(\S+)->(\S*) \{(.*?)\}", text)
        self.is_known = found is not None
        if not self.is_known:
            return
        self.inputs, self.outputs = (
            [self._terms(operand) for operand in side.split(",")]
            for side in found.groups()[:2]
        )
        self.words, self.sizes = {}, {}
        for factor in found.group(3).split(","):
            name, _, rest = factor.partition("=")
            size, *words = rest.split()
            self.words[name], self.sizes[name] = set(words), int(size)
        flags = re.search(r"flags=(\d+)", text)
        self.is_random = flags is not None and flags.group(1)[3] == "1"
        self.gathers_in_order = " in_order " in text
        # Names of the factors whose offset is read: "<2i0,1*" is the offset in
        # dim 1 of input 0.
        self.positions = set()
        for side, operand, dim in re.findall(r"<2([io])(\d+),(\d+)\*", text):
            terms = (self.inputs if side == "i" else self.outputs)[int(operand)]
            if int(dim) < len(terms):
                self.positions |= set(terms[int(dim)])

    @staticmethod
    def _terms(operand):
        """Returns the names of the factors of each dim of "(ab)c1"."""
        terms = re.findall(r"\((?:[a-zA-Z]\d*)+\)|1|[a-zA-Z]\d*", operand)
        return [re.findall(r"[a-zA-Z]\d*", term) for term in terms]


def reason_of(space, call, dims, form):
    """Returns why a dim of the inputs moves, given the printed index space."""
    space = Space(space)
    if not space.is_known:
        return NONE
    if space.is_random:
        return ORDERED  # random numbers by position
    for operand, dim in enumerate(dims):
        if dim is None or dim >= len(space.inputs[operand]):
            continue
        names = space.inputs[operand][dim]
        words = set().union(*(space.words.get(name, set()) for name in names))
        if words & {"windowed", "scanned", "segmented"} and "program" not in words:
            return NO_PROGRAM
        # A dim of windows with a stride has several elements per position.
        elements = call.inputs[operand].shape[dim]
        if len(names) > 1 or elements != space.sizes.get("".join(names)):
            # Four parts: of two mesh dims, or two pieces over two ranks.
            is_uneven = elements % 4 != 0
            return UNEVEN if is_uneven else DIVIDED
        if words & {"program"} and space.gathers_in_order:
            return ORDERED
        if form == _STRIDE and space.positions & set(names):
            return ORDERED
    return NONE


def main():
    options = parse_arguments()
    calls = captured(options)
    questions = list(asked(calls, options))
    if not questions:
        print("no strategy carries a dim: nothing was checked")
        return 1
    lines = [
        capture.batch_line(call, mesh, placements=placements)
        for call, mesh, _, placements, _ in questions
    ]
    answers = ask([options.bin, "propagate", "--batch"], lines)
    spaces = spaces_of(calls, options)
    asked_of, moved, examples = collections.Counter(), collections.Counter(), {}
    open_ones = []
    for question, answer in zip(questions, answers, strict=True):
        call, _, _, placements, _ = question
        asked_of[call.op] += 1
        if [one["placements"] for one in answer.get("inputs", [])] != placements:
            open_ones.append(question)
    kept = kept_by_some([(c, m, p) for c, m, _, p, _ in open_ones], options)
    cheaper = 0
    for (call, mesh, dims, placements, form), keeps in zip(
        open_ones, kept, strict=True
    ):
        if keeps:
            cheaper += 1
            continue
        reason = reason_of(spaces[call], call, dims, form)
        moved[call.op, reason] += 1
        shapes = ",".join(str(list(meta.shape)) for meta in call.inputs)
        text = ", ".join(" ".join(entries) for entries in placements)
        examples.setdefault((call.op, reason), f"{shapes} {text} on {list(mesh)}")
    print(
        f"{len(calls)} calls of {len(asked_of)} operators; {asked_of.total()} layouts "
        f"of carried dims; {moved.total()} are kept by no strategy, {cheaper} cost more "
        "than a move"
    )
    rows = collections.defaultdict(int)
    for (_, reason), count in moved.items():
        rows[reason] += count
    for reason, count in sorted(rows.items()):
        print(f"{count:8d}  {reason}")
    wrong = False
    for (op, reason), count in sorted(
        moved.items(), key=lambda item: (item[0][1] != NONE, -item[1])
    ):
        wrong = wrong or reason == NONE
        if reason == NONE or options.all:
            print(f"{op} | {count} of {asked_of[op]} | {reason} | "
                  f"{examples[op, reason]}")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
