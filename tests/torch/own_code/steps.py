"""These programs run several steps, or update parameters on some ranks only."""

import torch
import torch.distributed as dist
from torch import nn

from .cases import Code, case, tokens

WIDTH = 8


def net():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 4))


def own(x):
    return x.chunk(dist.get_world_size())[dist.get_rank()]


def average(parameters):
    if dist.get_world_size() > 1:
        for parameter in parameters:
            dist.all_reduce(parameter.grad, dist.ReduceOp.AVG)


def replicate(model, mesh):
    """All ranks keep the whole model."""


@case("dp=2", ("updated parameter", "0.weight"), "")
def schedule_steps_with_ranks(mistake):
    """The learning rate is wrong from the second of three steps on."""

    def step(model, batches):
        optimizer = torch.optim.AdamW(model.parameters(), 0.01)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 1 / (1 + n))
        for x in batches:
            loss = model(own(x)).square().mean()
            loss.backward()
            average(model.parameters())
            optimizer.step()
            optimizer.zero_grad()
            for _ in range(dist.get_world_size() if mistake else 1):
                schedule.step()
        return loss

    return Code(net, replicate, step, tokens(3, 4, WIDTH))


@case("dp=3", ("updated parameter", "2.weight"), "No layout makes it right")
def broadcast_of_some_parameters(mistake):
    """Rank 0 gets all gradients, updates and sends the parameters. The gradients of the
    other ranks do not matter."""

    def step(model, x):
        size, rank = dist.get_world_size(), dist.get_rank()
        loss = model(own(x)).square().mean()
        loss.backward()
        if size > 1:
            for parameter in model.parameters():
                dist.reduce(parameter.grad, 0)
                parameter.grad.div_(size)
        if rank == 0:
            torch.optim.SGD(model.parameters(), 0.1).step()
        if size > 1:
            for name, parameter in model.named_parameters():
                if not (mistake and name == "2.weight"):
                    dist.broadcast(parameter.data, 0)
        return loss

    return Code(net, replicate, step, tokens(6, WIDTH))


@case("dp=3", ("updated parameter", "0.weight"), "No layout makes it right")
def flat_shards_of_adam(mistake):
    """ZeRO-2 with one flat vector. Its gradients are removed from the parameters. With
    the mistake one rank leaves out the last step."""

    def on_one_device(model, batches):
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        for x in batches:
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    def step(model, batches):
        size, rank = dist.get_world_size(), dist.get_rank()
        if size == 1:
            return on_one_device(model, batches)
        parameters = list(model.parameters())
        count = sum(parameter.numel() for parameter in parameters)
        length = -(-count // size)
        flat, gradients = torch.zeros(length * size), torch.zeros(length * size)
        torch.cat([p.detach().flatten() for p in parameters], out=flat[:count])
        shard = flat[rank * length:(rank + 1) * length].clone().requires_grad_()
        shard.grad = torch.empty(length)
        optimizer = torch.optim.Adam([shard], 0.01)
        for index, x in enumerate(batches):
            model(own(x)).square().mean().backward()
            torch.cat([p.grad.flatten() for p in parameters], out=gradients[:count])
            dist.reduce_scatter_tensor(shard.grad, gradients, op=dist.ReduceOp.AVG)
            if not (mistake and index == 2 and rank == 1):
                optimizer.step()
            dist.all_gather_into_tensor(flat, shard.detach())
            offset = 0
            for parameter in parameters:
                part = flat[offset:offset + parameter.numel()]
                parameter.data.copy_(part.view_as(parameter))
                parameter.grad = None
                offset += parameter.numel()
        return None

    return Code(net, replicate, step, tokens(3, 6, WIDTH))


@case("dp=2", ("gradient", "2.bias"), "mean over dp is missing")
def closure_without_average(mistake):
    """LBFGS calls a function that computes the gradients."""

    def step(model, x):
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=3)

        def closure():
            optimizer.zero_grad()
            loss = model(own(x)).square().mean()
            loss.backward()
            if not mistake:
                average(model.parameters())
            loss = loss.detach()
            dist.all_reduce(loss)
            return loss / dist.get_world_size()

        return optimizer.step(closure)

    return Code(net, replicate, step, tokens(6, WIDTH))


@case("dp=2", ("gradient", "table.weight"), "The factor is 2: the size of dp")
def sum_of_sparse_gradients(mistake):
    def build():
        model = nn.Module()
        model.table = nn.Embedding(10, WIDTH, sparse=True)
        model.head = nn.Linear(WIDTH, 3)
        return model

    def step(model, ids):
        size = dist.get_world_size()
        loss = model.head(model.table(own(ids))).square().mean()
        loss.backward()
        average(model.head.parameters())
        gradient = model.table.weight.grad.coalesce()
        dist.all_reduce(gradient)
        model.table.weight.grad = gradient if mistake else gradient / size
        torch.optim.SparseAdam([model.table.weight], 0.01).step()
        return loss

    def given():
        torch.manual_seed(1)
        return torch.randint(0, 10, (4, 3))

    return Code(build, replicate, step, given)


@case("dp=2", ("gradient", "2.weight"), "mean over dp is missing")
def optimizer_within_backward(mistake):
    """Each parameter has an optimizer, which steps when its gradient is complete."""

    def step(model, x):
        optimizers = {
            parameter: torch.optim.SGD([parameter], 0.1, momentum=0.9)
            for parameter in model.parameters()
        }

        def update_of(name):
            def update(parameter):
                if not (mistake and name == "2.weight"):
                    average([parameter])
                optimizers[parameter].step()
                optimizers[parameter].zero_grad()

            return update

        for name, parameter in model.named_parameters():
            parameter.register_post_accumulate_grad_hook(update_of(name))
        for _ in range(2):
            loss = model(own(x)).square().mean()
            loss.backward()
        return loss

    return Code(net, replicate, step, tokens(6, WIDTH))
