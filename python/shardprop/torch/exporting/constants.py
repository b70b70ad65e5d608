"""Some inputs and outputs are not tensors. A joint graph has no place for them, so they
are removed while it is made and put back afterwards."""

import dataclasses
from typing import Any

from torch.export.graph_signature import (
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)


@dataclasses.dataclass
class SetAside:
    """Each entry has the place of the constant among the user's inputs or outputs."""

    inputs: "list[tuple[int, Any, InputSpec]]"
    outputs: "list[tuple[int, Any, OutputSpec]]"

    def without(self, output: int) -> int:
        """Returns an output's place without the constants."""
        return output - sum(place < output for place, _, _ in self.outputs)

    def put_back(self, program) -> None:
        """Puts the constants into the joint graph, in place."""
        graph, signature = program.graph, program.graph_signature
        first = _first_given(signature)
        for place, value, spec in self.inputs:
            # Placeholders come first, and the operators of a joint graph follow them.
            with graph.inserting_before(list(graph.nodes)[first + place]):
                node = graph.placeholder(spec.arg.name)
            node.meta["val"] = value
            spec.arg.name = node.name
            signature.input_specs.insert(first + place, spec)
        output = graph.output_node()
        nodes = list(output.args[0])
        first = _first_returned(signature)
        for place, value, spec in self.outputs:
            nodes.insert(first + place, value)
            signature.output_specs.insert(first + place, spec)
        output.args = (tuple(nodes),)
        program.graph_module.recompile()


def _first(specs, *kinds):
    """Returns the first place of such an input or output, or the place for a new
    one."""
    return next((i for i, s in enumerate(specs) if s.kind in kinds), len(specs))


def _first_given(signature):
    return _first(signature.input_specs, InputKind.USER_INPUT)


def _first_returned(signature):
    return _first(
        signature.output_specs, OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT
    )


def set_aside(program) -> SetAside:
    """Removes the constants from a program, in place."""
    graph, signature = program.graph, program.graph_signature
    taken = SetAside([], [])
    first = _first_given(signature)
    placeholders = graph.find_nodes(op="placeholder")
    for index in reversed(range(first, len(placeholders))):
        node, spec = placeholders[index], signature.input_specs[index]
        if isinstance(spec.arg, TensorArgument) or node.users:
            continue
        taken.inputs.insert(0, (index - first, spec.arg.value, spec))
        graph.erase_node(node)
        del signature.input_specs[index]
    output = graph.output_node()
    nodes = list(output.args[0])
    first = _first_returned(signature)
    for index in reversed(range(first, len(nodes))):
        spec = signature.output_specs[index]
        if isinstance(spec.arg, TensorArgument):
            continue
        taken.outputs.insert(0, (index - first, nodes.pop(index), spec))
        del signature.output_specs[index]
    output.args = (tuple(nodes),)
    program.graph_module.recompile()
    return taken
