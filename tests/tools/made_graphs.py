"""Made-up graphs in the JSON of torch.export, from a kind and a number.

  made_graphs.py KIND N OUT.json

relu    chain of N relu of [64,64]            rank12  the same on a tensor of shape [2]*12
mlp     chain of mm and relu, N ops, N/2 parameters
params  N parameters added up                 dag     residual blocks, N ops
fan     one value of N consumers, one cat     fansum  one value of N/2 consumers, added up
big     chain of N relu of [2**20,2**20,2**18] (2**58 elements)
views   chain of N view
escape  one op whose name holds ESC, BEL and a newline
"""
import json, sys


class Graph:
    def __init__(self):
        self.nodes, self.metas, self.inputs, self.specs = [], {}, [], []

    def meta(self, name, shape):
        strides, step = [], 1
        for size in reversed(shape):
            strides.insert(0, step)
            step *= max(size, 1)
        ints = lambda values: [{"as_int": v} for v in values]
        self.metas[name] = {
            "dtype": 7, "sizes": ints(shape), "requires_grad": False,
            "device": {"type": "cpu", "index": None}, "strides": ints(strides),
            "storage_offset": {"as_int": 0}, "layout": 7}

    def input(self, name, shape, parameter=None):
        self.meta(name, shape)
        self.inputs.append(tensor(name))
        self.specs.append(
            {"parameter": {"arg": {"name": name}, "parameter_name": parameter}}
            if parameter else {"user_input": {"arg": tensor(name)}})

    def op(g, name, target, shape, /, **args):  # args may hold "self"
        g.meta(name, shape)
        layer = len(g.nodes) // 10
        g.nodes.append({
            "target": "torch.ops.aten." + target,
            "inputs": [{"name": k, "arg": v, "kind": 1} for k, v in args.items()],
            "outputs": [tensor(name)],
            "metadata": {"stack_trace": "", "nn_module_stack":
                         f"L__self__layers_{layer},layers.{layer},torch.nn.Linear"},
            "is_hop_single_tensor_return": None, "name": name})
        return name


def tensor(name):
    return {"as_tensor": {"name": name}}


def build(kind, n):
    g, s, out = Graph(), [64, 64], "x"
    if kind in ("relu", "rank12", "big"):
        s = {"relu": s, "rank12": [2] * 12, "big": [2**20, 2**20, 2**18]}[kind]
        g.input("x", s)
        for i in range(n):
            out = g.op(f"n{i}", "relu.default", s, self=tensor(out))
    elif kind == "mlp":
        weights = max(1, n // 2)
        for i in range(weights):
            g.input(f"p{i}", s, f"layers.{i}.weight")
        g.input("x", s)
        for i in range(n):
            if i % 2:
                out = g.op(f"n{i}", "relu.default", s, self=tensor(out))
            else:
                weight = tensor(f"p{i // 2 % weights}")
                out = g.op(f"n{i}", "mm.default", s, self=tensor(out), mat2=weight)
    elif kind == "params":
        for i in range(n):
            g.input(f"p{i}", s, f"w{i}")
        g.input("x", s)
        for i in range(n):
            out = g.op(f"n{i}", "add.Tensor", s, self=tensor(out), other=tensor(f"p{i}"))
    elif kind in ("fan", "fansum"):
        g.input("x", s)
        out = g.op("h", "relu.default", s, self=tensor("x"))
        for i in range(n if kind == "fan" else n // 2):
            g.op(f"n{i}", "relu.default", s, self=tensor("h"))
            if kind == "fansum":
                out = g.op(f"s{i}", "add.Tensor", s, self=tensor(out), other=tensor(f"n{i}"))
        if kind == "fan":
            all_of = {"as_tensors": [{"name": f"n{i}"} for i in range(n)]}
            out = g.op("a0", "cat.default", [64 * n, 64], tensors=all_of, dim={"as_int": 0})
    elif kind == "dag":
        g.input("x", s)
        for i in range(n // 3):
            a = g.op(f"a{i}", "relu.default", s, self=tensor(out))
            b = g.op(f"b{i}", "mm.default", s, self=tensor(a), mat2=tensor(a))
            out = g.op(f"c{i}", "add.Tensor", s, self=tensor(out), other=tensor(b))
    elif kind == "views":
        g.input("x", s)
        for i in range(n):
            shape = s if i % 2 else [64 * 64]
            size = {"as_ints": shape}
            out = g.op(f"v{i}", "view.default", shape, self=tensor(out), size=size)
    elif kind == "escape":
        g.input("x", s)
        out = g.op("y", "\x1b[31mX\x07\nerror[SP9999]: forged", s, self=tensor("x"))
    else:
        sys.exit(__doc__)
    return {
        "graph_module": {
            "graph": {"inputs": g.inputs, "outputs": [tensor(out)], "nodes": g.nodes,
                      "tensor_values": g.metas, "sym_int_values": {}, "sym_bool_values": {},
                      "is_single_tensor_return": False, "custom_obj_values": {},
                      "sym_float_values": {}},
            "signature": {"input_specs": g.specs,
                          "output_specs": [{"user_output": {"arg": tensor(out)}}]},
            "module_call_graph": [], "metadata": {}, "treespec_namedtuple_fields": {}},
        "opset_version": {"aten": 10}, "range_constraints": {},
        "schema_version": {"major": 8, "minor": 20}, "verifiers": ["ATEN"],
        "torch_version": "2.13.0", "guards_code": []}


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    kind, n, path = sys.argv[1:]
    json.dump(build(kind, int(n)), open(path, "w"))
