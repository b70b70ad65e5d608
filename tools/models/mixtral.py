"""This file defines Mixtral (transformers) with a mixture of experts of fixed shapes.

transformers sends tokens to experts by data-dependent indexing, which no graph of fixed
sizes can hold. Here every expert reads every token, and the router's weights are zero
for the other experts. The result is the same.
"""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import MixtralConfig, MixtralForCausalLM

from models import huggingface


class DenseExperts(nn.Module):
    """Top-k routing over experts whose weights are stacked in dim 0."""

    def __init__(self, config):
        super().__init__()
        experts = config.num_local_experts
        hidden, inner = config.hidden_size, config.intermediate_size
        self.top_k = config.num_experts_per_tok
        self.gate = nn.Linear(hidden, experts, bias=False)
        self.w1 = nn.Parameter(torch.empty(experts, hidden, inner))
        self.w2 = nn.Parameter(torch.empty(experts, inner, hidden))
        self.w3 = nn.Parameter(torch.empty(experts, hidden, inner))

    def forward(self, hidden_states):
        tokens = hidden_states.flatten(0, 1)
        probabilities = F.softmax(self.gate(tokens), dim=-1, dtype=torch.float32)
        top, chosen = torch.topk(probabilities, self.top_k, dim=-1)
        top = top / top.sum(dim=-1, keepdim=True)
        weights = torch.zeros_like(probabilities).scatter(1, chosen, top)
        weights = weights.to(tokens.dtype)
        inner = F.silu(torch.einsum("th,ehi->eti", tokens, self.w1))
        inner = inner * torch.einsum("th,ehi->eti", tokens, self.w3)
        outputs = torch.einsum("eti,eih->eth", inner, self.w2)
        mixed = torch.einsum("eth,te->th", outputs, weights)
        return mixed.view_as(hidden_states)


def _mixtral(training, batch, sequence, dtype, **config):
    config = MixtralConfig(
        attn_implementation=huggingface.UNMASKED_SDPA,
        sliding_window=None,
        **config,
    )
    model = huggingface.build(MixtralForCausalLM, config, dtype)
    for layer in model.model.layers:
        layer.mlp = DenseExperts(config).to(dtype)
    return huggingface.causal_lm(model, training, batch, sequence)


def mixtral_8x7b(training):
    return _mixtral(
        training,
        batch=8,
        sequence=2048,
        dtype=torch.bfloat16,
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        num_local_experts=8,
        num_experts_per_tok=2,
    )


def mixtral_tiny(training, dtype=torch.float32):
    return _mixtral(
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
        num_local_experts=4,
        num_experts_per_tok=2,
    )


def mixtral_tiny_bf16(training):
    """Uses the dtype for which CUDA has a flash attention kernel."""
    return mixtral_tiny(training, torch.bfloat16)
