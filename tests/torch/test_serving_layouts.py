"""Prefill and decode of a Llama with a static cache share their layouts by `like`, and
each plan counts the cache once. $SHARDPROP_PACKAGE is the folder of the built package."""

import unittest

import running.package  # noqa: F401
import torch
from models.static_cache import WithStaticCache
from transformers import LlamaConfig, LlamaForCausalLM

import shardprop as sp
import shardprop.torch

HEADS, LENGTH, WIDTH, LAYERS = 8, 512, 64, 3
CACHE_BYTES = 2 * LAYERS * HEADS * LENGTH * WIDTH // HEADS * 4


def model():
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=WIDTH,
        intermediate_size=256,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
    )
    config._attn_implementation = "eager"
    return WithStaticCache(LlamaForCausalLM(config).eval(), LENGTH)


def graph(tokens):
    """The program that reads so many tokens at once."""
    ids = torch.arange(tokens)[None]
    return sp.load_graph(sp.torch.export(model(), (ids, ids.clone()), device="cpu"))


def kept(plan):
    return {
        name: value["placements"]
        for name, value in plan.values.items()
        if value["role"] in ("parameter", "buffer")
    }


class Serving(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefill, cls.decode = graph(64), graph(1)
        # The heads of the cache are sharded as a server would.
        pins = {"cache_layers_*_keys": "S(1)", "cache_layers_*_values": "S(1)"}
        cls.first = sp.plan(cls.prefill, "tp=8", gap=0, pins=pins, progress=False)

    def test_decode_is_laid_out_as_prefill(self):
        alone = sp.plan(self.decode, "tp=8", gap=0, progress=False)
        self.assertNotEqual(kept(alone), kept(self.first))
        second = sp.plan(self.decode, "tp=8", gap=0, like=self.first, progress=False)
        self.assertEqual(kept(second), kept(self.first))
        # And the other way round.
        third = sp.plan(self.prefill, "tp=8", gap=0, like=second, progress=False)
        self.assertEqual(kept(third), kept(self.first))

    def test_the_cache_counts_once_and_is_on_the_first_screen(self):
        second = sp.plan(self.decode, "tp=8", gap=0, like=self.first, progress=False)
        for plan in (self.first, second):
            buffers = plan.data["memory"]["buffer_bytes"]
            self.assertGreaterEqual(buffers, CACHE_BYTES // 8)
            self.assertLess(buffers, CACHE_BYTES // 8 * 1.1)
            self.assertIn("cache_layers_", plan.explain())

    def test_names_and_shapes_decide(self):
        other = sp.load_graph(
            sp.torch.export(torch.nn.Linear(8, 8), (torch.ones(8, 8),), device="cpu")
        )
        with self.assertRaisesRegex(sp.Error, "has no parameter and no buffer"):
            sp.plan(other, "tp=8", like=self.first, progress=False)


if __name__ == "__main__":
    unittest.main()
