"""Proves the sharding rules on sampled calls.

  python tests/torch/prove_drawn.py --bin build/release/tools/shardprop

Samples calls for every operator that `shardprop ops` lists, from PyTorch's own
schema (sharding/drawn_calls). Samples cover every dtype in its own arithmetic,
mixed dtypes, in-place and out= overloads, empty, 0-d and size-1 tensors,
negative and repeated indices. Each call goes to `shardprop propagate --all`.
The strategies in the answer run on simulated ranks and are compared with the
unsharded operator, and so are the shapes, dtypes and strides of the outputs.
Prints the counts; exits 1 if any comparison fails.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

# The samples provoke torch's kernel warnings on purpose.
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

import torch  # noqa: E402

from sharding.drawn_proof import Settings, dead, prove_operator  # noqa: E402
from sharding.options import (  # noqa: E402
    ROOT,
    add_binary,
    add_metas,
    add_processes,
)
from sharding.processes import run_each  # noqa: E402
from sharding.report import (  # noqa: E402
    print_failures,
    print_refused,
    print_summary,
    write_failures,
)
from sharding.words import mesh_sizes, slice_of  # noqa: E402

PROOFS = ROOT / "src/ops/proofs.txt"
_MOST_SECONDS = 900  # for one operator
MESHES = ("2", "3", "4", "2,2", "2,3", "3,3", "2,2,2")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_binary(parser)
    add_metas(parser)
    parser.add_argument(
        "--op", nargs="+", help="only operators whose name has one of these"
    )
    parser.add_argument("--calls", type=int, default=40, help="of each operator (40)")
    parser.add_argument(
        "--meshes-per-call", type=int, default=2, help="drawn from the meshes (2)"
    )
    parser.add_argument(
        "--sample", type=int, default=20, help="strategies of a call on a mesh (20)"
    )
    parser.add_argument(
        "--meshes",
        nargs="+",
        type=mesh_sizes,
        default=[mesh_sizes(mesh) for mesh in MESHES],
        help=f"default {' '.join(MESHES)}",
    )
    parser.add_argument(
        "--shardings",
        action="store_true",
        help="factors in all orders of mesh dims and with strides; only strategies that "
        "have such operands",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--slice",
        type=slice_of,
        default=(1, 1),
        help="K/M: one M-th of the calls of every operator",
    )
    parser.add_argument(
        "--proven",
        action="store_true",
        help="only operators that the catalogue says are proven",
    )
    parser.add_argument(
        "--show",
        type=int,
        default=2,
        help="wrong strategies per operator and class (2)",
    )
    parser.add_argument(
        "--refused", action="store_true", help="list the calls that one side refuses"
    )
    parser.add_argument(
        "--progress", action="store_true", help="each operator, on standard error"
    )
    parser.add_argument(
        "--json", type=pathlib.Path, help="writes every failure as a line"
    )
    parser.add_argument(
        "--write-proofs",
        action="store_true",
        help=f"notes in {PROOFS.relative_to(ROOT)} which operators are proven by this "
        "run, and takes out those that it finds wrong",
    )
    add_processes(parser)
    return parser.parse_args()


def operators(binary, wanted, proven):
    done = subprocess.run(
        [binary, "ops", "--format", "json"], capture_output=True, text=True, check=True
    )
    names = [
        entry["op"]
        for entry in json.loads(done.stdout)
        if not proven or entry["proof"] == "torch"
    ]
    if wanted:
        names = [name for name in names if any(part in name for part in wanted)]
    return names


def _prove(task):
    return prove_operator(*task)


def write_proofs(results):
    """Operators that were not run keep their lines."""
    said = set(PROOFS.read_text(encoding="utf-8").splitlines())
    for result in results:
        line = f"{result.op} torch"
        if result.failures:
            said.discard(line)
        elif result.calls and result.pairs:
            said = {s for s in said if not s.startswith(f"{result.op} ")} | {line}
    text = "".join(f"{line}\n" for line in sorted(said))
    PROOFS.write_text(text, encoding="utf-8")
    proven = sum(line.endswith(" torch") for line in said)
    print(f"proven against PyTorch: {proven} operators")


def _stop(_signal, _frame):
    raise KeyboardInterrupt


def prove_each(tasks, options):
    """A result per operator; fewer if it is interrupted."""
    torch.set_num_threads(1)
    # The first use of torch sets up its state once, before the processes fork.
    prove_operator("aten.add.Tensor", tasks[0][1]._replace(calls=2))
    results = []
    signal.signal(signal.SIGTERM, _stop)
    proven = run_each(_prove, tasks, processes=options.processes, seconds=_MOST_SECONDS)
    try:
        for (name, _), result, died in proven:
            results.append(result or dead(name, died))
            if options.progress:
                seconds = results[-1].seconds
                print(f"{len(results):>4} {seconds:6.1f} s {name}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"interrupted: {len(tasks) - len(results)} operators are not proven")
    finally:
        proven.close()
    return results


def main():
    options = parse_arguments()
    start = time.monotonic()
    names = operators(options.bin, options.op, options.proven)
    index, count = options.slice
    settings = Settings(
        binary=options.bin,
        metas=options.metas,
        calls=-(-options.calls // count),
        meshes=tuple(options.meshes),
        meshes_per_call=options.meshes_per_call,
        sample=options.sample,
        seed=f"{options.seed} {index}/{count}",
        shardings=options.shardings,
    )
    tasks = [(name, settings) for name in names]
    # Slow operators are adjacent in the catalogue.
    random.Random(0).shuffle(tasks)
    results = prove_each(tasks, options)
    results.sort(key=lambda result: result.op)
    print_failures(results, options.show)
    if options.refused:
        print_refused(results)
    if options.json:
        write_failures(results, options.json)
    if options.write_proofs:
        write_proofs(results)
    wrong, none = print_summary(results, time.monotonic() - start)
    pairs = sum(result.pairs for result in results)
    whole = len(results) == len(tasks)
    return 0 if whole and pairs and not wrong and not none else 1


if __name__ == "__main__":
    sys.exit(main())
