"""These functions rewrite parameters and outputs that a joint graph does not accept
from torch.export."""

import operator

import torch
from torch.export.graph_signature import InputKind, TensorArgument


def _parameter_placeholders(program):
    """Returns (placeholder, input spec) of every parameter, in the module's order."""
    placeholders = program.graph.find_nodes(op="placeholder")
    pairs = zip(placeholders, program.graph_signature.input_specs, strict=True)
    return [(n, s) for n, s in pairs if s.kind is InputKind.PARAMETER]


def _user_outputs(program):
    """Returns the output nodes after those of mutated buffers and inputs."""
    signature = program.graph_signature
    mutations = len(signature.buffers_to_mutate) + len(
        signature.user_inputs_to_mutate
    )
    return program.graph.output_node().args[0][mutations:]


def merge_tied(program):
    """Gives a parameter with several names a single input, in place.

    torch.export keeps an input for every name and uses just one of them. A joint graph
    then finds the others without a gradient. The first name is kept.
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


def written_or_seen(node):
    """Returns the arguments that an operator writes, and the arguments that its result
    views."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return [], []
    given = dict(node.kwargs)
    given.update(zip((argument.name for argument in schema.arguments), node.args))
    written, seen = [], []
    for argument in schema.arguments:
        value = given.get(argument.name)
        if argument.alias_info is None or not isinstance(value, torch.fx.Node):
            continue
        (written if argument.alias_info.is_write else seen).append(value)
    return written, seen


def memory_of(graph):
    """Returns the node whose memory each node has, through views and writes."""
    memory = {}
    for node in graph.nodes:
        written, seen = written_or_seen(node)
        source = next(iter(written + seen), node)
        if node.target is operator.getitem:
            source = node.args[0]
        memory[node] = memory.get(source, node)
    return memory


def _reached(program, loss_index):
    """Returns the nodes on which the loss depends, including in-place writes."""
    memory = memory_of(program.graph)
    reached = {_user_outputs(program)[loss_index]}
    read = set()  # memory that reached nodes read later
    for node in reversed(program.graph.nodes):
        written, _ = written_or_seen(node)
        if any(memory[tensor] in read for tensor in written):
            reached.add(node)
        if node in reached:
            reached.update(node.all_input_nodes)
            read.update(memory[tensor] for tensor in node.all_input_nodes)
            read.add(memory[node])
    return reached


def freeze_unreached(program, loss_index):
    """Freezes the parameters on which the loss does not depend."""
    reached = _reached(program, loss_index)
    for placeholder, spec in _parameter_placeholders(program):
        if placeholder not in reached:
            placeholder.meta["val"].requires_grad_(False)
            program.state_dict[spec.target].requires_grad_(False)


def detach_outputs(program, loss_index):
    """Detaches every output but the loss, in place: none has a gradient."""
    graph = program.graph
    output = graph.output_node()
    nodes = list(output.args[0])
    specs = program.graph_signature.output_specs
    first = len(nodes) - len(_user_outputs(program))
    for index in range(first, len(nodes)):
        node = nodes[index]
        is_tensor = isinstance(specs[index].arg, TensorArgument)
        if index == first + loss_index or not is_tensor:
            continue
        with graph.inserting_before(output):
            detached = graph.call_function(torch.ops.aten.detach.default, (node,))
        detached.meta = dict(node.meta)
        specs[index].arg = TensorArgument(name=detached.name)
        nodes[index] = detached
    output.args = (tuple(nodes),)
    program.graph_module.recompile()
