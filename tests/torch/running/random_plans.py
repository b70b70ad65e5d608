"""Makes random plans: some values are pinned to random layouts."""

import pathlib
import traceback

import torch.distributed as dist

import running.interpreted  # noqa: F401
import shardprop as sp
import shardprop.torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOPOLOGY = str(ROOT / "examples/topologies/dear-compute.toml")


def random_layout(shape, mesh_dims, rng):
    choices = ["R", *(f"S({d})" for d, size in enumerate(shape) if size > 1)]
    return ",".join(rng.choice(choices) for _ in range(mesh_dims))


def random_plan(program, mesh, rng):
    """A plan with a share of its values pinned, fewer until there is one."""
    options = {"topology": TOPOLOGY, "memory": None, "progress": False}
    free = sp.plan(program, mesh, **options)
    values = [output for node in free.nodes for output in node["outputs"]]
    share = rng.choice((0.08, 0.2, 0.4))
    while share > 0.01:
        pins = {
            value["name"]: random_layout(value["shape"], mesh.count("="), rng)
            for value in values
            if value["shape"] and rng.random() < share
        }
        try:
            plan = sp.plan(program, mesh, pins=pins, time_limit=3, **options)
        except sp.Error:  # a layout that the value cannot have
            plan = None
        if plan is not None and plan.status in ("optimal", "feasible"):
            return plan
        share /= 2
    return free


def planned_module(program, constants, plan_json, model):
    """This rank's part of a plan, filled from the model; and the plan."""
    plan = sp.Plan.from_json(plan_json)
    mesh = dist.device_mesh.init_device_mesh(
        "cpu", tuple(plan.mesh.values()), mesh_dim_names=tuple(plan.mesh)
    )
    module = sp.torch.parallelize(program, plan, mesh)
    sp.torch.load_weights(module, constants, strict=False)
    missing = sp.torch.load_weights(module, model, strict=False)
    assert set(missing) <= set(constants), missing
    return module, plan


def run_each(run_plan, jobs):
    """Returns the result of run_plan() for each job, or how it ended."""
    found = []
    for job in jobs:
        try:
            found.append(run_plan(*job))
        except Exception:
            found.append(traceback.format_exc())
    return found
