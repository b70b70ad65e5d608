"""Tiny models that train by a plan, and what they are trained on."""

import dataclasses
import pathlib
import sys
from collections.abc import Mapping
from typing import Any, Callable

import torch

_ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(_ROOT / "tools"), str(_ROOT / "python/shardprop/torch")]

from models import MODELS, resnet  # noqa: E402


class Exchanges(torch.nn.Module):
    """Pinned so that the plan holds a permutation and an exchange."""

    PINS = {"neg": "S(0),S(1)", "relu": "S(1),S(0)", "abs_1": "S(0),S(0)"}

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return torch.abs(torch.relu(torch.neg(x @ self.weight)) - 0.1).mean()


@dataclasses.dataclass(frozen=True)
class Case:
    make: "Callable[[], tuple[torch.nn.Module, tuple]]"
    mesh: str = "dp=2,tp=2"
    # Draws by element, which PyTorch does not: no eager model to compare with.
    has_dropout: bool = False
    # Of the memory that the plan without a limit takes.
    memory: "float | None" = None
    options: "Mapping[str, Any]" = dataclasses.field(default_factory=dict)


def _named(name):
    def make():
        torch.manual_seed(0)
        model, args = MODELS[name](True)[:2]
        for parameter in model.parameters():
            if parameter.ndim > 1:  # some are left as memory was
                torch.nn.init.normal_(parameter, std=0.2)
        return model, args

    return make


def _uneven_resnet():
    torch.manual_seed(0)
    return resnet._resnet(True, batch=5, size=16, blocks=(1, 1), width=6, classes=10)


def _exchanges():
    torch.manual_seed(0)
    return Exchanges(), (torch.zeros(8, 8),)


CASES = {
    "gpt2": Case(_named("gpt2_tiny"), has_dropout=True, memory=0.9),
    "resnet": Case(_uneven_resnet),
    "mixtral": Case(_named("mixtral_tiny")),
    "exchanges": Case(_exchanges, options={"pins": Exchanges.PINS}),
    "t5": Case(_named("t5_tiny"), has_dropout=True),
}


def batches(args, steps):
    """Inputs of the sizes of `args`."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        yield tuple(
            torch.randn(arg.shape, generator=generator)
            if arg.is_floating_point()
            else torch.randint(0, 10, arg.shape, generator=generator)
            for arg in args
        )


def train(module, args, steps, on_step=lambda run: run()):
    """The losses of some steps of AdamW. `on_step` runs the first forward."""
    # Where a gradient is zero but for rounding, a smaller eps would make a step
    # of the rounding.
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2, eps=1e-4)
    losses = []
    for step, batch in enumerate(batches(args, steps)):
        optimizer.zero_grad()
        if step == 0:
            loss = on_step(lambda: module(*batch))
        else:
            loss = module(*batch)
        if loss.requires_grad:  # a planned module leaves the gradients itself
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
