"""These functions are common to the models from transformers."""

import types

import torch
import transformers
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

transformers.logging.set_verbosity_error()

# For an attention name without a mask function, transformers passes no mask. Causal
# attention is then a flag, which the fused kernels need. The graph has no mask
# arithmetic, which only padding would need.
UNMASKED_SDPA = "unmasked_sdpa"
AttentionInterface.register(UNMASKED_SDPA, sdpa_attention_forward)


def build(model_class, config, dtype=torch.float32):
    """Builds a model of `config` in `dtype`."""
    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        return model_class(config)
    finally:
        torch.set_default_dtype(previous)


def with_forward(module, forward):
    """Gives one module another forward; parameter names do not change."""
    module.forward = types.MethodType(forward, module)
    return module


def token_ids(batch, sequence):
    return torch.zeros(batch, sequence, dtype=torch.int64)


def _causal_lm_loss(self, input_ids, labels):
    outputs = type(self).forward(self, input_ids, labels=labels, use_cache=False)
    return outputs.loss


def _causal_lm_logits(self, input_ids):
    return type(self).forward(self, input_ids, use_cache=False).logits


def causal_lm(model, training, batch, sequence):
    """Returns a causal language model and its inputs; in training it returns the
    loss."""
    ids = token_ids(batch, sequence)
    if training:
        return with_forward(model, _causal_lm_loss), (ids, ids.clone())
    return with_forward(model, _causal_lm_logits), (ids,)
