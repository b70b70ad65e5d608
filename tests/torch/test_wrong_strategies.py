"""Calls on which strategies were once wrong: every strategy offered is right.

SHARDPROP_BIN names the command line tool; SHARDPROP_OP_METAS the one that prints
strides of outputs (without it they are not compared).
"""

import os
import pathlib
import unittest

from sharding.drawn_proof import Result, check_calls, check_strides, propagate_command
from sharding.reproducers import reproducers
from sharding.words import in_short

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("SHARDPROP_BIN", str(ROOT / "build/release/tools/shardprop"))
METAS = os.environ.get("SHARDPROP_OP_METAS")
# Terms of partials are random: some hide faults that others show.
SEEDS = range(8)


class WrongStrategies(unittest.TestCase):
    def test_every_strategy_is_right(self):
        for letter, mesh, drawn in reproducers():
            with self.subTest(letter=letter, call=in_short(drawn.call)):
                result = Result(drawn.call.op)
                check_calls(
                    result, propagate_command(BINARY), [(drawn, mesh)], seeds=SEEDS
                )
                if METAS:
                    check_strides(result, METAS, [drawn])
                self.assertEqual([f.text for f in result.failures], [])
                self.assertEqual([why for _, why in result.we_refuse], [])
                self.assertGreater(result.pairs, 0)


if __name__ == "__main__":
    unittest.main()
