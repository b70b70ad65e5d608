"""verify() finds each collective that is left out, made twice or changed.

The programs are right. A mutant changes one collective of all ranks: it skips a sum,
sums twice, scales a reduction or swaps the parts of a gather. Without SHARDPROP_FULL=1
every sixth mutant is run, from one that SHARDPROP_SEED chooses.
"""

import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.environ.get("SHARDPROP_PACKAGE", ""))

import torch
from own_code.dtensors import Net
from test_verify_other_code import batch, shard_all, shard_features, train
from torch import nn

import shardprop as sp
from shardprop.torch.verifying import collectives, groups

EVERY = 1 if os.environ.get("SHARDPROP_FULL") == "1" else 6
FIRST = int(os.environ.get("SHARDPROP_SEED", "0")) % EVERY


class Mutation:
    """A Mutation changes the collective with one number on each rank."""

    def __init__(self, number, change):
        self.number, self.change = number, change
        self.kinds, self.calls = [], {}

    def run(self, group, kind, inputs, outputs, **details):
        def original():
            return _original(group, kind, inputs, outputs, **details)

        simulation = group.simulation
        if simulation.size == 1:
            return original()
        number = self.calls.get(simulation.rank, 0)
        self.calls[simulation.rank] = number + 1
        if simulation.rank == 0:
            self.kinds.append(kind)
        if number != self.number:
            return original()
        if self.change == "skip":
            return groups._Work(group, lambda: True, "", inputs)
        work = original()
        work.wait()
        if self.change == "twice":
            work = original()
            work.wait()
        for output in collectives.flat(outputs):
            if self.change == "scale":
                output.mul_(2)
            elif self.change == "swap" and output.numel() % 2 == 0:
                first, second = output.clone().view(-1).chunk(2)
                output.copy_(torch.cat([second, first]).view_as(output))
        return work


_original = groups.SimulatedGroup._run
CHANGES = {
    "all_reduce": ("skip", "twice"),
    "reduce_scatter_single": ("scale",),
    "all_gather_single": ("swap",),
}


class Mutants(unittest.TestCase):
    def check(self, parallelize, step, mesh):
        def report(mutation):
            with mock.patch.object(
                groups.SimulatedGroup, "_run",
                lambda group, *args, **kwargs: mutation.run(group, *args, **kwargs),
            ):
                return sp.torch.verify(Net, parallelize, step, batch, mesh)

        unchanged = Mutation(-1, "")
        self.assertTrue(report(unchanged).ok)
        mutants = [
            (number, change)
            for number, kind in enumerate(unchanged.kinds)
            for change in CHANGES.get(kind, ())
        ]
        self.assertGreater(len(mutants), 3)
        missed = [
            mutant
            for mutant in mutants[FIRST::EVERY]
            if report(Mutation(*mutant)).ok
        ]
        self.assertEqual(missed, [])

    def test_tensor_parallel(self):
        self.check(shard_features, train(1), "tp=2")

    def test_fully_shard(self):
        self.check(shard_all, train(), "dp=2")

    def test_data_parallel(self):
        self.check(
            lambda model, mesh: nn.parallel.DistributedDataParallel(model),
            train(), "dp=2",
        )

    def test_first_value_of_first_step(self):
        """A gradient of the first step comes before the values of the second one."""
        mutation = Mutation(-1, "skip")
        with mock.patch.object(
            groups.SimulatedGroup, "_run",
            lambda group, *args, **kwargs: mutation.run(group, *args, **kwargs),
        ):
            arguments = (
                lambda model, mesh: nn.parallel.DistributedDataParallel(model),
                train(), batch, "dp=2",
            )
            sp.torch.verify(Net, *arguments)
            number = mutation.kinds.index("all_reduce")
            mutation = Mutation(number, "skip")
            report = sp.torch.verify(Net, *arguments)
        first = report.first
        self.assertEqual(
            (first.kind, first.name, first.call), ("gradient", "head.bias", 0)
        )


if __name__ == "__main__":
    unittest.main()
