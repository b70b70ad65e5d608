"""These programs shard the batch: replicated shards, accumulation, hooks, prefetches."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as collectives
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from .cases import Code, case

WIDTH, HIDDEN = 8, 12


def net():
    return nn.Sequential(
        nn.Linear(WIDTH, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, WIDTH)
    )


def given():
    torch.manual_seed(1)
    return torch.randn(16, WIDTH), torch.randn(16, WIDTH)


def own(tensor):
    return tensor.chunk(dist.get_world_size())[dist.get_rank()]


def loss_of(model, x, labels):
    return (model(x) - labels).square().mean()


def train(model, batch):
    loss = loss_of(model, *map(own, batch))
    loss.backward()
    torch.optim.AdamW(model.parameters(), 0.01).step()
    return loss


def is_parallel():
    return dist.get_world_size() > 1


@case("replicate=2,shard=2", ("gradient", "2.bias"), "mean over replicate is missing")
def replicas_without_all_reduce(mistake):
    """Each replica is ZeRO-2: gradients are scattered, then summed over replicas."""

    def parallelize(model, mesh):
        model.mesh = mesh

    def step(model, batch):
        loss = loss_of(model, *map(own, batch))
        loss.backward()
        if not is_parallel():
            torch.optim.SGD(model.parameters(), 0.1).step()
            return loss
        shards, replicas = (
            model.mesh.get_group(name) for name in ("shard", "replicate")
        )
        for name, parameter in model.named_parameters():
            parts = [part.contiguous() for part in parameter.grad.chunk(2)]
            gradient = torch.empty_like(parts[0])
            dist.reduce_scatter(gradient, parts, group=shards)
            if not (mistake and name == "2.bias"):
                dist.all_reduce(gradient, group=replicas)
            gradient /= dist.get_world_size()
            if mistake and name == "2.bias":
                gradient *= 2
            whole = [torch.empty_like(gradient) for _ in range(2)]
            dist.all_gather(whole, gradient, group=shards)
            parameter.grad.copy_(torch.cat(whole))
        torch.optim.SGD(model.parameters(), 0.1).step()
        return loss

    return Code(net, parallelize, step, given)


def shard_all(model, mesh, **options):
    for layer in model:
        fully_shard(layer, mesh=mesh, **options)
    fully_shard(model, mesh=mesh, **options)


@case("dp=2", ("gradient", "2.bias"), "No layout makes it right")
def last_micro_batch_is_not_reduced(mistake):
    """FSDP2 reduces the gradients of the last micro-batch, with those before it."""

    def step(model, batch):
        x, labels = map(own, batch)
        optimizer = torch.optim.AdamW(model.parameters(), 0.01)
        pieces = list(zip(x.chunk(2), labels.chunk(2)))
        for index, (some, expected) in enumerate(pieces):
            if is_parallel():
                is_last = index == (0 if mistake else len(pieces) - 1)
                model.set_requires_gradient_sync(is_last)
            (loss_of(model, some, expected) / len(pieces)).backward()
        optimizer.step()

    return Code(net, shard_all, step, given)


@case("dp=2", ("gradient", "2.bias"), "The factor is 2: the size of dp")
def divides_by_one(mistake):
    """The loss is a mean over the rank, and FSDP2 does not divide by the ranks."""

    def parallelize(model, mesh):
        policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
        shard_all(model, mesh, mp_policy=policy)
        if mistake:
            for layer in model:
                if isinstance(layer, nn.Linear):
                    layer.set_gradient_divide_factor(1.0)
                    layer.set_force_sum_reduction_for_comms(True)

    return Code(net, parallelize, train, given)


@case("dp=2", ("gradient", "2.bias"), "The factor is 2: the size of dp")
def hook_without_division(mistake):
    """A communication hook of DDP must divide by the number of ranks itself."""

    def parallelize(model, mesh):
        made = nn.parallel.DistributedDataParallel(model)

        def hook(state, bucket):
            buffer = bucket.buffer()
            if not mistake:
                buffer = buffer.div_(dist.get_world_size())
            work = dist.all_reduce(buffer, async_op=True).get_future()
            return work.then(lambda future: future.value()[0])

        made.register_comm_hook(None, hook)
        return made

    return Code(net, parallelize, train, given)


class Prefetched(nn.Module):
    """The weights of the next layer are gathered while a layer runs."""

    def __init__(self, mistake):
        super().__init__()
        self.weights = nn.ParameterList(
            torch.randn(WIDTH, WIDTH) / 3 for _ in range(3)
        )
        self.tanh = nn.ModuleList(nn.Tanh() for _ in range(3))
        self.group, self.mistake = None, mistake

    def start(self, index):
        own = self.weights[index].detach().contiguous()
        whole = torch.empty(WIDTH, WIDTH)
        work = dist.all_gather_into_tensor(
            whole, own, group=self.group, async_op=True
        )
        return whole, work

    def forward(self, x):
        if self.group is None:
            for weight, tanh in zip(self.weights, self.tanh):
                x = tanh(x @ weight)
            return x
        started = self.start(0)
        for index, tanh in enumerate(self.tanh):
            whole, work = started
            if not (self.mistake and index == 1):
                work.wait()
            if index < 2:
                started = self.start(index + 1)
            x = tanh(x @ whole)
        return x


@case("dp=2", ("input", "tanh.1"), "before the wait")
def prefetch_without_wait(mistake):
    def parallelize(model, mesh):
        model.group = mesh.get_group()
        for weight in model.weights:
            weight.data = weight.data.chunk(2)[mesh.get_rank()].clone()

    @torch.no_grad()
    def step(model, batch):
        return model(own(batch[0]))

    return Code(lambda: Prefetched(mistake), parallelize, step, given)


@case("dp=4", ("gradient", "0.bias"), "mean over dp is missing")
def functional_gradients(mistake):
    """Functional collectives return new tensors; the mistake drops one of them."""

    def step(model, batch):
        loss = loss_of(model, *map(own, batch))
        loss.backward()
        if is_parallel():
            sent = {
                name: collectives.all_reduce(parameter.grad, "avg", dist.group.WORLD)
                for name, parameter in model.named_parameters()
            }
            for name, parameter in model.named_parameters():
                if not (mistake and name == "0.bias"):
                    parameter.grad = collectives.wait_tensor(sent[name])
        torch.optim.SGD(model.parameters(), 0.1).step()
        return loss

    return Code(net, lambda model, mesh: None, step, given)


@case("dp=2", ("collective", ""), "between the call and the wait")
def gradients_scaled_before_the_wait(mistake):
    def step(model, batch):
        loss = loss_of(model, *map(own, batch))
        loss.backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        if is_parallel():
            works = [dist.all_reduce(each, async_op=True) for each in gradients]
            if mistake:
                gradients[0].div_(2)
            for work in works:
                work.wait()
            for gradient in gradients[1 if mistake else 0:]:
                gradient.div_(2)
        torch.optim.SGD(model.parameters(), 0.1).step()
        return loss

    return Code(net, lambda model, mesh: None, step, given)


@case("dp=2", ("collective", "0"), "between the call and the wait")
def buffer_used_again_before_the_wait(mistake):
    """Statistics of each layer are gathered from one buffer."""

    def build():
        model = net()
        model.buffer = torch.zeros(2)
        return model

    def parallelize(model, mesh):
        def send(layer, inputs, output):
            works = model.__dict__.setdefault("works", [])
            if mistake and works:
                model.buffer.zero_()
            elif works:
                works[-1][0].wait()
            model.buffer.copy_(torch.stack([output.mean(), output.std()]).detach())
            parts = torch.empty(4)
            works.append((
                dist.all_gather_into_tensor(parts, model.buffer, async_op=True), parts
            ))

        for layer in model:
            layer.register_forward_hook(send)

    def step(model, batch):
        loss = loss_of(model, *map(own, batch))
        for work, _ in getattr(model, "works", []):
            work.wait()
        loss.backward()
        if is_parallel():
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad, dist.ReduceOp.AVG)
        return loss

    return Code(build, parallelize, step, given)
