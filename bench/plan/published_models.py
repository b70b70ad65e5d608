"""The models whose training speed others have published, at any depth, batch and
sequence length, as shardprop's exporter takes them: a function of `training` that
gives a module and its arguments."""

import torch
import torch.nn.functional as F
from models import huggingface
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM


class Block(nn.Module):
    def __init__(self, width, heads, bias, fused_attention):
        super().__init__()
        self.heads = heads
        self.fused_attention = fused_attention
        self.norm_1 = nn.LayerNorm(width, bias=bias)
        self.q = nn.Linear(width, width, bias=bias)
        self.k = nn.Linear(width, width, bias=bias)
        self.v = nn.Linear(width, width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.norm_2 = nn.LayerNorm(width, bias=bias)
        self.up = nn.Linear(width, 4 * width, bias=bias)
        self.down = nn.Linear(4 * width, width, bias=bias)
        self.core = CoreAttention() if not fused_attention else None

    def attend(self, q, k, v):
        if self.core is not None:
            return self.core(q, k, v)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def forward(self, x):
        batch, length, width = x.shape
        normed = self.norm_1(x)
        q, k, v = (
            projection(normed)
            .view(batch, length, self.heads, width // self.heads)
            .transpose(1, 2)
            for projection in (self.q, self.k, self.v)
        )
        attended = self.attend(q, k, v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(attended)
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


class CoreAttention(nn.Module):
    """Attention without a fused kernel: two matmuls with a softmax of all scores and its
    dropout between them, in 16 bits. Heads are the first dim, so a shard of heads is
    one contiguous part of the matmuls' batch."""

    def forward(self, q, k, v):
        q, k, v = (x.transpose(0, 1) for x in (q, k, v))
        scores = q @ k.transpose(-1, -2) * (q.size(-1) ** -0.5)
        later = torch.ones(q.size(-2), q.size(-2), dtype=torch.bool,
                           device=q.device).triu(1)
        weights = torch.softmax(scores.masked_fill(later, -10000.0), -1)
        return (F.dropout(weights, 0.1, True) @ v).transpose(0, 1)


class Gpt(nn.Module):
    """GPT with learned positions and tied embeddings. It is MPT without ALiBi (no biases)
    or Megatron-LM's GPT (biases, separate projections of q, k and v)."""

    def __init__(self, layers, width, heads, vocabulary, length, bias, fused_attention):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(
            Block(width, heads, bias, fused_attention) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width, bias=bias)

    def forward(self, ids, labels):
        x = self.token(ids) + self.position.weight
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.token.weight)
        return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


def _gpt(width, heads, vocabulary=50368, bias=False, fused_attention=True):
    def make(batch, sequence, layers):
        torch.set_default_dtype(torch.bfloat16)
        model = Gpt(layers, width, heads, vocabulary, sequence, bias, fused_attention)
        torch.set_default_dtype(torch.float32)
        ids = huggingface.token_ids(batch, sequence)
        return model, (ids, ids.clone())

    return make


def _llama(width, inner, heads, key_heads, vocabulary=128256):
    def make(batch, sequence, layers):
        config = LlamaConfig(
            attn_implementation=huggingface.UNMASKED_SDPA,
            vocab_size=vocabulary,
            hidden_size=width,
            intermediate_size=inner,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=key_heads,
            max_position_embeddings=sequence,
            rms_norm_eps=1e-5,
            rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
        )
        model = huggingface.build(LlamaForCausalLM, config, torch.bfloat16)
        return huggingface.causal_lm(model, True, batch, sequence)

    return make


MODELS = {
    "llama3-8b": _llama(4096, 14336, 32, 8),
    "llama3-70b": _llama(8192, 28672, 64, 8),
    "llama3-405b": _llama(16384, 53248, 128, 8),
    "llama2-13b": _llama(5120, 13824, 40, 40, 32000),
    "llama2-70b": _llama(8192, 28672, 64, 8, 32000),
    "mpt-125m": _gpt(768, 12),
    "mpt-350m": _gpt(1024, 16),
    "mpt-760m": _gpt(1536, 12),
    "mpt-1b": _gpt(2048, 16),
    "mpt-3b": _gpt(2560, 20),
    "mpt-7b": _gpt(4096, 32),
    "mpt-13b": _gpt(5120, 40),
    "mpt-30b": _gpt(7168, 56),
    "mpt-70b": _gpt(8192, 64),
    "gpt-18b": _gpt(14336, 64, 250000, True, False),
    "gpt-22b": _gpt(6144, 64, 51200, True, False),
}
