#!/usr/bin/env python3
"""A sweep of eager DTensor calls with our propagator on a 2x2 mesh.

Every call is right or refused: no value is wrong, and no write is lost. Calls that
are refused though stock DTensor answers them rightly are listed and few. 120 calls
run by default, 1,000 with SHARDPROP_FULL=1; SHARDPROP_SEED and SHARDPROP_CALLS
choose others. Needs the Python package of a build, named by $SHARDPROP_PACKAGE.
"""

import copy
import os
import unittest
import warnings

import torch
import torch.distributed as dist
from torch.distributed._local_tensor import LocalTensor, LocalTensorMode
from torch.distributed.tensor import DTensor, init_device_mesh

from running import package  # noqa: F401
import shardprop.torch

from eager_calls import Sampler, distribute, plain_tensors

WORLD = 4
# So many of 1,000 calls may be refused although stock answers them rightly.
MOST_REFUSED = 10


def is_full():
    return os.environ.get("SHARDPROP_FULL") == "1"


def whole(value):
    """Returns a value of DTensors as one process has it."""
    if isinstance(value, (list, tuple)):
        return [whole(item) for item in value]
    if isinstance(value, DTensor):
        value = value.full_tensor()
    return value.reconcile() if isinstance(value, LocalTensor) else value


def difference(call, mesh):
    """Returns how results and operands differ from those of one process, "" if
    they are equal. Errors of DTensor pass."""
    with plain_tensors():
        alone = copy.deepcopy(call.tensors)
        wanted = call.run(*alone)
    given = [
        distribute(tensor, mesh, layout, seed)
        for seed, (tensor, layout) in enumerate(zip(call.tensors, call.layouts))
    ]
    made = call.run(*given)
    for made_one, wanted_one, what in (
        (made, wanted, "result"),
        (given, alone, "operand after the call"),
    ):
        try:
            made_one = whole(made_one)
            with plain_tensors():
                torch.testing.assert_close(made_one, plain(wanted_one))
        except AssertionError as error:
            return f"{what}: {str(error).splitlines()[0]}"
    return ""


def runs_alone(call):
    """Whether one process takes the call: some views of views it does not."""
    try:
        call.run(*copy.deepcopy(call.tensors))
    except RuntimeError:
        return False
    return True


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


class Sweep(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        dist.init_process_group("fake", rank=0, world_size=WORLD)

    @classmethod
    def tearDownClass(cls):
        shardprop.torch.uninstall_propagator()
        dist.destroy_process_group()

    def setUp(self):
        self.simulated = LocalTensorMode(frozenset(range(WORLD)))
        self.simulated.__enter__()
        self.addCleanup(self.simulated.__exit__, None, None, None)
        self.mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))

    def outcome(self, call):
        """right, wrong or refused, and why."""
        try:
            why = difference(call, self.mesh)
        except Exception as error:
            return "refused", f"{type(error).__name__}: {error}"
        return ("wrong", why) if why else ("right", "")

    def test_calls_are_right_or_refused(self):
        count = int(os.environ.get("SHARDPROP_CALLS", 1000 if is_full() else 120))
        sampler = Sampler(int(os.environ.get("SHARDPROP_SEED", 2026)))
        with plain_tensors():
            calls = []
            while len(calls) < count:
                call = sampler.call()
                if runs_alone(call):
                    calls.append(call)
        shardprop.torch.install_propagator()
        outcomes = [self.outcome(call) for call in calls]
        shardprop.torch.uninstall_propagator()
        refused = [
            (call, why)
            for call, (kind, why) in zip(calls, outcomes)
            if kind == "refused"
        ]
        stock_right = [
            (call, why) for call, why in refused if self.outcome(call)[0] == "right"
        ]
        wrong = [
            f"{call}: {why}"
            for call, (kind, why) in zip(calls, outcomes)
            if kind == "wrong"
        ]
        kinds = [kind for kind, _ in outcomes]
        print(
            f"{count} calls: {kinds.count('right')} right, {len(refused)} refused, "
            f"{len(wrong)} wrong; stock answers {len(stock_right)} of the refused"
        )
        for call, why in stock_right:
            print(f"  refused, stock is right: {call}: {why.splitlines()[0]}")
        if os.environ.get("SHARDPROP_VERBOSE"):
            for call, why in refused:
                print(f"  refused: {call}: {why[:300]}")
        self.assertEqual(wrong, [])
        self.assertLessEqual(len(stock_right), MOST_REFUSED)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
