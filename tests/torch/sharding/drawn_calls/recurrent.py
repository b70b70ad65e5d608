"""Recurrent networks and their cells."""

import torch

from .families import family

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def _weights(d, inputs, hidden, gates, dtype):
    shapes = ((gates * hidden, inputs), (gates * hidden, hidden)), (gates * hidden,)
    matrices = [d.tensor(shape, dtype).contiguous() for shape in shapes[0]]
    return matrices + [d.tensor(shapes[1], dtype) for _ in range(2)]


@family(*(f"{kind}_cell" for kind in _GATES))
def cell(d):
    kind = d.base.removesuffix("_cell")
    dtype = d.rng.choice((torch.float64, torch.float32))
    batch, inputs, hidden = d.size(1), d.size(1, 4), d.size(1, 4)
    w_ih, w_hh, b_ih, b_hh = _weights(d, inputs, hidden, _GATES[kind], dtype)
    states = [d.tensor((batch, hidden), dtype).contiguous() for _ in range(2)]
    biased = d.chance(0.6)
    return {
        "input": d.tensor((batch, inputs), dtype).contiguous(),
        "hx": states if kind == "lstm" else states[0],
        "w_ih": w_ih,
        "w_hh": w_hh,
        "b_ih": b_ih if biased else None,
        "b_hh": b_hh if biased else None,
    }


@family(*_GATES)
def network(d):
    dtype = d.rng.choice((torch.float64, torch.float32))
    steps, batch = d.rng.randint(1, 3), d.size(1)
    inputs, hidden = d.rng.randint(1, 3), d.rng.randint(1, 3)
    layers, both = d.rng.randint(1, 2), d.chance(0.4)
    first = d.chance(0.5)
    biased = d.chance(0.7)
    params = []
    for layer in range(layers):
        for _ in range(1 + both):
            width = hidden * (1 + both) if layer else inputs
            own = _weights(d, width, hidden, _GATES[d.base], dtype)
            params += own if biased else own[:2]
    # Packed: how many sequences have a step, the longest first.
    present = sorted((d.rng.randint(1, batch) for _ in range(steps - 1)), reverse=True)
    present = [batch, *present]
    state = (layers * (1 + both), batch, hidden)
    states = [d.tensor(state, dtype).contiguous() for _ in range(2)]
    shape = (batch, steps, inputs) if first else (steps, batch, inputs)
    return {
        "input": d.tensor(shape, dtype).contiguous(),
        "data": d.tensor((sum(present), inputs), dtype).contiguous(),
        "batch_sizes": torch.tensor(present),
        "hx": states if d.base == "lstm" else states[0],
        "params": params,
        "has_biases": biased,
        "num_layers": layers,
        "dropout": 0.0,
        "train": False,
        "bidirectional": both,
        "batch_first": first,
    }
