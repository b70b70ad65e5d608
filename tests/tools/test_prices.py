#!/usr/bin/env python3
"""Compares prices of whole programs with a count by hand:
scripts/count_prices.py."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts"))
import count_prices  # noqa: E402

SHARDPROP = sys.argv.pop(1)

# The ranges are by kind: the minimum and maximum of the ratio of price to
# count, without and with tile losses. Convolutions of f32 lose much: they run
# in TF32, whose multipliers small tiles do not keep busy. So do the three small
# products of ResNet-50's head. Partial writes and lookups touch less than their
# operands.
RANGES = {
    "attention, forward": ((0.9, 1.1), (0.9, 1.1)),
    "attention, backward": ((0.9, 1.1), (0.9, 1.1)),
    "products": ((1, 1.15), (0.99, 1.01)),
    "convolutions": ((1, 1.3), (0.97, 1.03)),
    "other operators": ((0.9, 1.01), (0.9, 1.01)),
}


class Prices(unittest.TestCase):

    def test_every_kind_costs_what_is_counted(self):
        for graph in count_prices.GRAPHS:
            rows = count_prices.table(SHARDPROP, graph)
            self.assertIn("products", rows)
            for kind, (operators, priced, *counts) in rows.items():
                for counted, (least, most) in zip(counts, RANGES[kind], strict=True):
                    with self.subTest(graph=graph, kind=kind, operators=operators):
                        self.assertGreaterEqual(priced, least * counted)
                        self.assertLessEqual(priced, most * counted)

    def test_flash_attention_backward_is_two_and_a_half_times_its_forward(self):
        rows = count_prices.table(SHARDPROP, "llama3_8b_train")
        ratio = rows["attention, backward"][1] / rows["attention, forward"][1]
        self.assertAlmostEqual(ratio, 2.5, delta=0.25)


if __name__ == "__main__":
    unittest.main()
