#!/usr/bin/env python3
"""PyTorch's own operator suite through eager DTensor: stock, and with ours.

    python dtensor_ops.py stock results.json [--op GLOB ...] [--slice K/M]
    SHARDPROP_PACKAGE=... python dtensor_ops.py ours results.json
    python dtensor_ops.py compare stock.json ours.json > lists.md

Runs every float32 sample of op_db with every product of R and S(i) per tensor
argument (at most --placements a sample), on a 1-D mesh of 4 simulated ranks.
The results are compared with the unsharded operator. With --mesh 2,2 only the
first mesh dim shards, so that dims of 2 and 3, which many samples have for any
sizes, leave no rank without elements. An operator passes if every sample in
every placement does. The test follows PyTorch's DTensorOpTestBase; it needs
torch 2.13 and expecttest.
"""

import argparse
import collections
import fnmatch
import itertools
import json
import signal
import sys
import time
import warnings

import torch
import torch.distributed as dist
from torch.distributed._local_tensor import LocalTensor, LocalTensorMode
from torch.distributed.tensor import DTensor, Replicate, Shard, init_device_mesh
from torch.utils import _pytree as pytree

WORLD = 4
# Large enough to cut, and of sizes that do not all divide.
SIZES = {"L": 24, "M": 12, "S": 4, "XS": 2}
UNEVEN = {"L": 23, "M": 11, "S": 5, "XS": 2}
# The values of these operators do not depend on their arguments alone.
RANDOM = (
    "bernoulli",
    "cauchy",
    "dropout",
    "exponential",
    "geometric",
    "log_normal",
    "multinomial",
    "normal",
    "rand",
    "rrelu",
    "uniform",
)
# The names of these operators match a random one, but they are not random.
DETERMINED = ("normalize", "native_dropout_backward")
UNINITIALISED = ("empty", "new_empty")


class TooLong(Exception):
    pass


def load_suite(sizes, everywhere=False):
    """`everywhere`: the sizes of the samples that other files make, too."""
    from torch.testing._internal import common_methods_invocations as suite

    files = [suite]
    if everywhere:
        prefix = "torch.testing._internal.opinfo."
        files += [m for name, m in sys.modules.items() if name.startswith(prefix)]
    for file in files:
        for name, size in sizes.items():
            if file is suite or isinstance(getattr(file, name, None), int):
                setattr(file, name, size)
    return [op for op in suite.op_db if torch.float in op.supported_dtypes("cpu")]


def wanted(op, globs):
    name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
    return not globs or any(fnmatch.fnmatch(name, glob) for glob in globs)


def judged(op):
    name = op.name.rsplit(".", 1)[-1]
    if name in DETERMINED:
        return True
    return not any(word in name for word in RANDOM) and not name.startswith(
        UNINITIALISED
    )


def whole(value):
    if isinstance(value, DTensor):
        value = value.full_tensor()
    if not isinstance(value, LocalTensor):
        return value
    first, *others = value._local_tensors.values()
    # reconcile() would take a NaN for a difference.
    for other in others:
        torch.testing.assert_close(other, first, rtol=0, atol=0, equal_nan=True)
    return first


def difference(expected, actual):
    """Returns the difference in words; empty if there is none."""
    left, right = pytree.tree_leaves(expected), pytree.tree_leaves(actual)
    if len(left) != len(right):
        return f"{len(right)} results for {len(left)}"
    for a, b in zip(left, right):
        b = whole(b)
        if not isinstance(a, torch.Tensor):
            continue
        if not isinstance(b, torch.Tensor):
            return f"a {type(b).__name__} for a tensor"
        if a.shape != b.shape:
            return f"shape {list(b.shape)} for {list(a.shape)}"
        if a.dtype != b.dtype:
            return f"{b.dtype} for {a.dtype}"
        if not torch.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True):
            return "wrong values"
    return ""


