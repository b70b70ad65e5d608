"""This file defines the Vision Transformer (transformers) for image classification."""

import torch
from transformers import ViTConfig, ViTForImageClassification

from models import huggingface


def _logits(self, pixel_values):
    return type(self).forward(self, pixel_values).logits


def _loss(self, pixel_values, labels):
    return type(self).forward(self, pixel_values, labels=labels).loss


def _vit(training, batch, **config):
    config = ViTConfig(attn_implementation=huggingface.UNMASKED_SDPA, **config)
    model = huggingface.build(ViTForImageClassification, config)
    images = torch.zeros(
        batch, config.num_channels, config.image_size, config.image_size
    )
    if training:
        labels = torch.zeros(batch, dtype=torch.int64)
        return huggingface.with_forward(model, _loss), (images, labels)
    return huggingface.with_forward(model, _logits), (images,)


def vit_b16(training):
    return _vit(training, batch=32, num_labels=1000)


def vit_tiny(training):
    return _vit(
        training,
        batch=4,
        image_size=8,
        patch_size=4,
        hidden_size=12,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_labels=10,
    )
