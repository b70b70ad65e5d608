"""This is Llama 3 (transformers) for causal language modelling."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from models import huggingface


def _llama(training, batch, sequence, dtype, **config):
    model = huggingface.build(
        LlamaForCausalLM,
        LlamaConfig(attn_implementation=huggingface.UNMASKED_SDPA, **config),
        dtype,
    )
    return huggingface.causal_lm(model, training, batch, sequence)


def llama3_8b(training):
    return _llama(
        training,
        batch=8,
        sequence=2048,
        dtype=torch.bfloat16,
        vocab_size=128256,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=8192,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
    )


def llama3_405b(training):
    """Builds a model that needs the meta device, with one sequence for each of 128
    ranks."""
    return _llama(
        training,
        batch=128,
        sequence=8192,
        dtype=torch.bfloat16,
        vocab_size=128256,
        hidden_size=16384,
        intermediate_size=53248,
        num_hidden_layers=126,
        num_attention_heads=128,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
    )


def llama3_128k(training):
    """Builds four layers of the model on one sequence of 131,072 tokens."""
    return _llama(
        training,
        batch=1,
        sequence=131072,
        dtype=torch.bfloat16,
        vocab_size=128256,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=4,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
    )


def llama3_tiny(training, dtype=torch.float32):
    return _llama(
        training,
        batch=4,
        sequence=6,
        dtype=dtype,
        vocab_size=30,
        hidden_size=24,
        intermediate_size=36,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=3,
        head_dim=8,
        max_position_embeddings=16,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
    )


def llama3_tiny_bf16(training):
    """Uses the dtype for which CUDA has a flash attention kernel."""
    return llama3_tiny(training, torch.bfloat16)
