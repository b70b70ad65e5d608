"""User models answer by random plans.

Every model of running/zoo that only infers is planned with some values pinned
to random layouts. It runs on 2x2 processes of gloo, or on 3, which divides no
size. It is called twice, as the model is called. It must return what eager
PyTorch returns, in the same structure, write what eager PyTorch writes, and
send the bytes that the plan predicts. $SHARDPROP_PACKAGE is the folder of the
built package; $SHARDPROP_SLICE=K/M takes every M-th model. SHARDPROP_SEED
selects other layouts.
"""

import os
import random
import re
import unittest

import running.package  # noqa: F401
import torch
from torch.utils._pytree import tree_flatten, tree_leaves

import shardprop as sp
import shardprop.torch
from shardprop.torch._constants import carried
from running.random_plans import planned_module, random_plan, run_each
from running.ranks import run_ranks
from running.zoo import ANSWERS

SLICE, SLICES = map(int, os.environ.get("SHARDPROP_SLICE", "1/1").split("/"))
SEED = int(os.environ.get("SHARDPROP_SEED", "0"))
DRAWS = 4 if os.environ.get("SHARDPROP_FULL") == "1" else 1
MESHES = {"d0=2,d1=2": 4, "d0=3": 3}
WRITES_INPUTS = ("cache_written_in_place",)
CALLS = 2  # so that what the first one wrote is read


def made(name):
    kind, args, kwargs = ANSWERS[name]()
    torch.manual_seed(0)
    return kind().eval(), args, kwargs


def whole(leaf):
    """A copy that later writes leave alone."""
    if not isinstance(leaf, torch.Tensor):
        return leaf
    leaf = leaf.full_tensor() if hasattr(leaf, "full_tensor") else leaf
    return leaf.detach().clone()


def wholes(result):
    leaves, structure = tree_flatten(result)
    return list(map(whole, leaves)), structure


def run_plan(name, program, constants, plan_json):
    model, args, kwargs = made(name)
    module, plan = planned_module(program, constants, plan_json, model)
    answers, miscounted = [], None
    for _ in range(CALLS):
        with sp.torch.count(plan) as count:
            result = module(*args, **kwargs)
        leaves, structure = wholes(result)
        answers += leaves
        # A full input that is written is gathered after the program.
        behind = [one for one in count.extra if one.node is None]
        extra = count.extra if name not in WRITES_INPUTS else behind != count.extra
        if count.missing or extra:
            miscounted = str(count)
    return answers + tree_leaves((args, kwargs)), str(structure), miscounted


def run_eager(name):
    model, args, kwargs = made(name)
    answers = []
    with torch.no_grad():
        for _ in range(CALLS):
            leaves, structure = wholes(model(*args, **kwargs))
            answers += leaves
    return answers + tree_leaves((args, kwargs)), str(structure)


def alike(own, wanted, tolerance):
    if not isinstance(wanted, torch.Tensor):
        return own == wanted
    if own.shape != wanted.shape or own.dtype != wanted.dtype:
        return False
    if wanted.is_complex():
        own, wanted = torch.view_as_real(own.resolve_conj()), torch.view_as_real(wanted)
    own, wanted = own.double(), wanted.double()
    return torch.allclose(own, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)


def without_names(structure):
    """A structure that PyTorch names (the results of torch.frexp) is a tuple in
    a file."""
    return re.sub(r"TreeSpec\((?!tuple|list|dict)\w+", "TreeSpec(tuple", structure)


def difference(found, leaves, structure, tolerance):
    """Returns the faults of a run in words; empty if there are none."""
    if isinstance(found, str):
        return found
    own, own_structure, miscounted = found
    if miscounted:
        return miscounted
    if own_structure != without_names(structure):
        return f"{own_structure}, not {structure}"
    if len(own) != len(leaves):
        return f"{len(own)} values, not {len(leaves)}"
    for index, (one, other) in enumerate(zip(own, leaves, strict=True)):
        if not alike(one, other, tolerance):
            return f"value {index} is {one}, not {other}"
    return ""


class Strangers(unittest.TestCase):
    def test_answers_are_those_of_eager_pytorch(self):
        names = sorted(ANSWERS)[SLICE - 1 :: SLICES]
        jobs = {mesh: [] for mesh in MESHES}
        for name in names:
            model, args, kwargs = made(name)
            for mesh in MESHES:
                # Taken apart to core ATen, and as torch.export leaves it.
                exported = sp.torch.export(
                    model, args, kwargs, device="cpu", composite=mesh == "d0=3"
                )
                program = sp.torch.to_json(exported)
                for draw in range(DRAWS):
                    rng = random.Random(f"{name} {mesh} {SEED} {draw}")
                    plan = random_plan(program, mesh, rng)
                    jobs[mesh].append(
                        (name, program, carried(exported), plan.to_json())
                    )
        wanted = {name: run_eager(name) for name in names}
        for mesh, ranks in MESHES.items():
            by_rank = run_ranks(ranks, run_each, run_plan, jobs[mesh])
            for job, found in zip(jobs[mesh], zip(*by_rank, strict=True), strict=True):
                name = job[0]
                tolerance = 2e-2 if name == "halves" else 1e-3
                for rank, one in enumerate(found):
                    with self.subTest(model=name, mesh=mesh, rank=rank):
                        self.assertEqual(difference(one, *wanted[name], tolerance), "")
        count = sum(map(len, jobs.values()))
        print(f"{count} plans of {len(names)} models answer as eager PyTorch does")


if __name__ == "__main__":
    unittest.main()