class Watch(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts the collectives that run."""

    def __init__(self):
        super().__init__()
        self.kinds = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        # The collectives are inside of what DTensor does.
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented
        if func.namespace in ("_c10d_functional", "c10d", "_dtensor"):
            self.kinds[func._opname] += 1
        return func(*args, **(kwargs or {}))


def copied(value):
    return pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), value)


def run_placement(op, args, kwargs, expected):
    """(failure or None, whether an input was cut, whether anything gathered)."""
    leaves = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, DTensor)]
    cut = any(p.is_shard() for x in leaves for p in x.placements)
    watch = Watch()
    try:
        with watch:
            result = op.op(*args, **kwargs)
        kinds = dict(watch.kinds)
        said = difference(expected, result)
    except TooLong:
        return "endless", cut, {}
    except Exception as error:
        return f"{type(error).__name__}: {error}", cut, {}
    return said or None, cut, kinds


def converter_of(uneven):
    from torch.testing._internal.distributed._tensor.common_dtensor import (
        DTensorConverter,
    )

    class Converter(DTensorConverter):
        def gen_sharding_choices_for_arg(self, arg):
            ranks = self.mesh.size(0)
            cuts = [
                Shard(d)
                for d, size in enumerate(arg.shape)
                if size > 1 and (uneven or size % ranks == 0)
            ]
            if arg.dtype == torch.bool and not uneven:
                cuts = []
            return [Replicate(), *cuts]

        def to_dist_tensor(self, t, mesh, placements):
            # Cut by the first mesh dim, copied by others.
            copies = [Replicate()] * (mesh.ndim - 1)
            return super().to_dist_tensor(t, mesh, [*placements, *copies])

    return Converter


def reads_beyond(op, sample):
    """Its segments are longer together than its data: in sizes that are not
    upstream's, which its lengths and offsets do not follow."""
    if op.name != "_segment_reduce":
        return False
    rows = sample.input.shape[sample.kwargs["axis"]]
    if "offsets" in sample.kwargs:
        return bool((sample.kwargs["offsets"] > rows).any())
    return bool((sample.kwargs["lengths"].sum(-1) > rows).any())


def draws(sample):
    """Returns whether a sample is attention with dropout, whose values are
    random."""
    return bool(sample.kwargs.get("dropout_p"))


def run_op(op, mesh, options):
    """Errors: TooLong. Where the alarm rings within a placement, that one fails."""
    row = {"ran": 0, "failed": 0, "cut": 0, "quiet": 0, "why": [], "where": ""}
    began = time.monotonic()
    samples = op.sample_inputs("cpu", torch.float)
    for number, sample in enumerate(itertools.islice(samples, options.samples)):
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        if reads_beyond(op, sample) or draws(sample):
            continue
        try:
            whole_args = pytree.tree_map_only(LocalTensor, whole, copied(args))
            whole_kwargs = pytree.tree_map_only(LocalTensor, whole, copied(kwargs))
            expected = pytree.tree_map(whole, op.op(*whole_args, **whole_kwargs))
        except Exception as error:
            row["reference"] = str(error)[:200]
            continue
        converter = converter_of(options.uneven)(mesh, copied(args), copied(kwargs))
        for d_args, d_kwargs in itertools.islice(converter, options.placements):
            if not converter.successful():
                continue
            leaves = pytree.tree_leaves((d_args, d_kwargs))
            if not any(isinstance(x, DTensor) for x in leaves):
                continue
            row["ran"] += 1
            said, cut, kinds = run_placement(op, d_args, d_kwargs, expected)
            if time.monotonic() - began > options.seconds:
                raise TooLong()
            if said:
                row["failed"] += 1
                if len(row["why"]) < 3:
                    placed = [
                        str(x.placements) for x in leaves if isinstance(x, DTensor)
                    ]
                    row["why"].append(f"sample {number} {placed}: {said[:1200]}")
            elif cut:
                row["cut"] += 1
                moved = {
                    "all_gather_into_tensor",
                    "all_to_all_single",
                    "shard_dim_alltoall",
                } & set(kinds)
                row["quiet"] += not moved
        if row["failed"] > 40:
            break
    return row


def label(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def give_up(signum, frame):
    raise TooLong()


def save(rows, options):
    with open(options.results, "w") as file:
        json.dump(rows, file, indent=1)


def run(options):
    dist.init_process_group("fake", rank=0, world_size=WORLD)
    if options.which == "ours":
        from running import package  # noqa: F401
        import shardprop.torch

        propagator = shardprop.torch.install_propagator(
            unknown="gather" if options.gather else "error",
            implicit_replication=options.implicit,
        )
    signal.signal(signal.SIGALRM, give_up)
    rows = {}
    sizes = dict(UNEVEN if options.uneven else SIZES)
    if options.sizes:
        sizes = dict(zip(sizes, map(int, options.sizes.split(",")), strict=True))
    ops = load_suite(sizes, everywhere=bool(options.sizes))
    share, shares = map(int, options.slice.split("/"))
    ops = [op for op in ops if wanted(op, options.op)][share - 1 :: shares]
    with LocalTensorMode(frozenset(range(WORLD))):
        mesh = init_device_mesh("cpu", tuple(map(int, options.mesh.split(","))))
        for op in ops:
            torch.manual_seed(0)
            began = time.monotonic()
            signal.alarm(options.seconds)
            try:
                row = run_op(op, mesh, options)
            except TooLong:
                row = {"ran": 1, "failed": 1, "cut": 0, "quiet": 0, "why": ["endless"]}
            except Exception as error:
                row = {"ran": 0, "failed": 0, "cut": 0, "quiet": 0, "why": []}
                row["reference"] = f"{type(error).__name__}: {error}"[:300]
            finally:
                signal.alarm(0)
            row["judged"] = judged(op)
            row["seconds"] = round(time.monotonic() - began, 2)
            rows[label(op)] = row
            if len(rows) % 16 == 0:
                save(rows, options)
            if options.verbose and row["failed"]:
                print(label(op), row["failed"], "of", row["ran"], row["why"], flush=True)
    if options.which == "ours":
        print(
            f"{propagator.statistics.ours} answered by ours, "
            f"{propagator.statistics.stock} by stock"
        )
        rows["reasons"] = propagator.statistics.reasons
    save(rows, options)
    counts = collections.Counter(verdict(r) for k, r in rows.items() if k != "reasons")
    print(dict(counts))


def verdict(row):
    if not row["judged"] or not row["ran"]:
        return "not judged"
    return "fails" if row["failed"] else "passes"


def compare(options):
    with open(options.which_results[0]) as file:
        stock = json.load(file)
    with open(options.which_results[1]) as file:
        ours = json.load(file)
    reasons = ours.pop("reasons", {})
    groups = collections.defaultdict(list)
    for name in stock:
        if name in ours:
            groups[verdict(stock[name]), verdict(ours[name])].append(name)
    for (before, after), names in sorted(groups.items()):
        print(f"\n## stock {before}, ours {after}: {len(names)}\n")
        if after == "fails":
            for name in names:
                print(f"* `{name}`: {ours[name]['why'][0].splitlines()[0][:160]}")
        else:
            print(", ".join(f"`{name}`" for name in names))
    never = [n for n, r in stock.items() if verdict(r) == "passes" and not r["quiet"]]
    now = [n for n in never if n in ours and ours[n]["quiet"]]
    print("\n## Never run on a sharded input without a gather by stock, by ours\n")
    print(f"{len(now)} of {len(never)}: " + ", ".join(f"`{n}`" for n in now))
    print(f"\n{len(reasons)} operators were left to stock at times.")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=("stock", "ours", "compare"))
    parser.add_argument("results")
    parser.add_argument("other", nargs="?")
    parser.add_argument("--op", nargs="*", default=[])
    parser.add_argument("--slice", default="1/1")
    parser.add_argument("--placements", type=int, default=32)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--uneven", action="store_true")
    parser.add_argument("--mesh", default=str(WORLD), help=f"{WORLD} ranks, as 2,2")
    parser.add_argument("--sizes", help="L,M,S,XS of the samples, as 24,12,8,4")
    parser.add_argument("--gather", action="store_true", help="unknown operators")
    parser.add_argument("--implicit", action="store_true", help="mixed tensors")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.which == "compare":
        options.which_results = (options.results, options.other)
        return compare(options)
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
