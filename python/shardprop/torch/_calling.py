"""A calling convention maps leaves of forward()'s arguments to the program's inputs,
and the program's outputs to the structure that forward() returns."""

import dataclasses
import json
import os
from typing import Any, Optional

import torch
from torch.distributed.tensor.experimental import implicit_replication
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch.utils._pytree import (
    TreeSpec,
    tree_flatten,
    tree_structure,
    tree_unflatten,
    treespec_loads,
)

from .. import _core
from .._error import Error
from .._graph import MAX_INPUT_BYTES


def _error(message: str, notes: "list[str]", help: str) -> Error:
    return Error("SP0001", message, "forward()", notes, help)


@dataclasses.dataclass(frozen=True)
class Constant:
    """An argument or output that is not a tensor. The program is valid only for this
    value."""

    value: Any


@dataclasses.dataclass(frozen=True)
class Convention:
    """`inputs` and `outputs` have one entry per leaf: the tensor's name, or a
    Constant."""

    in_spec: TreeSpec  # of (args, kwargs)
    out_spec: TreeSpec
    names: "tuple[str, ...]"  # of forward()'s arguments, those by position first
    inputs: "tuple[Any, ...]"
    outputs: "tuple[Any, ...]"

    def tensors(self, args: "tuple[Any, ...]", kwargs: "dict[str, Any]") -> "list[Any]":
        """Returns the argument of forward() for each tensor that the program reads."""
        found = []
        leaves = iter(self.inputs)
        given = self._bound(args, kwargs)
        for name, spec in self._slots():
            wanted = [next(leaves) for _ in range(spec.num_leaves)]
            if name in given:
                found += self._leaves_of(name, spec, wanted, given[name])
            elif any(not isinstance(leaf, Constant) for leaf in wanted):
                raise _error(
                    f"no value is given for `{name}`",
                    [],
                    f"the program takes {', '.join(name for name, _ in self._slots())}",
                )
        return found

    def structured(self, tensors: "list[Any]") -> Any:
        """Returns the result of forward(), built from the program's tensors."""
        rest = iter(tensors)
        leaves = [
            leaf.value if isinstance(leaf, Constant) else next(rest)
            for leaf in self.outputs
        ]
        # Some types compute during construction, for example a cache of transformers.
        with torch.no_grad(), implicit_replication():
            return tree_unflatten(leaves, self.out_spec)

    def _slots(self) -> "list[tuple[str, TreeSpec]]":
        """Returns the arguments by name; the arguments of *args have numbers."""
        by_position, by_name = self.in_spec.children()
        count = by_position.num_children
        named = self.names if len(self.names) >= count else ()
        names = [*named[:count], *map(str, range(len(named), count))]
        names += by_name.context
        return list(zip(names, [*by_position.children(), *by_name.children()]))

    def _bound(self, args, kwargs):
        names = [name for name, _ in self._slots()]
        if len(args) > len(names):
            extra = len(args) - len(names)
            raise _error(
                f"{extra} arguments more than the program takes",
                [],
                f"it takes {len(names)}",
            )
        given = dict(zip(names, args))
        for name, value in kwargs.items():
            if name in given or name not in names:
                twice = "is given twice" if name in given else "is no argument"
                raise _error(
                    f"`{name}` {twice}", [], f"the program takes {', '.join(names)}"
                )
            given[name] = value
        return given

    @staticmethod
    def _leaves_of(name, spec, wanted, value):
        leaves, structure = tree_flatten(value)
        if structure != spec:
            raise _error(
                f"`{name}` has another structure than the program was exported with",
                [f"given: {structure}", f"exported: {spec}"],
                "give it as it was given to the export",
            )
        tensors = []
        for leaf, want in zip(leaves, wanted):
            if not isinstance(want, Constant):
                if not isinstance(leaf, torch.Tensor):
                    raise _error(
                        f"`{name}` has a {type(leaf).__name__} where a tensor is due",
                        [f"the program calls it {want}"],
                        "give a tensor",
                    )
                tensors.append(leaf)
            elif type(leaf) is not type(want.value) or leaf != want.value:
                raise _error(
                    f"`{name}` is {leaf!r}",
                    [f"the program was exported for {want.value!r}"],
                    "export the model with this value, or leave it out",
                )
        return tensors


def flat(inputs: "list[str]", outputs: int) -> Convention:
    """Returns the convention of a program without records: tensors in, one or a tuple
    out."""
    by_position = tree_structure(tuple(range(len(inputs))))
    return Convention(
        TreeSpec(tuple, None, [by_position, tree_structure({})]),
        tree_structure(0 if outputs == 1 else tuple(range(outputs))),
        tuple(inputs),
        tuple(inputs),
        ("",) * outputs,
    )


def _of_program(exported) -> Convention:
    def leaf(argument):
        if isinstance(argument, TensorArgument):
            return argument.name
        return Constant(getattr(argument, "value", None))

    signature = exported.graph_signature
    called = exported.module_call_graph[0].signature
    return Convention(
        called.in_spec,
        called.out_spec,
        tuple(called.forward_arg_names or ()),
        tuple(
            leaf(spec.arg)
            for spec in signature.input_specs
            if spec.kind is InputKind.USER_INPUT
        ),
        tuple(
            leaf(spec.arg)
            for spec in signature.output_specs
            if spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        ),
    )


def _json_leaf(argument: "dict[str, Any]") -> Any:
    ((kind, value),) = argument.items()
    if kind == "as_tensor":
        return value["name"]
    return Constant(None if kind == "as_none" else value)


def _of_json(text: bytes) -> Convention:
    module = json.loads(text)["graph_module"]
    called = module["module_call_graph"][0]["signature"]
    inputs, outputs = [], []
    for spec in module["signature"]["input_specs"]:
        ((kind, value),) = spec.items()
        if kind == "user_input":
            inputs.append(_json_leaf(value["arg"]))
        elif kind == "constant_input":
            inputs.append(_json_leaf(value["value"]))
    for spec in module["signature"]["output_specs"]:
        ((kind, value),) = spec.items()
        if kind == "user_output":
            outputs.append(_json_leaf(value["arg"]))
        elif kind == "loss_output":
            outputs.append(value["arg"]["name"])
    return Convention(
        treespec_loads(called["in_spec"]),
        treespec_loads(called["out_spec"]),
        tuple(called.get("forward_arg_names") or ()),
        tuple(inputs),
        tuple(outputs),
    )


def of(exported: Any) -> Optional[Convention]:
    """Returns a program's convention, or None if it has none: a graph that is already
    read, or a program whose structures have types unknown to this process."""
    if hasattr(exported, "graph_signature"):
        return _of_program(exported)
    if isinstance(exported, (str, os.PathLike)):
        text = _core.program_json(os.fspath(exported), MAX_INPUT_BYTES, "")
    elif isinstance(exported, bytes):
        text = _core.program_json_in(exported, MAX_INPUT_BYTES, "")
    else:
        return None
    try:
        return _of_json(text)
    except (KeyError, ValueError, NotImplementedError):
        return None
