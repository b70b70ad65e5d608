"""export_forward_backward() exports joint forward and backward graphs that keep
metadata.

`torch.export.experimental._export_forward_backward` traces the joint graph twice. The
first trace knows the phase and the module of every backward op. Through autograd's
sequence numbers it also knows the forward op. The second trace only flattens arguments
and loses all of it. Here the second trace keeps the metadata of the first.
"""

import contextlib
import functools

import torch
import torch._functorch.aot_autograd as aot_autograd
import torch._higher_order_ops.effects as effects
from torch.export.experimental import (
    _copy_graph_module_and_signature,
    _remove_detach_pass,
)
from torch.export.exported_program import _decompose_exported_program

from . import checkpoints


def _forward_ops_by_sequence(graph):
    """Returns the forward op that created each autograd node, by sequence number.

    Ops without an autograd node have the number of the op before them, so the first op
    with a number counts.
    """
    ops = {}
    for node in graph.nodes:
        sequence = node.meta.get("seq_nr")
        if sequence is not None and not _is_backward(node):
            ops.setdefault(sequence, node)
    return ops


def _is_backward(node):
    return node.meta.get("partitioner_tag") == "is_backward"


def _annotate(graph):
    """Writes phase, forward op and undecomposed op into `node.meta["custom"]`.

    `forward_node` holds a sequence number until `_name_forward_nodes` replaces
    it: the second trace gives the nodes their names.
    """
    forward_ops = _forward_ops_by_sequence(graph)
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        custom = {"phase": "backward" if _is_backward(node) else "forward"}
        sequence = node.meta.get("seq_nr")
        is_sum_of_gradients = node.meta.get("is_gradient_acc", False)
        if not _is_backward(node):
            if forward_ops.get(sequence) is node:
                custom["sequence"] = sequence
        elif sequence in forward_ops and not is_sum_of_gradients:
            custom["forward_node"] = sequence
            stack = forward_ops[sequence].meta.get("nn_module_stack")
            if stack:
                node.meta["nn_module_stack"] = stack
        original = node.meta.get("original_aten")
        if original is not None and str(original) != str(node.target):
            custom["decomposed_from"] = str(original)
        kept = dict(node.meta.get("custom", {}))
        if _is_backward(node):
            # The marks are inherited from the forward operator.
            kept.pop(checkpoints.NAME, None)
            kept.pop(checkpoints.POLICY, None)
        node.meta["custom"] = {**kept, **custom}


def _name_forward_nodes(graph):
    names = {}
    for node in graph.nodes:
        sequence = node.meta.get("custom", {}).pop("sequence", None)
        if sequence is not None:
            # The results of an op also have its metadata, and come after it.
            names.setdefault(sequence, node.name)
    for node in graph.nodes:
        custom = node.meta.get("custom", {})
        if "forward_node" in custom:
            # The forward op may have been dead code. It is then unknown.
            name = names.get(custom.pop("forward_node"))
            if name is not None:
                custom["forward_node"] = name


@contextlib.contextmanager
def _metadata_kept():
    original = aot_autograd._aot_export_function

    @functools.wraps(original)
    def export_function(*args, **kwargs):
        graph_module, *rest = original(*args, **kwargs)
        _annotate(graph_module.graph)

        # The gradients are in the graph. Autograd is off, since it would refuse writes
        # of complex numbers into parts of other tensors.
        def run(*inputs):
            with torch.no_grad(), torch.fx.traceback.preserve_node_meta():
                return torch.fx.Interpreter(graph_module).run(*inputs)

        return run, *rest

    aot_autograd._aot_export_function = export_function
    try:
        yield
    finally:
        aot_autograd._aot_export_function = original


@contextlib.contextmanager
def _unchecked():
    """Removes the check that factorizations succeeded. The check reads and returns a
    token, and joint graphs have no place for tokens."""
    check = torch.ops.aten._linalg_check_errors.default
    effect = effects._get_effect(check)
    effects._register_effectful_op(check, None)
    try:
        yield
    finally:
        effects._register_effectful_op(check, effect)


def _decompositions():
    """Returns the table of `_export_forward_backward` without an entry that breaks
    gradients.

    The CPU attention kernel's decomposition returns the attention weights
    where the kernel returns the logsumexp that its backward op reads.
    """
    table = torch._decomp.core_aten_decompositions()
    table.pop(torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default)
    return table


def export_forward_backward(program, loss_index=0):
    """Does the same as `_export_forward_backward`, with metadata and correct
    attention."""
    with _metadata_kept(), _unchecked(), checkpoints.kept(program):
        program = _decompose_exported_program(
            program,
            cia_to_decomp={},
            python_decomp_table=_decompositions(),
            joint_loss_index=loss_index,
            decompose_custom_triton_ops=False,
        )
    graph_module, signature = _copy_graph_module_and_signature(program)
    _remove_detach_pass(graph_module, signature)
    _name_forward_nodes(graph_module.graph)
    return program._update(graph_module, signature)
