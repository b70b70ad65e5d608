"""Exports of one small program at sizes that are fixed."""

import json


def graph(folder, rows):
    """Writes the export of x[rows, 6] * x, whose sizes are fixed; returns its path."""
    path = folder / f"rows{rows}.json"
    meta = {"dtype": 7, "sizes": [{"as_int": rows}, {"as_int": 6}],
            "requires_grad": False, "device": {"type": "cpu"},
            "strides": [{"as_int": 6}, {"as_int": 1}],
            "storage_offset": {"as_int": 0}, "layout": 7}
    tensor = lambda name: {"as_tensor": {"name": name}}  # noqa: E731
    node = {"target": "torch.ops.aten.mul.Tensor", "name": "mul",
            "inputs": [{"name": name, "arg": tensor("x"), "kind": 1}
                       for name in ("self", "other")],
            "outputs": [tensor("mul")], "metadata": {}}
    path.write_text(json.dumps({
        "graph_module": {
            "graph": {"inputs": [tensor("x")], "outputs": [tensor("mul")],
                      "nodes": [node], "tensor_values": {"x": meta, "mul": meta},
                      "sym_int_values": {}, "sym_bool_values": {},
                      "is_single_tensor_return": False},
            "signature": {
                "input_specs": [{"user_input": {"arg": tensor("x")}}],
                "output_specs": [{"user_output": {"arg": tensor("mul")}}]},
            "module_call_graph": []},
        "opset_version": {"aten": 10}, "range_constraints": {},
        "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"],
        "torch_version": "2.13.0", "guards_code": []}))
    return path
