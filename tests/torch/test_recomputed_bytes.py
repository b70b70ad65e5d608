"""Compares the activations that plans keep under each rule of recomputation with those
of eager PyTorch with the same wrappers of torch.utils.checkpoint.

Each model has 8 blocks. It is wrapped as the rule says and runs under MemTracker. The
plan of the plain model follows the rule, and that of the wrapped one `model`.
$SHARDPROP_PACKAGE is the folder of the built package.
"""

import functools
import json
import os
import unittest
from unittest import mock

import kept_bytes
import running.package  # noqa: F401
import torch
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)
from transformers import (
    AttentionInterface,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)
from transformers.integrations.sdpa_attention import sdpa_attention_forward

import shardprop as sp
import shardprop.torch

BLOCKS = 8
TOLERANCE = 0.05
IDS = torch.zeros(2, 64, dtype=torch.int64)
CALL = {"input_ids": IDS, "labels": IDS}
aten = torch.ops.aten

# An attention without a mask function has no mask, so that causal attention is a flag.
AttentionInterface.register("unmasked", sdpa_attention_forward)


def checkpointed_attention(module, query, key, value, mask, **others):
    run = functools.partial(sdpa_attention_forward, module, attention_mask=mask, **others)
    return checkpoint(run, query, key, value, use_reentrant=False)


AttentionInterface.register("checkpointed", checkpointed_attention)


def llama(attention="unmasked"):
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=64,
            hidden_size=64,
            intermediate_size=176,
            num_hidden_layers=BLOCKS,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=64,
            use_cache=False,
            attn_implementation=attention,
        )
    )


def gpt2(attention="unmasked"):
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=64,
            n_embd=64,
            n_layer=BLOCKS,
            n_head=4,
            n_positions=64,
            use_cache=False,
            attn_implementation=attention,
            attn_pdrop=0.0,  # the CPU has no fused attention with dropout
            bos_token_id=0,
            eos_token_id=0,
        )
    )


def blocks_of(model):
    return model.model.layers if hasattr(model, "model") else model.transformer.h


def wrap(module, **options):
    module.forward = functools.partial(
        checkpoint, module.forward, use_reentrant=False, **options
    )


ATTENTION = {
    aten._scaled_dot_product_flash_attention.default,
    aten._scaled_dot_product_efficient_attention.default,
    aten._scaled_dot_product_flash_attention_for_cpu.default,
}


# The first context of each selective region.
contexts = []


def saves_every_second_matmul():
    """Returns the contexts of torchtitan's selective checkpointing."""
    matmuls = {False: 0, True: 0}  # in the first and in the second run

    def policy(context, op, *args, **kwargs):
        is_matmul = op in (aten.mm.default, aten.addmm.default)
        matmuls[context.is_recompute] += is_matmul
        is_odd = matmuls[context.is_recompute] % 2 == 1
        saves = is_odd if is_matmul else op in ATTENTION
        return (
            CheckpointPolicy.MUST_SAVE if saves else CheckpointPolicy.PREFER_RECOMPUTE
        )

    made = create_selective_checkpoint_contexts(policy)
    contexts.append(made[0])
    return made


def unread_bytes():
    """Returns the bytes of what selective regions saved and never read, such as the
    result of the last matmul of a block. Programs of plans do not hold it."""
    saved = tree_leaves([list(context.storage.values()) for context in contexts])
    contexts.clear()
    return sum(tensor.val.nbytes for tensor in saved if hasattr(tensor, "val"))


def dropout_of_gpu(input, p=0.5, training=True, inplace=False):
    """A GPU keeps a byte for each element; the CPU keeps a float."""
    return torch.native_dropout(input, p, training)[0]


def wrapped(build, rule):
    """Returns the model with the wrappers that the rule stands for."""
    model = build("checkpointed" if rule == "selective:megatron" else "unmasked")
    blocks = blocks_of(model)
    if rule == "selective":
        for block in blocks:
            wrap(block, context_fn=saves_every_second_matmul)
    elif rule == "modules:*.mlp":
        for block in blocks:
            wrap(block.mlp)
    elif rule.startswith("full"):
        count = int(rule.partition(":")[2] or BLOCKS)
        for block in blocks[:count]:
            wrap(block)
    return model.train()


def graph_of(model):
    return sp.load_graph(
        sp.torch.export(model, (), CALL, mode="train", device="cpu")
    )


@functools.cache
def plain_graph(build):
    return graph_of(build().train())


def kept_by_plan(graph, rule):
    plan = sp.plan(
        graph,
        "x=1",
        memory=None,
        optimizer="none",
        execution="eager",
        recompute=rule,
        progress=False,
    )
    return kept_bytes.values_of_plan(json.loads(plan.to_json()))


class RecomputedBytes(unittest.TestCase):
    def check(self, build, rule):
        with mock.patch("torch.nn.functional.dropout", dropout_of_gpu):
            eager = kept_bytes.of_eager(wrapped(build, rule), (), CALL)
        unread = unread_bytes()
        plain = kept_by_plan(plain_graph(build), rule)
        found = {rule: plain}
        if rule != "none":
            found["model"] = kept_by_plan(graph_of(wrapped(build, rule)), "model")
        sizes = {name: sum(values.values()) for name, values in found.items()}
        print(f"{build.__name__} {rule}: PyTorch keeps {eager} bytes, "
              f"{unread} of them unread; plans {sizes}")
        eager -= unread
        if os.environ.get("SHARDPROP_LIST"):
            for name, values in found.items():
                print(name, sorted((size, value) for value, size in values.items()))
        for name, size in sizes.items():
            self.assertAlmostEqual(size / eager, 1, delta=TOLERANCE, msg=name)


def case(build, rule):
    return lambda self: self.check(build, rule)


for model in (llama, gpt2):
    for rule in (
        "none",
        "selective",
        "selective:megatron",
        "modules:*.mlp",
        "full",
        "full:3",
    ):
        name = "".join(c if c.isalnum() else "_" for c in rule)
        setattr(
            RecomputedBytes, f"test_{model.__name__}_{name}", case(model, rule)
        )


if __name__ == "__main__":
    unittest.main()
