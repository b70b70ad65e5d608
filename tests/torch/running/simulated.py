"""One process that plays the four ranks of a line and of a 2x2 mesh.

LocalTensorMode on the fake backend holds one local tensor per rank.
"""

import unittest

import torch.distributed as dist
from torch.distributed._local_tensor import LocalTensor, LocalTensorMode
from torch.distributed.tensor import DTensor, init_device_mesh

import shardprop.torch

WORLD = 4


def full_value(value):
    """Returns a value of DTensors, or a sequence of such values, as one process has
    it."""
    if isinstance(value, (list, tuple)):
        return [full_value(item) for item in value]
    if isinstance(value, DTensor):
        value = value.full_tensor()
    return value.reconcile() if isinstance(value, LocalTensor) else value


class SimulatedRanks(unittest.TestCase):
    """A test case whose calls run on the meshes `line` and `grid`."""

    @classmethod
    def setUpClass(cls):
        dist.init_process_group("fake", rank=0, world_size=WORLD)
        cls.addClassCleanup(dist.destroy_process_group)

    def setUp(self):
        simulated = LocalTensorMode(frozenset(range(WORLD)))
        simulated.__enter__()
        self.addCleanup(simulated.__exit__, None, None, None)
        self.line = init_device_mesh("cpu", (WORLD,))
        self.grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))


class SimulatedWithPropagator(SimulatedRanks):
    """The same with our propagator, `ours`."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ours = shardprop.torch.install_propagator()
        cls.addClassCleanup(shardprop.torch.uninstall_propagator)
