"""The exporter's graphs compute the same results as the models.

Each tiny model gets random weights. Its exported graph, run unchanged, must
give the loss, gradients and buffers that eager PyTorch gives, or the outputs.
"""

import inspect
import pathlib
import sys
import unittest

import torch
from torch.export.graph_signature import InputKind, OutputKind

_ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT / "tools"), str(_ROOT / "python/shardprop/torch")]

import cuda_attention_kernels  # noqa: F401  (registers kernels)
from exporting import metadata
from exporting.program import Example, export_program
from models import MODELS

_DROPOUTS = ("p", "dropout", "attention_dropout")


def without_dropout(name):
    """A factory of the named model with every dropout probability zero."""

    def make(training):
        factory = MODELS[name]
        takes_mode = "training" in inspect.signature(factory).parameters
        made = factory(training=training) if takes_mode else factory()
        example = made if isinstance(made, Example) else Example(*made)
        for module in example.module.modules():
            for attribute in _DROPOUTS:
                if isinstance(getattr(module, attribute, None), float):
                    setattr(module, attribute, 0.0)
        return example

    return make


def draw(name, training):
    """The named model with random weights, and random inputs."""
    example = without_dropout(name)(training)
    generator = torch.Generator().manual_seed(0)
    for parameter in example.module.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=generator)
    args = tuple(
        torch.randint(0, 10, a.shape, generator=generator)
        if a.dtype == torch.int64
        else torch.randn(a.shape, generator=generator)
        for a in example.args
    )
    return example.module.train(training), args


def run(program, module, args):
    """The graph's outputs by (kind, target), on copies of module's tensors."""
    tensors = dict(program.constants)
    tensors.update(module.named_parameters())
    tensors.update(module.named_buffers())
    user_inputs = iter(args)
    inputs = [
        next(user_inputs)
        if spec.kind is InputKind.USER_INPUT
        else tensors[spec.target].detach().clone()
        for spec in program.graph_signature.input_specs
    ]
    with torch.no_grad():
        values = program.graph_module(*inputs)
    specs = program.graph_signature.output_specs
    return {(s.kind, s.target): v for s, v in zip(specs, values, strict=True)}


