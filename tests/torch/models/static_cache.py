"""A language model whose static cache is an object that no module knows."""

import torch
from transformers import StaticCache


class WithStaticCache(torch.nn.Module):
    """Runs a causal model of transformers with a cache of `length` tokens, batch 1."""

    def __init__(self, model, length):
        super().__init__()
        self.lm = model
        config = model.config
        self.cache = StaticCache(max_cache_len=length, config=config)
        self.cache.early_initialization(
            1,
            config.num_key_value_heads,
            config.hidden_size // config.num_attention_heads,
            torch.float32,
            model.device,
        )

    def forward(self, ids, positions):
        return self.lm(
            input_ids=ids,
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
        ).logits
