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

from running import package  # noqa: F401
from running.simulated import SimulatedRanks, full_value
import shardprop.torch

from eager_calls import Sampler, distribute, plain_tensors

# So many of 1,000 calls may be refused although stock answers them rightly.
MOST_REFUSED = 10


def is_full():
    return os.environ.get("SHARDPROP_FULL") == "1"


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
            made_one = full_value(made_one)
            with plain_tensors():
                torch.testing.assert_close(made_one, in_lists(wanted_one))
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


def in_lists(value):
    """Returns a value with lists for tuples, as full_value() does."""
    if isinstance(value, (list, tuple)):
        return [in_lists(item) for item in value]
    return value


class Sweep(SimulatedRanks):
    def outcome(self, call):
        """right, wrong or refused, and why."""
        try:
            why = difference(call, self.grid)
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
        try:
            outcomes = [self.outcome(call) for call in calls]
        finally:
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
