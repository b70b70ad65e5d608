"""Parameters that a joint graph cannot take as torch.export leaves them."""

import torch
from torch.export.graph_signature import InputKind


def _parameter_placeholders(program):
    """(placeholder, input spec) of every parameter, in the module's order."""
    placeholders = program.graph.find_nodes(op="placeholder")
    pairs = zip(placeholders, program.graph_signature.input_specs, strict=True)
    return [(n, s) for n, s in pairs if s.kind is InputKind.PARAMETER]


def merge_tied(program):
    """Makes one input of a parameter that has several names, in place.

    torch.export keeps an input for every name and uses just one of them; a
    joint graph then finds the others without a gradient. The first name stays.
    """
    first = {}
    for placeholder, spec in _parameter_placeholders(program):
        kept = first.setdefault(id(program.state_dict[spec.target]), placeholder)
        if kept is placeholder:
            continue
        placeholder.replace_all_uses_with(kept)
        program.graph.erase_node(placeholder)
        program.graph_signature.input_specs.remove(spec)
        del program.state_dict[spec.target]


def freeze_unreached(program, loss_index):
    """Lets parameters that the loss does not depend on need no gradient.

    Returns their names.
    """
    outputs = program.graph.output_node().args[0]
    mutations = len(program.graph_signature.buffers_to_mutate) + len(
        program.graph_signature.user_inputs_to_mutate
    )
    reached = set()
    pending = [outputs[mutations + loss_index]]
    while pending:
        node = pending.pop()
        if node not in reached:
            reached.add(node)
            pending += node.all_input_nodes
    frozen = []
    for placeholder, spec in _parameter_placeholders(program):
        parameter = program.state_dict[spec.target]
        if parameter.requires_grad and placeholder not in reached:
            placeholder.meta["val"].requires_grad_(False)
            parameter.requires_grad_(False)
            frozen.append(spec.target)
    return frozen
