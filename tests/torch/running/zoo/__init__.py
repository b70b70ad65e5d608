"""Small models in the style of users: MODELS has functions that return a
model's class and the tensors that its forward takes, all of them tiny. Each
forward returns a loss. ANSWERS has the models that only infer, with the keyword
arguments of forward, too."""

import torch

MODELS = {}
ANSWERS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


def answer(make):
    ANSWERS[make.__name__] = make
    return make


def generator():
    return torch.Generator().manual_seed(3)


def normal(*shape):
    return torch.randn(*shape, generator=generator())


def integers(below, *shape, lo=0):
    return torch.randint(lo, below, shape, generator=generator())


def parameter(*shape):
    return torch.nn.Parameter(torch.randn(*shape) * 0.3)


from . import numerics, perception, serving  # noqa: E402, F401
from . import science, sequence, training, vision  # noqa: E402, F401
