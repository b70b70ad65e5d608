"""This is GPT-2 (transformers) for causal language modelling, with its dropout."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from models import huggingface


def _gpt2(training, batch, sequence, **config):
    model = huggingface.build(
        GPT2LMHeadModel,
        GPT2Config(attn_implementation=huggingface.UNMASKED_SDPA, **config),
    )
    return huggingface.causal_lm(model, training, batch, sequence)


def gpt2_124m(training):
    return _gpt2(training, batch=8, sequence=1024)


def gpt2_tiny(training):
    return _gpt2(
        training,
        batch=4,
        sequence=6,
        vocab_size=30,
        n_positions=8,
        n_embd=12,
        n_layer=2,
        n_head=6,
        n_inner=24,
        bos_token_id=0,
        eos_token_id=0,
    )
