"""Lists how the strategies of two builds differ on the operator calls of graphs.

  python tests/torch/compare_strategies.py --before OLD/shardprop --after NEW/shardprop

Each distinct call of the graphs (unless given: examples/graphs/tiny) is put to
`propagate --batch --all --strided` of both. Prints what only one of them has, by
operator, and calls that one of them refuses. Exits 1 if the second build lacks a
strategy of the first.
"""

import argparse
import collections
import pathlib
import sys

from sharding import capture
from sharding.ask import ask
from sharding.words import in_short, in_words, mesh_sizes

ROOT = pathlib.Path(__file__).resolve().parents[2]
MESHES = ("2", "3", "2,2")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", required=True, help="command line tool, old")
    parser.add_argument("--after", required=True, help="command line tool, new")
    parser.add_argument("--graphs", nargs="+", type=pathlib.Path)
    parser.add_argument(
        "--meshes",
        nargs="+",
        type=mesh_sizes,
        default=[mesh_sizes(mesh) for mesh in MESHES],
        help=f"default {' '.join(MESHES)}",
    )
    parser.add_argument("--show", type=int, default=4, help="of each operator (4)")
    return parser.parse_args()


def strategies(binary, questions):
    command = [binary, "propagate", "--all", "--strided", "--limit", "20000", "--batch"]
    for answer in ask(command, questions):
        if "strategies" in answer:
            yield {in_words(strategy) for strategy in answer["strategies"]}
        else:
            yield None


def print_side(title, by_operator, show):
    total = sum(len(found) for found in by_operator.values())
    print(f"{title}: {total} strategies")
    for op, found in sorted(by_operator.items(), key=lambda item: -len(item[1])):
        print(f"  {op}: {len(found)}")
        for call, mesh, words in found[:show]:
            print(f"    {in_short(call)} on {list(mesh)}: {words}")


def main():
    options = parse_arguments()
    paths = options.graphs or sorted((ROOT / "examples/graphs/tiny").glob("*.json.gz"))
    calls = capture.distinct_calls(paths)
    asked = [(call, mesh) for mesh in options.meshes for call in calls]
    questions = [capture.batch_line(call, mesh) for call, mesh in asked]
    lost = collections.defaultdict(list)
    gained = collections.defaultdict(list)
    same = 0
    both = zip(
        asked,
        strategies(options.before, questions),
        strategies(options.after, questions),
        strict=True,
    )
    for (call, mesh), old, new in both:
        if (old is None) != (new is None):
            word = "before" if old is None else "after"
            print(f"refused {word}: {in_short(call)} on {list(mesh)}")
        old, new = old or set(), new or set()
        same += len(old & new)
        lost[call.op] += [(call, mesh, words) for words in sorted(old - new)]
        gained[call.op] += [(call, mesh, words) for words in sorted(new - old)]
    lost = {op: found for op, found in lost.items() if found}
    gained = {op: found for op, found in gained.items() if found}
    print(f"{len(calls)} calls, {same} strategies are the same")
    print_side("only after", gained, options.show)
    print_side("only before", lost, options.show)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
