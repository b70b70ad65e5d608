"""Writes exported programs as JSON: graphs of one device, and programs of ranks that
shardprop did not write.

    program([Input("x", (8, 4))], [Call("mm", "aten.mm.default", (8, 6),
            self=Tensor("x"), mat2=Tensor("w"))], ["mm"])
"""

import dataclasses

F32 = 7


@dataclasses.dataclass(frozen=True)
class Tensor:
    """The name of a tensor, as an argument."""

    name: str


class Call:
    """A node with one result."""

    def __init__(self, name, op, shape, /, **arguments):
        self.name, self.op, self.shape, self.arguments = name, op, shape, arguments


@dataclasses.dataclass(frozen=True)
class Input:
    name: str
    shape: tuple
    parameter: str = ""  # its name, if it is a parameter


@dataclasses.dataclass(frozen=True)
class Gradient:
    """An output that is the gradient of a parameter."""

    value: str
    parameter: str


def strides(shape):
    out, step = [], 1
    for size in reversed(shape):
        out.insert(0, step)
        step *= size
    return out


def meta(shape):
    return {
        "dtype": F32,
        "sizes": [{"as_int": size} for size in shape],
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": [{"as_int": step} for step in strides(shape)],
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


def tensor(name):
    return {"as_tensor": {"name": name}}


def argument(value):
    if isinstance(value, Tensor):
        return tensor(value.name)
    if isinstance(value, str):
        return {"as_string": value}
    if isinstance(value, float):
        return {"as_float": value}
    if isinstance(value, int):
        return {"as_int": value}
    if value and isinstance(value[0], Tensor):
        return {"as_tensors": [{"name": one.name} for one in value]}
    return {"as_ints": list(value)}


def node(call):
    return {
        "target": f"torch.ops.{call.op}",
        "inputs": [
            {"name": name, "arg": argument(value), "kind": 1}
            for name, value in call.arguments.items()
        ],
        "outputs": [tensor(call.name)],
        "metadata": {
            "stack_trace": f'  File "model.py", line 5, in forward\n    {call.name}'
        },
        "is_hop_single_tensor_return": None,
        "name": call.name,
    }


def input_spec(given):
    if given.parameter:
        return {
            "parameter": {
                "arg": {"name": given.name},
                "parameter_name": given.parameter,
            }
        }
    return {"user_input": {"arg": tensor(given.name)}}


def output_spec(output):
    if isinstance(output, Gradient):
        return {
            "gradient_to_parameter": {
                "arg": {"name": output.value},
                "parameter_name": output.parameter,
            }
        }
    return {"user_output": {"arg": tensor(output)}}


def program(inputs, calls, outputs):
    """An exported program, as data."""
    names = [o.value if isinstance(o, Gradient) else o for o in outputs]
    return {
        "graph_module": {
            "graph": {
                "inputs": [tensor(given.name) for given in inputs],
                "outputs": [tensor(name) for name in names],
                "nodes": [node(call) for call in calls],
                "tensor_values": {one.name: meta(one.shape) for one in [*inputs, *calls]},
                "sym_int_values": {},
                "sym_bool_values": {},
                "is_single_tensor_return": False,
            },
            "signature": {
                "input_specs": [input_spec(given) for given in inputs],
                "output_specs": [output_spec(output) for output in outputs],
            },
            "module_call_graph": [],
        },
        "opset_version": {"aten": 10},
        "range_constraints": {},
        "schema_version": {"major": 8, "minor": 20},
        "verifiers": ["TRAINING"],
        "torch_version": "2.13.0",
        "guards_code": [],
    }


# --- changes of a program ---


def nodes_of(text):
    return text["graph_module"]["graph"]["nodes"]


def output_of(changed):
    return changed["outputs"][0]["as_tensor"]["name"]


def renamed(value, before, after):
    """Returns the JSON value with each use of a tensor under another name."""
    if isinstance(value, list):
        return [renamed(one, before, after) for one in value]
    if isinstance(value, dict):
        return {
            key: after if key == "name" and one == before else renamed(one, before, after)
            for key, one in value.items()
        }
    return value


def use_instead(text, before, after, but=()):
    """Lets all nodes and outputs use `after` instead of the tensor `before`."""
    graph = text["graph_module"]["graph"]
    for changed in graph["nodes"]:
        if not any(changed is one for one in but):
            changed["inputs"] = renamed(changed["inputs"], before, after)
    graph["outputs"] = renamed(graph["outputs"], before, after)
    specs = text["graph_module"]["signature"]
    specs["output_specs"] = renamed(specs["output_specs"], before, after)


def input_of(changed, name="input"):
    for given in changed["inputs"]:
        if given["name"] == name:
            return given["arg"]["as_tensor"]["name"]
    raise KeyError(name)


def insert_after(text, before, call):
    """Adds a call that reads the result of a node; all others read its own result."""
    graph = text["graph_module"]["graph"]
    added = node(call)
    added["metadata"] = dict(before["metadata"])
    shape = graph["tensor_values"][output_of(before)]
    graph["tensor_values"][call.name] = shape
    place = next(i for i, one in enumerate(graph["nodes"]) if one is before)
    use_instead(text, output_of(before), call.name)
    graph["nodes"].insert(place + 1, added)
    return added
