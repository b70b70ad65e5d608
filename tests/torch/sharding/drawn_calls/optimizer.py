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


@family("_amp_foreach_non_finite_check_and_unscale")
def unscaled(d):
    dtype = d.rng.choice((torch.float64, torch.float32, torch.bfloat16))
    gradients = [d.tensor(d.shape(d.rng.randint(1, 3)), dtype) for _ in range(2)]
    if d.chance(0.5) and gradients[0].numel() > 0:
        gradients[0].view(-1)[-1] = d.rng.choice((torch.inf, torch.nan))
    return {
        "self": gradients,
        "found_inf": torch.tensor(float(d.chance(0.2))),
        "inv_scale": torch.tensor(0.5),
    }


@family("_foreach_addcdiv", "_foreach_addcmul")
def with_numbers(d):
    if not d.op.endswith(".Tensor"):
        return {}
    shapes = [d.shape(d.rng.randint(0, 2)) for _ in range(d.rng.randint(1, 3))]
    dtype = d.rng.choice((torch.float64, torch.float32))
    given = {
        name: [d.tensor(shape, dtype) for shape in shapes]
        for name in ("self", "tensor1", "tensor2")
    }
    given["tensor2"] = [x.abs() + 1 for x in given["tensor2"]]
    return given | {"scalars": d.tensor((len(shapes),), torch.float32).contiguous()}
