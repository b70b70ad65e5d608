"""uninstall_propagator() restores DTensor's state, and statistics are short.

One process is a rank of a fake process group. $SHARDPROP_PACKAGE is the folder of
the built package.
"""

import unittest

import running.package  # noqa: F401
import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # noqa: F401
from torch.distributed.tensor import DTensor, Shard, _redistribute, distribute_tensor

import shardprop as sp
import shardprop.torch

FLAG = "_DISABLE_REDISTRIBUTE_TRANSFORM_OPTIMIZATION"


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        dist.init_process_group("fake", rank=0, world_size=2)
        cls.addClassCleanup(dist.destroy_process_group)
        cls.mesh = dist.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))

    def test_everything_is_as_it_was_after_it(self):
        dispatcher = DTensor._op_dispatcher
        for flag in (True, False):
            setattr(_redistribute, FLAG, flag)
            dispatcher._allow_implicit_replication = flag
            before = (
                dispatcher.sharding_propagator,
                dict(dispatcher._custom_op_handlers),
                _redistribute.redistribute_local_tensor,
            )
            sp.torch.install_propagator()
            sp.torch.install_propagator(unknown="gather", implicit_replication=True)
            self.assertTrue(getattr(_redistribute, FLAG))
            self.assertIsNot(dispatcher.sharding_propagator, before[0])
            sp.torch.uninstall_propagator()
            self.assertEqual(getattr(_redistribute, FLAG), flag)
            self.assertEqual(dispatcher._allow_implicit_replication, flag)
            after = (
                dispatcher.sharding_propagator,
                dict(dispatcher._custom_op_handlers),
                _redistribute.redistribute_local_tensor,
            )
            self.assertEqual(after, before)
        self.assertFalse(getattr(_redistribute, FLAG))

    def test_reasons_are_a_line_each(self):
        propagator = sp.torch.install_propagator()
        self.addCleanup(sp.torch.uninstall_propagator)
        weights = [
            torch.nn.Parameter(distribute_tensor(torch.ones(4, 4), self.mesh, [Shard(0)]))
            for _ in range(100)
        ]
        # A step writes the gradients too, and these would have to move.
        for weight in weights:
            weight.grad = distribute_tensor(torch.ones(4, 4), self.mesh, [Shard(1)])
        torch.optim.AdamW(weights, fused=True).step()
        self.assertIn("aten._fused_adamw_.default", propagator.statistics.reasons)
        for reason in propagator.statistics.reasons.values():
            self.assertNotEqual(reason, "")
            self.assertEqual(len(reason.splitlines()), 1)
            self.assertLess(len(reason), 300)


if __name__ == "__main__":
    unittest.main()
