"""Tests of habits of PyTorch on a planned module: each works, or is an error or a note.

One process is a rank of a fake process group. $SHARDPROP_PACKAGE is the folder of
the built package.
"""

import io
import unittest
import warnings

import running.package  # noqa: F401
import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # noqa: F401

import shardprop as sp
import shardprop.torch


class Model(torch.nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.dropout = torch.nn.Dropout(dropout) if dropout else torch.nn.Identity()
        self.frozen = torch.nn.Parameter(torch.ones(8), requires_grad=False)

    def forward(self, x):
        inner = self.dropout(self.up(x)) * self.frozen
        return self.down(inner).square().mean()


class Uses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        dist.init_process_group("fake", rank=0, world_size=2)
        cls.addClassCleanup(dist.destroy_process_group)
        cls.mesh = dist.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
        cls.x = torch.randn(4, 8)
        cls.programs = {
            key: sp.torch.export(model, (cls.x,), mode=mode, device="cpu")
            for key, model, mode in [
                ("plain", Model(), "train"),
                ("dropout", Model(0.5), "train"),
                ("infer", Model(), "infer"),
            ]
        }
        cls.plans = {
            key: sp.plan(program, "tp=2", execution="eager", progress=False)
            for key, program in cls.programs.items()
        }

    def made(self, key="plain"):
        module = sp.torch.parallelize(self.programs[key], self.plans[key], self.mesh)
        sp.torch.load_weights(module, Model())
        return module

    def refused(self, message, call, *args):
        with self.assertRaises(sp.Error) as caught:
            call(*args)
        self.assertEqual(caught.exception.code, "SP0001")
        self.assertIn(message, str(caught.exception))
        self.assertNotEqual(caught.exception.help, "")

    def noted(self, message, call, *args):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            result = call(*args)
        texts = [str(one.message) for one in found]
        self.assertTrue(any(message in text for text in texts), texts)
        return result

    def gradients(self, module):
        return [n for n, p in module.named_parameters() if p.grad is not None]

    def test_backward_of_the_loss(self):
        message = "has run its backward pass already"
        loss = self.made()(self.x)
        self.refused(message, loss.backward)
        self.refused(message, (loss / 2).backward)
        self.refused(message, torch.autograd.grad, loss, [self.x])
        scaler = torch.amp.GradScaler("cpu")
        self.refused(message, lambda: scaler.scale(loss).backward())

    def test_the_loss_is_a_tensor(self):
        loss = self.made()(self.x)
        self.assertFalse(loss.requires_grad)
        self.assertIsInstance(loss, torch.Tensor)
        self.assertEqual(float(loss), loss.item())
        self.assertTrue(repr(loss).startswith("tensor("))
        file = io.BytesIO()
        torch.save({"loss": loss}, file)
        file.seek(0)
        read = torch.load(file, weights_only=True)["loss"]
        self.assertIs(type(read), torch.Tensor)
        self.assertEqual(read.item(), loss.item())

    def test_no_gradients(self):
        for context in (torch.no_grad, torch.inference_mode):
            module = self.made()
            with context():
                self.noted("under no_grad(), too, and drops them", module, self.x)
            self.assertEqual(self.gradients(module), [])
            module(self.x)
            self.assertEqual(len(self.gradients(module)), 4)

    def test_eval(self):
        module = self.made("dropout").eval()
        self.refused("eval() does not change the program", module, self.x)
        module.train()(self.x)
        # This program is the same in training and evaluation.
        module = self.made().eval()
        self.noted("exported with mode='train'", module, self.x)

    def test_train_of_a_program_without_a_backward_pass(self):
        module = self.made("infer")
        self.assertFalse(module.training)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            module(self.x)
        self.noted("no gradients are left", module.train(), self.x)

    def test_frozen_parameters(self):
        module = self.made()
        module.up.weight.requires_grad_(False)
        module(self.x)
        self.assertEqual(
            self.gradients(module), ["up.bias", "down.weight", "down.bias"]
        )
        module.frozen.requires_grad_(True)
        self.refused("`frozen` requires a gradient", module, self.x)

    def test_hooks_of_parameters(self):
        module, called = self.made(), []

        def doubled(gradient):
            called.append(gradient)
            return 2 * gradient

        module.up.weight.register_hook(doubled)
        module.up.weight.register_post_accumulate_grad_hook(called.append)
        module(self.x)
        gradient, parameter = called
        self.assertIs(parameter, module.up.weight)
        torch.testing.assert_close(
            parameter.grad.to_local(), 2 * gradient.to_local()
        )

    def test_hooks_that_would_not_run(self):
        for register in (
            lambda module: module.up.register_forward_hook(print),
            lambda module: module.up.register_forward_pre_hook(print),
            lambda module: module.up.register_full_backward_hook(print),
            lambda module: module.register_full_backward_hook(print),
        ):
            module = self.made()
            handle = register(module)
            self.refused("would not run", module, self.x)
            handle.remove()
            module(self.x)
        module, called = self.made(), []
        module.register_forward_hook(lambda *_: called.append(1))
        module(self.x)
        self.assertEqual(called, [1])

    def test_conversions(self):
        for convert in (
            lambda module: module.bfloat16(),
            lambda module: module.double(),
            lambda module: module.half(),
            lambda module: module.to(torch.float64),
            lambda module: module.to("meta"),
        ):
            module = self.made()
            self.refused("than the program takes", convert, module)
            module(self.x)
        module = self.made().float().to("cpu")
        module(self.x)
        # Submodules know nothing of the program.
        module.up.double()
        self.refused("`up.weight` has another dtype", module, self.x)

    def test_replaced_parameters(self):
        module = self.made()
        module.up.weight = torch.nn.Parameter(torch.ones(8, 8))
        self.refused("`up.weight` is a Parameter, not a DTensor", module, self.x)
        module = self.made()
        layout = [dist.tensor.Shard(1)]
        if list(module.up.weight.placements) == layout:
            layout = [dist.tensor.Replicate()]
        weight = module.up.weight.detach().redistribute(placements=layout)
        module.up.weight = torch.nn.Parameter(weight)
        self.refused("`up.weight` has another layout", module, self.x)

    def test_inputs_of_other_sizes_and_dtypes(self):
        module = self.made()
        self.refused("`x` is of shape [2, 8]", module, self.x[:2])
        self.refused("`x` is of dtype torch.float64", module, self.x.double())
        part = dist.tensor.DTensor.from_local(
            self.x, self.mesh, [dist.tensor.Shard(0)]
        )
        self.refused("`x` is of shape [8, 8]", module, part)

    @staticmethod
    def texts_of(plan):
        """Returns the notes of the plan's graph."""
        return [note["text"] for note in plan.notes if note["code"] == "graph"]

    def test_sizes_that_may_vary_in_the_model(self):
        batch = torch.export.Dim("batch", min=2, max=64)
        exported = sp.torch.export(
            torch.nn.Linear(8, 8), (self.x,), device="cpu", dynamic_shapes=({0: batch},)
        )
        graph = sp.load_graph(exported)
        note = "(dim 0 of input) may vary in the program; the plan fixes it at 4"
        self.assertTrue(any(note in text for text in graph.notes), graph.notes)
        plan = sp.plan(exported, "tp=2", execution="eager", progress=False)
        self.assertEqual(self.texts_of(plan), graph.notes)
        self.assertIn("may vary in the program", plan.explain())
        module = self.noted(note, sp.torch.parallelize, exported, plan, self.mesh)
        with self.assertRaises(sp.Error) as caught:
            module(torch.zeros(8, 8))
        self.assertRegex(
            str(caught.exception), r"s\d+ == 4 in the example inputs \(dim 0 of input\)"
        )
        with self.assertRaises(sp.Error) as caught:
            sp.load_graph(exported, bounds={"s0": 32})
        self.assertRegex(str(caught.exception), r"example inputs: s\d+ = 4")

    def test_checkpoints_of_the_model(self):
        class Checkpointed(Model):
            def forward(self, x):
                return torch.utils.checkpoint.checkpoint(
                    super().forward, x, use_reentrant=False
                )

        exported = sp.torch.export(
            Checkpointed(), (self.x,), mode="train", device="cpu"
        )
        plan = sp.plan(exported, "tp=2", execution="eager", progress=False)
        note = "the model checkpoints 1 region of "
        texts = self.texts_of(plan)
        self.assertTrue(any(note in text for text in texts), texts)
        self.assertIn(note, plan.explain())
        again = sp.Plan.from_json(plan.to_json())
        self.assertEqual(again.notes, plan.notes)
        self.noted(note, sp.torch.parallelize, exported, plan, self.mesh)

    def test_a_plan_with_an_optimizer(self):
        plan = sp.plan(
            self.programs["plain"],
            "tp=2",
            optimizer="adamw",
            execution="eager",
            progress=False,
        )
        module = self.noted(
            "leaves the step to an optimizer of PyTorch",
            sp.torch.parallelize,
            self.programs["plain"],
            plan,
            self.mesh,
        )
        module(self.x)
        self.assertEqual(len(self.gradients(module)), 4)
        for _, value in module.named_parameters():
            if value.grad is not None:
                self.assertEqual(value.grad.placements, value.placements)
                self.assertEqual(value.grad.dtype, value.dtype)


if __name__ == "__main__":
    unittest.main()
