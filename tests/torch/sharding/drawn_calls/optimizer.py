"""Fused optimizer steps: the i-th parameter, gradient and states fit together."""

import torch

from .families import family

_LISTS = {
    "_fused_adam": ("exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"),
    "_fused_adamw": ("exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"),
    "_fused_sgd": ("momentum_buffer_list",),
    "_fused_adagrad": ("state_sums",),
}


@family(*_LISTS)
def fused(d):
    dtype = d.rng.choice((torch.float64, torch.float32))
    shapes = [d.shape(d.rng.randint(1, 3)) for _ in range(d.rng.randint(1, 3))]
    base = d.base.removesuffix("_")

    def tensors():
        return [d.tensor(shape, dtype).contiguous() for shape in shapes]

    given = {"self": tensors(), "grads": tensors()}
    given |= {name: [x.abs() + 1 for x in tensors()] for name in _LISTS[base]}
    amsgrad = d.chance(0.5)
    if not amsgrad and "max_exp_avg_sqs" in given:
        given["max_exp_avg_sqs"] = []
    rate = d.rng.choice((0.25, 0.5))
    if ".tensor_lr" in d.op:
        rate = torch.tensor(rate, dtype=torch.float32)
    return given | {
        "state_steps": [torch.tensor(2.0) for _ in shapes],
        "lr": rate,
        "beta1": 0.5,
        "beta2": 0.75,
        "weight_decay": d.rng.choice((0.0, 0.25)),
        "eps": 0.125,
        "amsgrad": amsgrad,
        "maximize": d.chance(0.3),
        "momentum": d.rng.choice((0.0, 0.5)),
        "dampening": 0.25,
        "nesterov": False,
        "is_first_step": d.chance(0.3),
        "lr_decay": 0.25,
        "grad_scale": None,
        "found_inf": None,
    }
