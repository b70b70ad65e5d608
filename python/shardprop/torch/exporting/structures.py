"""kept() hides the calling convention of a program while PyTorch decomposes it. PyTorch
would build the structures of inputs and outputs again and trace their construction (a
cache of transformers concatenates its tensors)."""

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils._pytree import tree_leaves, tree_structure

_RETURNED = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)


def kept(take_apart, program):
    """Returns take_apart(program) with the program's calling convention. During the
    call, inputs are single arguments by name and outputs a tuple."""
    signature = program.graph_signature
    called, examples = program.module_call_graph[0].signature, program._example_inputs
    own = called.in_spec, called.out_spec, called.forward_arg_names
    given = [s for s in signature.input_specs if s.kind is InputKind.USER_INPUT]
    names = [spec.arg.name for spec in given]
    returned = sum(spec.kind in _RETURNED for spec in signature.output_specs)
    leaves = tree_leaves(examples)
    if len(leaves) != len(names):  # those that are no tensors were set aside
        leaves = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    program._example_inputs = (), dict(zip(names, leaves, strict=True))
    called.in_spec = tree_structure(program._example_inputs)
    called.out_spec = tree_structure(tuple(range(returned)))
    called.forward_arg_names = names
    result = take_apart(program)
    called = result.module_call_graph[0].signature
    called.in_spec, called.out_spec, called.forward_arg_names = own
    result._example_inputs = examples
    return result
