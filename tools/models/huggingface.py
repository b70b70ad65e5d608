"""What the models taken from transformers have in common."""

import types

import torch
import transformers
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

transformers.logging.set_verbosity_error()

# An attention name without a mask function makes transformers pass no mask:
# causal attention then says so by a flag, which the fused kernels need, and
# the graph is free of mask arithmetic that only padding would give a sense.
UNMASKED_SDPA = "unmasked_sdpa"
AttentionInterface.register(UNMASKED_SDPA, sdpa_attention_forward)


def build(model_class, config, dtype=torch.float32):
    """A model of `config` in `dtype`."""
    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        return model_class(config)
    finally:
        torch.set_default_dtype(previous)


def with_forward(module, forward):
    """Gives one module another forward; parameter names stay as they are."""
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
    """A causal language model with its inputs; training returns its loss."""
    ids = token_ids(batch, sequence)
    if training:
        return with_forward(model, _causal_lm_loss), (ids, ids.clone())
    return with_forward(model, _causal_lm_logits), (ids,)
