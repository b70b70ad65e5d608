"""Models that train by a plan on 2x2 processes of gloo, as one process does.

The models are GPT-2 and T5 with dropout, which samples by element (they are
compared with our program of one rank); ResNet with a batch that does not
divide; Mixtral; plans under a memory limit. Every collective that runs is one
of the plan's, with its bytes. $SHARDPROP_PACKAGE is the folder of the built
package. Models train for 3 steps, with SHARDPROP_FULL=1 for 20.
SHARDPROP_MODELS names some: gpt2,t5.
"""

import collections
import os
import pathlib
import unittest

import running.interpreted  # noqa: F401
import running.package  # noqa: F401
import torch
import torch.distributed as dist

import shardprop as sp
import shardprop.torch
from shardprop.torch._constants import carried
from running.models import CASES, train
from running.ranks import run_ranks

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOPOLOGY = str(ROOT / "examples/topologies/dear-compute.toml")
FULL = os.environ.get("SHARDPROP_FULL") == "1"
STEPS = 20 if FULL else 3
NAMES = os.environ.get("SHARDPROP_MODELS", ",".join(CASES)).split(",")
KINDS = {
    "all_gather",
    "reduce_scatter",
    "all_reduce",
    "all_to_all",
    "slice",
    "permute",
}


def parallel(name, program, constants, plan):
    """A case's model by a plan, with its weights; the JSON lacks constants."""
    sizes = tuple(plan.mesh.values())
    mesh = dist.device_mesh.init_device_mesh(
        "cpu", sizes, mesh_dim_names=tuple(plan.mesh)
    )
    module = sp.torch.parallelize(program, plan, mesh)
    model, args = CASES[name].make()
    sp.torch.load_weights(module, constants, strict=False)
    missing = sp.torch.load_weights(module, model, strict=False)
    assert set(missing) <= set(constants), missing
    return module, args


def run_case(name, program, constants, plan_json):
    """Returns losses, final weights, and the counts of the first step."""
    plan = sp.Plan.from_json(plan_json)
    module, args = parallel(name, program, constants, plan)
    found = []

    def counted(run):
        with sp.torch.count(plan) as count:
            loss = run()
        found.append((count.ok, str(count), count.kinds))
        return loss

    losses = train(module, args, STEPS, counted)
    weights = {
        key: value.full_tensor().detach()
        for key, value in [*module.named_parameters(), *module.named_buffers()]
    }
    return losses, weights, found[0]


def run_cases(jobs):
    return {name: run_case(name, *job) for name, job in jobs.items()}


def planned(name, program):
    """Returns a case's plan, under a memory limit if it asks for one."""
    case = CASES[name]
    options = {"topology": TOPOLOGY, "progress": False, **case.options}
    plan = sp.plan(program, case.mesh, memory=None, **options)
    if case.memory is None:
        return plan
    limit = int(case.memory * plan.memory["peak_bytes_per_rank"])
    limited = sp.plan(program, case.mesh, memory=str(limit), **options)
    assert limited.status in ("optimal", "feasible"), limited
    assert limited.memory["peak_bytes_per_rank"] <= limit
    return limited


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs, cls.plans, constants = {}, {}, {}
        for name in NAMES:
            case = CASES[name]
            model, args = case.make()
            exported = sp.torch.export(model, args, mode="train", device="cpu")
            cls.programs[name] = sp.torch.to_json(exported)
            constants[name] = carried(exported)
            cls.plans[name] = planned(name, cls.programs[name])
        jobs = {
            name: (cls.programs[name], constants[name], plan.to_json())
            for name, plan in cls.plans.items()
        }
        cls.found = run_ranks(4, run_cases, jobs)
        ones = {
            name: (
                program,
                constants[name],
                sp.plan(program, "one=1", progress=False).to_json(),
            )
            for name, program in cls.programs.items()
        }
        [cls.one] = run_ranks(1, run_cases, ones)

    def assert_same(self, name, losses, weights, wanted_losses, wanted):
        for mine, theirs in zip(losses, wanted_losses, strict=True):
            self.assertAlmostEqual(mine, theirs, delta=2e-5 * abs(theirs) + 1e-6)
        worst = 0.0
        for key, value in weights.items():
            worst = max(worst, (value - wanted[key]).abs().max().item())
        print(
            f"{name:10} {STEPS} steps, loss {wanted_losses[0]:.5f} to "
            f"{losses[-1]:.5f}, largest difference of a weight {worst:.1e}"
        )
        self.assertLess(worst, 2e-4)

    def test_losses_and_weights_are_those_of_one_rank(self):
        for name in NAMES:
            wanted_losses, wanted, _ = self.one[name]
            for rank in range(4):
                losses, weights, _ = self.found[rank][name]
                if rank == 0:
                    with self.subTest(model=name):
                        self.assert_same(
                            name, losses, weights, wanted_losses, wanted
                        )
                self.assertEqual(losses, self.found[0][name][0])

    def test_losses_and_weights_are_those_of_eager_pytorch(self):
        for name in NAMES:
            case = CASES[name]
            if case.has_dropout:
                continue
            model, args = case.make()
            before = {k: v.clone() for k, v in model.state_dict().items()}
            wanted = train(model, args, STEPS)
            state = model.state_dict()
            with self.subTest(model=name):
                losses, weights, _ = self.found[0][name]
                weights = {k: v for k, v in weights.items() if k in state}
                self.assertGreater(len(weights), 0)
                self.assert_same(name, losses, weights, wanted, state)
                moved = max(
                    (state[k].double() - before[k].double()).abs().max().item()
                    for k in weights
                )
                self.assertGreater(moved, 1e-3)

    def test_collectives_are_the_plans(self):
        ran = collections.Counter()
        for name, plan in self.plans.items():
            for rank in range(4):
                ok, text, kinds = self.found[rank][name][2]
                self.assertTrue(ok, f"{name}, rank {rank}: {text}")
                if rank == 0:
                    ran.update(kinds)
            # A slice sends no data, so it has no operator that could be
            # counted.
            ran["slice"] += plan.summary["collectives"]["slice"]
        print(f"collectives that ran: {dict(ran)}")
        if set(NAMES) == set(CASES):
            self.assertEqual({kind for kind in KINDS if ran[kind] == 0}, set())


if __name__ == "__main__":
    unittest.main()
