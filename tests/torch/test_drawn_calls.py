"""Tests that sampled calls have the intended properties, and that one seed
gives the same calls."""

import unittest

import torch

from sharding.ask import ask
from sharding.drawn_calls import draw_calls


def drawn(op, count=120):
    return draw_calls(op, count=count, seed=0).valid


class Calls(unittest.TestCase):
    def assert_some(self, op, holds, count=120):
        self.assertTrue(any(holds(one) for one in drawn(op, count)), op)

    def test_a_seed_draws_the_same_calls(self):
        first, second = drawn("aten.scatter.src", 20), drawn("aten.scatter.src", 20)
        self.assertEqual([one.call for one in first], [one.call for one in second])
        for one, other in zip(first, second, strict=True):
            for tensor, again in zip(one.inputs, other.inputs, strict=True):
                self.assertTrue(torch.equal(tensor, again))

    def test_every_dtype(self):
        dtypes = {one.call.inputs[0].dtype for one in drawn("aten.add.Tensor", 200)}
        self.assertEqual(
            dtypes, {"f64", "f32", "bf16", "i64", "i32", "u8", "i8", "bool"}
        )
        mixed = [
            len({m.dtype for m in one.call.inputs}) for one in drawn("aten.add.Tensor")
        ]
        self.assertIn(2, mixed)

    def test_what_hid_wrong_strategies(self):
        self.assert_some(
            "aten.squeeze.dims",
            lambda one: one.call.inputs[0].shape == () and one.call.arg("dim"),
        )
        self.assert_some(
            "aten.arange.start_step",
            lambda one: (
                isinstance(one.call.arg("step"), float)
                and isinstance(one.call.arg("start"), int)
            ),
        )
        self.assert_some(
            "aten.index_put.default",
            lambda one: (
                one.call.arg("accumulate")
                and any(t.numel() and int(t.min()) < 0 for t in one.inputs[1:-1])
            ),
        )
        self.assert_some(
            "aten.scatter.src",
            lambda one: one.call.inputs[2].shape > one.call.inputs[1].shape,
        )
        self.assert_some(
            "aten.convolution_backward.default",
            lambda one: one.call.inputs[0].shape[0] == 0 and one.call.arg("bias_sizes"),
        )
        self.assert_some(
            "aten.sum.dim_IntList",
            lambda one: (
                one.call.inputs[0].dtype == "f64" and one.call.arg("dtype") == "i64"
            ),
        )
        self.assert_some(
            "aten.add.out",
            lambda one: (
                one.call.inputs[0].dtype == "u8" and one.call.inputs[-1].dtype != "u8"
            ),
        )
        for size in (7, 8, 11):
            self.assert_some(
                "aten._softmax.default",
                lambda one, n=size: n in one.call.inputs[0].shape,
            )

    def test_operators_that_no_family_knows(self):
        for op in (
            "lerp.Scalar",
            "amax.default",
            "clamp.Tensor_out",
            "std.correction",
            "addcmul_.default",
            "index_add.default",
            "max.dim_max",
            "logical_xor.default",
            "cumsum.default",
            "hypot.default",
        ):
            self.assertEqual(len(drawn(f"aten.{op}", 20)), 20, op)


class Questions(unittest.TestCase):
    def test_a_death_costs_one_answer(self):
        command = ["awk", "/7/ { exit 3 } { print }"]
        answers = list(ask(command, list(range(20))))
        self.assertEqual(
            [n for n in answers if isinstance(n, int)],
            [n for n in range(20) if "7" not in str(n)],
        )
        self.assertEqual(
            [a for a in answers if isinstance(a, dict)], [{"died": "exit 3"}] * 2
        )


if __name__ == "__main__":
    unittest.main()
