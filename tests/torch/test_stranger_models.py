"""User models train by random plans.

Every model of running/zoo is planned with some values pinned to random layouts.
It runs on 2x2 processes of gloo, or on 3, which divides no size. It must give
the loss and every gradient that eager PyTorch gives, with the collectives of
the plan. $SHARDPROP_PACKAGE is the folder of the built package;
$SHARDPROP_SLICE=K/M takes every M-th model. SHARDPROP_SEED selects other
layouts.
"""

import os
import random
import unittest

import running.package  # noqa: F401
import torch

import shardprop as sp
import shardprop.torch
from shardprop.torch._constants import carried
from running.random_plans import planned_module, random_plan, run_each
from running.ranks import run_ranks
from running.zoo import MODELS

SLICE, SLICES = map(int, os.environ.get("SHARDPROP_SLICE", "1/1").split("/"))
SEED = int(os.environ.get("SHARDPROP_SEED", "0"))
DRAWS = 4 if os.environ.get("SHARDPROP_FULL") == "1" else 1
MESHES = ("d0=2,d1=2", "d0=3")


def made(name):
    kind, args = MODELS[name]()
    torch.manual_seed(0)
    return kind(), args


def run_plan(name, program, constants, plan_json):
    model, args = made(name)
    module, plan = planned_module(program, constants, plan_json, model)
    with sp.torch.count(plan) as count:
        loss = module(*args)
    gradients = {
        key: parameter.grad.full_tensor()
        for key, parameter in module.named_parameters()
        if parameter.grad is not None
    }
    return loss.item(), gradients, None if count.ok else str(count)


def difference(found, loss, gradients, tolerance):
    """Returns the faults of a run in words; empty if there are none."""
    if isinstance(found, str):
        return found
    own_loss, own, miscounted = found
    if miscounted:
        return miscounted
    if abs(own_loss - loss) > tolerance * abs(loss) + 1e-5:
        return f"the loss is {own_loss}, not {loss}"
    if own.keys() != gradients.keys():
        return f"gradients of {sorted(own.keys() ^ gradients.keys())}"
    for key, wanted in gradients.items():
        most = (own[key] - wanted).abs().max().item()
        if not most <= tolerance * wanted.abs().max().item() + 2e-6:
            return f"the gradient of {key} is {most} off"
    return ""


class Strangers(unittest.TestCase):
    def test_losses_and_gradients_are_those_of_eager_pytorch(self):
        names = sorted(MODELS)[SLICE - 1 :: SLICES]
        jobs = {mesh: [] for mesh in MESHES}
        wanted = {}
        for name in names:
            model, args = made(name)
            exported = sp.torch.export(model, args, mode="train", device="cpu")
            program = sp.torch.to_json(exported)
            for mesh in MESHES:
                for draw in range(DRAWS):
                    rng = random.Random(f"{name} {mesh} {SEED} {draw}")
                    plan = random_plan(program, mesh, rng)
                    jobs[mesh].append(
                        (name, program, carried(exported), plan.to_json())
                    )
            model, args = made(name)
            loss = model(*args)
            loss.backward()
            gradients = {
                key: parameter.grad
                for key, parameter in model.named_parameters()
                if parameter.grad is not None
            }
            wanted[name] = loss.item(), gradients
        for mesh, ranks in zip(MESHES, (4, 3), strict=True):
            by_rank = run_ranks(ranks, run_each, run_plan, jobs[mesh])
            for job, found in zip(jobs[mesh], zip(*by_rank, strict=True), strict=True):
                name = job[0]
                halves = any(
                    p.dtype == torch.bfloat16 for p in made(name)[0].parameters()
                )
                for rank, one in enumerate(found):
                    with self.subTest(model=name, mesh=mesh, rank=rank):
                        tolerance = 2e-2 if halves else 2e-3
                        self.assertEqual(difference(one, *wanted[name], tolerance), "")
        count = sum(map(len, jobs.values()))
        print(f"{count} plans of {len(names)} models ran as eager PyTorch does")


if __name__ == "__main__":
    unittest.main()
