#!/usr/bin/env python3
"""Prices of whole programs beside a count by hand: scripts/count_prices.py."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts"))
import count_prices  # noqa: E402

SHARDPROP = sys.argv.pop(1)

# By kind: the least and the most that is priced of what is counted. Products
# and convolutions lose what their tiles leave idle: in TF32 small tiles leave the
# multipliers waiting, and an H100 takes twice what is counted for ResNet-50's
# (bench/results/measured_steps.md). Writes into a part and lookups touch less than
# their operands.
RANGES = {
    "attention, forward": (0.9, 1.1),
    "attention, backward": (0.9, 1.1),
    "products": (1, 1.1),
    "convolutions": (1, 1.4),
    "other operators": (0.9, 1.01),
}


class Prices(unittest.TestCase):

    def test_every_kind_costs_what_is_counted(self):
        for graph in count_prices.GRAPHS:
            rows = count_prices.table(SHARDPROP, graph)
            self.assertIn("products", rows)
            for kind, (operators, priced, counted) in rows.items():
                with self.subTest(graph=graph, kind=kind, operators=operators):
                    least, most = RANGES[kind]
                    self.assertGreaterEqual(priced, least * counted)
                    self.assertLessEqual(priced, most * counted)

    def test_flash_attention_backward_is_two_and_a_half_times_its_forward(self):
        rows = count_prices.table(SHARDPROP, "llama3_8b_train")
        ratio = rows["attention, backward"][1] / rows["attention, forward"][1]
        self.assertAlmostEqual(ratio, 2.5, delta=0.25)


if __name__ == "__main__":
    unittest.main()
