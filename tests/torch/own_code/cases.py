"""A Case is a parallel program, right or with its planted mistake."""

import dataclasses
from typing import Any, Callable

import torch


@dataclasses.dataclass
class Code:
    """Code is what verify() takes."""

    build: Callable
    parallelize: Callable
    step: Callable
    batch: Any


@dataclasses.dataclass
class Case:
    name: str
    mesh: str
    #: The first wrong value with the mistake: kind and name.
    wrong: "tuple[str, str]"
    #: A text that the report of the mistake contains.
    says: str
    #: Returns the program; with True it has the mistake.
    code: "Callable[[bool], Code]"
    #: A module that the program imports, and that may be absent.
    needs: str = ""


CASES: "list[Case]" = []


def tokens(*shape):
    """Returns a function that draws a batch of that shape."""

    def given():
        torch.manual_seed(1)
        return torch.randn(*shape)

    return given


def case(mesh: str, wrong: "tuple[str, str]", says: str, needs: str = ""):
    """Adds a function that returns the code of a program to the cases."""

    def add(function):
        CASES.append(Case(function.__name__, mesh, wrong, says, function, needs))
        return function

    return add