class ExportedGraph(unittest.TestCase):
    def assert_trains_like_eager(self, name, device):
        program = export_program(
            without_dropout(name), training=True, device=device
        )
        self.assert_like_eager(program, *draw(name, training=True))

    def assert_like_eager(self, program, module, args):
        outputs = run(program, module, args)
        loss = module(*args)
        loss.backward()
        buffers = dict(module.named_buffers())
        parameters = dict(module.named_parameters())
        expected = {(OutputKind.LOSS_OUTPUT, None): loss.detach()}
        for kind, target in outputs:
            if kind is OutputKind.BUFFER_MUTATION:
                expected[kind, target] = buffers[target]
        for target, parameter in parameters.items():
            if parameter.grad is not None:
                key = (OutputKind.GRADIENT_TO_PARAMETER, target)
                expected[key] = parameter.grad
        self.assertEqual(outputs.keys(), expected.keys())
        for key, value in expected.items():
            torch.testing.assert_close(
                outputs[key], value, rtol=1e-4, atol=1e-4, msg=lambda m: f"{key}: {m}"
            )

    def test_training(self):
        for name in ("llama3_tiny", "gpt2_tiny", "resnet_tiny", "t5_tiny"):
            for device in ("cpu", "cuda"):
                with self.subTest(model=name, device=device):
                    self.assert_trains_like_eager(name, device)

    def test_inference(self):
        names = ("llama3_tiny", "vit_tiny", "mixtral_tiny", "mlp_dynamic")
        for name in names:
            for device in ("cpu", "cuda"):
                with self.subTest(model=name, device=device):
                    factory = without_dropout(name)
                    program = export_program(
                        factory, training=False, device=device
                    )
                    module, args = draw(name, training=False)
                    (output,) = run(program, module, args).values()
                    torch.testing.assert_close(
                        output, module(*args), rtol=1e-4, atol=1e-4
                    )

    def test_tied_parameters_are_one(self):
        program = export_program(MODELS["gpt2_tiny"], training=True)
        names = [
            s.target
            for s in program.graph_signature.input_specs
            if s.kind is InputKind.PARAMETER
        ]
        self.assertIn("transformer.wte.weight", names)
        self.assertNotIn("lm_head.weight", names)

    def test_dropout_stays_in_training(self):
        program = export_program(MODELS["gpt2_tiny"], training=True)
        targets = {n.target for n in program.graph.nodes}
        self.assertIn(torch.ops.aten.native_dropout.default, targets)

    def test_unused_parameters_and_further_outputs_get_no_gradient(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.used = torch.nn.Linear(6, 4)
                self.unused = torch.nn.Linear(6, 4)

            def forward(self, x):
                y = self.used(x)
                return y, y.square().mean(), self.unused(x)

        program = export_program(
            lambda: (Model(), (torch.zeros(2, 6),)), training=True, loss_index=1
        )
        outputs = [(s.kind, s.target) for s in program.graph_signature.output_specs]
        self.assertEqual(
            outputs,
            [
                (OutputKind.USER_OUTPUT, None),
                (OutputKind.LOSS_OUTPUT, None),
                (OutputKind.USER_OUTPUT, None),
                (OutputKind.GRADIENT_TO_PARAMETER, "used.weight"),
                (OutputKind.GRADIENT_TO_PARAMETER, "used.bias"),
            ],
        )

    def assert_made_trains_like_eager(self, make, args):
        program = export_program(
            lambda: (make(), tuple(map(torch.zeros_like, args))), training=True
        )
        torch.manual_seed(0)
        self.assert_like_eager(program, make().train(), args)

    def test_parameters_that_are_written_in_place_get_their_gradients(self):
        class Spectrum(torch.nn.Module):
            """Its weights reach the loss through parts of a tensor of zeros."""

            def __init__(self):
                super().__init__()
                shape = (3, 4), (2,), (2, 3)
                self.low, self.high, self.lost = (
                    torch.nn.Parameter(torch.randn(size, dtype=torch.complex64))
                    for size in shape
                )
                self.scale = torch.nn.Parameter(torch.randn(4))

            def forward(self, x):
                waves = torch.fft.rfft(x)
                kept = torch.zeros(2, 6, dtype=torch.complex64)
                other = torch.zeros(2, 3, dtype=torch.complex64)
                kept[:, :4] = waves[:, :3] @ self.low
                kept.narrow(1, 4, 2).copy_(waves[:, 1:3] * self.high)
                other.copy_(self.lost)  # and nobody reads it
                rows = torch.fft.irfft(kept, n=8)
                rows[:, 4:].mul_(self.scale)
                return rows.square().mean()

        self.assert_made_trains_like_eager(Spectrum, (torch.randn(2, 10),))

    def test_functions_keep_their_backward(self):
        class Reversed(torch.autograd.Function):
            """Passes both on; the first one's gradient turns round."""

            @staticmethod
            def forward(ctx, x, y, factor):
                ctx.factor = factor
                return x.view_as(x), 2 * y

            @staticmethod
            def backward(ctx, dx, dy):
                return -ctx.factor * dx, 2 * dy, None

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(4, 6)
                self.outer = torch.nn.Linear(6, 2)

            def forward(self, x):
                hidden, twice = Reversed.apply(self.inner(x), self.outer.weight, 0.5)
                rows = torch.utils.checkpoint.checkpoint(
                    torch.tanh, hidden @ twice.T, use_reentrant=True
                )
                return rows.square().mean()

        self.assert_made_trains_like_eager(Model, (torch.randn(3, 4),))

    def test_branches_train(self):
        class Branching(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(4, 4)

            def forward(self, x):
                hidden = self.inner(x)
                chosen = torch.cond(
                    x.sum() > 0, lambda y: y.sin(), lambda y: y.cos() * 2, (hidden,)
                )
                return chosen.square().mean()

        self.assert_made_trains_like_eager(Branching, (torch.randn(3, 4),))

    def test_factorizations_train(self):
        class Gaussian(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.mean = torch.nn.Linear(5, 3)
                self.root = torch.nn.Parameter(torch.randn(3, 3))

            def forward(self, x, y):
                matrix = self.root @ self.root.T + torch.eye(3)
                factor = torch.linalg.cholesky(matrix)
                rest = torch.linalg.solve_triangular(
                    factor, (y - self.mean(x)).T, upper=False
                )
                return rest.square().mean() + factor.diagonal().log().sum()

        args = (torch.randn(8, 5), torch.randn(8, 3))
        self.assert_made_trains_like_eager(Gaussian, args)

    def test_cuda_kernels_inside_modules_of_pytorch(self):
        def factory():
            layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
            return layer.to(torch.bfloat16), (
                torch.zeros(4, 6, 16, dtype=torch.bfloat16),
            )

        program = export_program(factory, training=False, device="cuda")
        targets = {n.target for n in program.graph.nodes}
        flash = torch.ops.aten._scaled_dot_product_flash_attention.default
        self.assertIn(flash, targets)

    def test_backward_ops_know_their_forward_ops(self):
        program = export_program(MODELS["llama3_tiny"], training=True)
        nodes = {n.name: n for n in program.graph.nodes if n.op == "call_function"}
        pairs = [
            (node, nodes[node.meta["custom"]["forward_node"]])
            for node in nodes.values()
            if "forward_node" in node.meta["custom"]
        ]
        cpu_attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        attention = [f.target for b, f in pairs if "attention" in str(b.target)]
        self.assertEqual(attention, [cpu_attention.default] * 2)
        for backward, forward in pairs:
            self.assertEqual(backward.meta["custom"]["phase"], "backward")
            self.assertEqual(forward.meta["custom"]["phase"], "forward")
            self.assertEqual(
                backward.meta["nn_module_stack"], forward.meta["nn_module_stack"]
            )


class FusedAttention(unittest.TestCase):
    """The replacements of CUDA's kernels agree with autograd."""

    def gradients(self, attention, tensors):
        tensors = [t.detach().requires_grad_() for t in tensors]
        output = attention(*tensors)
        output.backward(torch.linspace(-1, 1, output.numel()).view_as(output))
        return [output, *(t.grad for t in tensors)]

    def draw(self, heads, length):
        generator = torch.Generator().manual_seed(heads * length)
        shape = (2, heads, length, 8)
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def assert_same(self, attention, reference, tensors):
        pairs = zip(
            self.gradients(attention, tensors), self.gradients(reference, tensors)
        )
        for actual, expected in pairs:
            torch.testing.assert_close(actual, expected)

    def test_flash_groups_heads(self):
        tensors = [self.draw(6, 5), self.draw(3, 5), self.draw(3, 5)]
        self.assert_same(
            lambda q, k, v: torch.ops.aten._scaled_dot_product_flash_attention(
                q, k, v, 0.0, True, scale=0.3
            )[0],
            lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=True, scale=0.3, enable_gqa=True
            ),
            tensors,
        )

    def test_efficient_takes_a_bias(self):
        tensors = [self.draw(6, 5), self.draw(6, 7), self.draw(6, 7)]
        tensors.append(torch.randn(2, 6, 5, 7, dtype=torch.float64))
        self.assert_same(
            lambda q, k, v, b: (
                torch.ops.aten._scaled_dot_product_efficient_attention(
                    q, k, v, b, True
                )[0]
            ),
            lambda q, k, v, b: torch.nn.functional.scaled_dot_product_attention(
                q, k, v, b
            ),
            tensors,
        )


class Metadata(unittest.TestCase):
    def test_keeps_the_innermost_line_outside_torch(self):
        torch_file = torch.nn.modules.linear.__file__
        trace = (
            'File "/elsewhere/model.py", line 7, in forward\n'
            "    return self.fc(x)\n"
            f'File "{torch_file}", line 134, in forward\n'
            "    return F.linear(input, self.weight, self.bias)\n"
        )
        self.assertEqual(
            metadata.innermost_user_line(trace),
            'File "/elsewhere/model.py", line 7, in forward\n'
            "    return self.fc(x)",
        )

    def test_knows_no_line_where_there_is_none(self):
        self.assertIsNone(metadata.innermost_user_line('File "<eval>", line 1, in f'))


if __name__ == "__main__":
    unittest.main()
