"""Tiny models that train by a plan, and their training data."""

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


class Dtypes(torch.nn.Module):
    """Complex numbers and i16, which gloo does not exchange: pinned so that plans
    exchange and gather them."""

    PINS = {
        **{"mul": "S(0),S(1)", "mul_1": "S(1),S(0)"},
        **{"neg": "S(0),S(0)", "abs_1": "R,S(1)"},
    }

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        waves = torch.view_as_complex((x @ self.weight).view(8, 4, 2))
        cubes = waves * waves * waves
        steps = torch.abs(torch.neg((4 * x).detach().to(torch.int16)))
        return cubes.real.mean() + (steps.float() * (x @ self.weight)).mean()


class Critic(torch.nn.Module):
    """A model whose weights are split into direction and length. Their
    gradient's kernel reads memory in order, but the ranks' gradients have
    another order."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(12, 8))
        self.outer = torch.nn.Linear(8, 1)

    def forward(self, made, real):
        def judged(x):
            return self.outer(torch.nn.functional.leaky_relu(self.inner(x), 0.2))

        return torch.relu(1 - judged(real)).mean() + torch.relu(1 + judged(made)).mean()


class Gates(torch.nn.Module):
    """Chosen experts counted: truth values are terms that ranks combine by or."""

    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Linear(8, 4)
        self.first = torch.nn.Parameter(torch.randn(4, 8, 16) * 0.3)
        self.second = torch.nn.Parameter(torch.randn(4, 16, 8) * 0.3)

    def forward(self, x):
        chances = self.gate(x).softmax(-1)
        best, places = chances.topk(2, -1)
        weights = torch.zeros_like(chances).scatter(1, places, best)
        inner = torch.einsum("td,edf->etf", x, self.first).relu()
        out = torch.einsum("etf,efd,te->td", inner, self.second, weights)
        load = torch.nn.functional.one_hot(places, 4).sum(1).float().mean(0)
        return out.square().mean() + (load * chances.mean(0)).sum()


@dataclasses.dataclass(frozen=True)
class Case:
    make: "Callable[[], tuple[torch.nn.Module, tuple]]"
    mesh: str = "dp=2,tp=2"
    # Draws by element, which PyTorch does not: no eager model to compare with.
    has_dropout: bool = False
    # The limit is this share of the memory that the plan without a limit takes.
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


def _dtypes():
    torch.manual_seed(0)
    return Dtypes(), (torch.zeros(8, 8),)


def _critic():
    torch.manual_seed(0)
    return Critic(), (torch.zeros(8, 12), torch.zeros(8, 12))


def _gates():
    torch.manual_seed(0)
    return Gates(), (torch.zeros(16, 8),)


CASES = {
    "gpt2": Case(_named("gpt2_tiny"), has_dropout=True, memory=0.9),
    "resnet": Case(_uneven_resnet),
    "mixtral": Case(_named("mixtral_tiny")),
    "exchanges": Case(_exchanges, options={"pins": Exchanges.PINS}),
    "dtypes": Case(_dtypes, options={"pins": Dtypes.PINS}),
    "critic": Case(_critic),
    "gates": Case(_gates),
    "t5": Case(_named("t5_tiny"), has_dropout=True),
    "llama_full": Case(_named("llama3_tiny"), options={"recompute": "full"}),
    "mixtral_selective": Case(
        _named("mixtral_tiny"),
        options={"recompute": "selective", "execution": "eager"},
    ),
}


def batches(args, steps):
    """Yields inputs of the sizes of `args`."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        yield tuple(
            torch.randn(arg.shape, generator=generator)
            if arg.is_floating_point()
            else torch.randint(0, 10, arg.shape, generator=generator)
            for arg in args
        )


def train(module, args, steps, on_step=lambda run: run()):
    """Returns the losses of some steps of AdamW. `on_step` runs the first
    forward."""
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
