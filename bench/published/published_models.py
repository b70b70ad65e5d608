"""Models at the sequence and batch of published step times (step_times.py).

    tools/export_model.py published_models:llama3_8b_16 --mode train --device cuda ...

with this directory and tools/ on PYTHONPATH.
"""

import torch

from models.llama import _llama

LLAMA3 = {
    "vocab_size": 128256, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0},
}
LLAMA3_8B = dict(LLAMA3, hidden_size=4096, intermediate_size=14336,
                 num_hidden_layers=32, num_attention_heads=32,
                 num_key_value_heads=8)
LLAMA3_70B = dict(LLAMA3, hidden_size=8192, intermediate_size=28672,
                  num_hidden_layers=80, num_attention_heads=64,
                  num_key_value_heads=8)
LLAMA2_13B = {
    "vocab_size": 32000, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
    "hidden_size": 5120, "intermediate_size": 13824, "num_hidden_layers": 40,
    "num_attention_heads": 40, "num_key_value_heads": 40,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}


def _model(training, config, batch, sequence):
    return _llama(training, batch=batch, sequence=sequence, dtype=torch.bfloat16,
                  **config)


def llama3_8b_16(training):
    """8 ranks with 2 sequences each."""
    return _model(training, LLAMA3_8B, 16, 8192)


def llama3_8b_64(training):
    """64 ranks with a sequence each."""
    return _model(training, LLAMA3_8B, 64, 8192)


def llama3_8b_256(training):
    """128 ranks with 2 sequences each."""
    return _model(training, LLAMA3_8B, 256, 8192)


def llama2_13b_128(training):
    """64 ranks with 2 sequences each."""
    return _model(training, LLAMA2_13B, 128, 4096)


def llama3_70b_64(training):
    """64 ranks with a sequence each."""
    return _model(training, LLAMA3_70B, 64, 8192)
