"""This is T5 (transformers), a sequence-to-sequence model, with its dropout."""

import torch
from transformers import T5Config, T5ForConditionalGeneration

from models import huggingface


def _loss(self, input_ids, labels):
    outputs = type(self).forward(self, input_ids, labels=labels, use_cache=False)
    return outputs.loss


def _logits(self, input_ids, decoder_input_ids):
    return (
        type(self)
        .forward(
            self, input_ids, decoder_input_ids=decoder_input_ids, use_cache=False
        )
        .logits
    )


def _t5(training, batch, source, target, **config):
    model = huggingface.build(
        T5ForConditionalGeneration,
        T5Config(attn_implementation=huggingface.UNMASKED_SDPA, **config),
    )
    args = (
        huggingface.token_ids(batch, source),
        huggingface.token_ids(batch, target),
    )
    return huggingface.with_forward(model, _loss if training else _logits), args


def t5_small(training):
    return _t5(
        training,
        batch=8,
        source=512,
        target=128,
        vocab_size=32128,
        d_model=512,
        d_kv=64,
        d_ff=2048,
        num_layers=6,
        num_heads=8,
        decoder_start_token_id=0,
    )


def t5_tiny(training):
    return _t5(
        training,
        batch=4,
        source=6,
        target=5,
        vocab_size=30,
        d_model=12,
        d_kv=4,
        d_ff=24,
        num_layers=2,
        num_heads=6,
        relative_attention_num_buckets=8,
        decoder_start_token_id=0,
    )
