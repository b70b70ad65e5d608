"""Attention with queries, keys and values from one weight, as transformers has it.

GPT-2 splits the result of the fused weight, Phi-3 slices it, and GPT-NeoX has the
three pieces of each head next to one another. Under `megatron`, training a fused model
may cost 1 % more than the model with separate weights. Pieces of unequal sizes are
separated by the export. $SHARDPROP_PACKAGE is the folder of the built package, and
$SHARDPROP_BIN the command line.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

import running.package  # noqa: F401
import torch
from torch import nn
from torch.export.graph_signature import InputKind, OutputKind
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
)
from transformers.pytorch_utils import Conv1D

import shardprop as sp
import shardprop.torch

BATCH, LENGTH, WIDTH, HEADS = 8, 1024, 1024, 16
SMALL = dict(width=32, heads=4, length=8, vocabulary=48)


class Pieces:
    """Stands for the result of a fused projection; it has a tensor for each piece."""

    def __init__(self, pieces):
        self.pieces = tuple(pieces)

    def split(self, _size, dim):
        return self.pieces

    def chunk(self, _count, dim):
        return self.pieces

    def __getitem__(self, key):
        start = key[-1].start or 0
        for piece in self.pieces:
            if start == 0:
                return piece
            start -= piece.shape[-1]
        raise IndexError(key)

    def view(self, shape):
        shape = (*shape[:-1], shape[-1] // len(self.pieces))
        return Pieces(piece.view(shape) for piece in self.pieces)

    def transpose(self, a, b):
        return Pieces(piece.transpose(a, b) for piece in self.pieces)


class Separate(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        return Pieces(layer(x) for layer in self.layers)


class Loss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, labels):
        return self.model(input_ids=ids, labels=labels, use_cache=False).loss


def separate(model, made):
    """Replaces the submodules that `made` names, each by the layers that it returns."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if name in made:
                setattr(module, name, Separate(made[name](child)))


def sizes(width, length, vocabulary):
    return dict(
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=1,
        vocab_size=vocabulary,
        max_position_embeddings=length,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )


def linears(*widths):
    def make(fused):
        return [
            nn.Linear(fused.in_features, out, bias=fused.bias is not None)
            for out in widths
        ]

    return make


def gpt2(is_fused, width=WIDTH, heads=HEADS, length=LENGTH, vocabulary=512):
    config = GPT2Config(
        n_embd=width,
        n_head=heads,
        n_layer=1,
        vocab_size=vocabulary,
        n_positions=length,
        attn_pdrop=0,
        embd_pdrop=0,
        resid_pdrop=0,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    model = GPT2LMHeadModel(config)
    if not is_fused:
        columns = [Conv1D(width, width) for _ in range(3)]
        separate(model, {"c_attn": lambda _: columns})
    return model


def phi3(
    is_fused, width=WIDTH, heads=HEADS, length=LENGTH, vocabulary=512, key_heads=None
):
    key_heads = key_heads or heads
    config = Phi3Config(
        num_attention_heads=heads,
        num_key_value_heads=key_heads,
        pad_token_id=0,
        **sizes(width, length, vocabulary),
    )
    model = Phi3ForCausalLM(config)
    if not is_fused:
        keys = width // heads * key_heads
        separate(
            model,
            {
                "qkv_proj": linears(width, keys, keys),
                "gate_up_proj": linears(4 * width, 4 * width),
            },
        )
    return model


def gpt_neox(is_fused, width=WIDTH, heads=HEADS, length=LENGTH, vocabulary=512):
    config = GPTNeoXConfig(
        num_attention_heads=heads,
        attention_dropout=0,
        hidden_dropout=0,
        **sizes(width, length, vocabulary),
    )
    model = GPTNeoXForCausalLM(config)
    if not is_fused:
        separate(model, {"query_key_value": linears(width, width, width)})
    return model


def exported(make, is_fused, **options):
    with torch.device("meta"):
        model = Loss(make(is_fused).to(torch.bfloat16))
        ids = torch.zeros(BATCH, LENGTH, dtype=torch.int64)
    return sp.torch.export(model, (ids, ids), mode="train", device="cuda", **options)


def planned(program, mesh, recipe):
    return sp.plan(program, mesh, recipe=recipe, gap=0, progress=False)


def milliseconds(plan):
    return plan.objective_us / 1000


class Prices(unittest.TestCase):
    def check(self, make):
        fused, parts = exported(make, True), exported(make, False)
        for mesh, recipe in (
            ("tp=4", "megatron=tp"),
            ("dp=2,tp=4", "ddp=dp,megatron=tp"),
        ):
            with self.subTest(mesh=mesh):
                one = planned(fused, mesh, recipe)
                three = planned(parts, mesh, recipe)
                print(
                    f"{make.__name__} {recipe}: fused {milliseconds(one):.3f} ms, "
                    f"separate {milliseconds(three):.3f} ms"
                )
                self.assertLessEqual(milliseconds(one), 1.01 * milliseconds(three))

    def test_gpt2(self):
        self.check(gpt2)

    def test_phi3(self):
        self.check(phi3)

    def test_gpt_neox(self):
        self.check(gpt_neox)


def outputs(program, module, args):
    """Returns the loss and the gradients by the names of the parameters."""
    tensors = dict(program.constants)
    tensors.update(module.named_parameters())
    tensors.update(module.named_buffers())
    given = iter(args)
    inputs = [
        next(given)
        if spec.kind is InputKind.USER_INPUT
        else tensors[spec.target].detach().clone()
        for spec in program.graph_signature.input_specs
    ]
    with torch.no_grad():
        values = program.graph_module(*inputs)
    specs = program.graph_signature.output_specs
    return {
        spec.target if spec.kind is OutputKind.GRADIENT_TO_PARAMETER else "loss": value
        for spec, value in zip(specs, values, strict=True)
    }


class UnequalPieces(unittest.TestCase):
    """Two heads of keys are used by four heads of queries."""

    def small(self):
        torch.manual_seed(0)
        model = Loss(phi3(True, **SMALL, key_heads=2)).float()
        ids = torch.randint(1, SMALL["vocabulary"], (2, SMALL["length"]))
        return model, (ids, ids.clone())

    def program(self, **options):
        model, args = self.small()
        return sp.torch.export(model, args, mode="train", device="cpu", **options)

    def test_same_loss_and_gradients(self):
        model, args = self.small()
        program = self.program(separate_pieces=True)
        found = outputs(program, model.train(), args)
        loss = model(*args)
        loss.backward()
        torch.testing.assert_close(found["loss"], loss.detach())
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(found[name], parameter.grad, msg=name)

    def test_only_unequal_pieces_are_separated(self):
        def weights(program):
            """Names the matmuls that read a piece of a weight."""
            return sum(
                node.target is torch.ops.aten.split_with_sizes.default
                and node.args[0].op == "placeholder"
                for node in program.graph.nodes
            )

        self.assertEqual(weights(self.program(separate_pieces=True)), 1)
        self.assertEqual(weights(self.program()), 0)

    def test_agrees_with_one_rank(self):
        meshes = ("tp=2", "tp=4", "dp=2,tp=2", "dp=2,tp=4")
        torch.manual_seed(0)
        equal, args = Loss(phi3(True, **SMALL)).float(), self.small()[1]
        programs = {
            "unequal": self.program(),
            "separated": self.program(separate_pieces=True),
            "equal": sp.torch.export(equal, args, mode="train", device="cpu"),
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, program in programs.items():
                path = pathlib.Path(folder) / f"{name}.json"
                path.write_bytes(sp.torch.to_json(program))
                for mesh in meshes:
                    recipe = "megatron=tp" if "dp" not in mesh else "ddp=dp,megatron=tp"
                    command = [os.environ["SHARDPROP_BIN"], "verify", path]
                    command += ["--mesh", mesh, "--recipe", recipe]
                    with self.subTest(program=name, mesh=mesh):
                        done = subprocess.run(command, capture_output=True, text=True)
                        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_nothing_to_separate_is_a_warning(self):
        model = torch.nn.Linear(8, 8)
        with self.assertWarnsRegex(UserWarning, "changes nothing"):
            sp.torch.export(model, (torch.ones(2, 8),), separate_pieces=True)

    def test_composite_is_refused(self):
        model, args = self.small()
        with self.assertRaisesRegex(sp.torch.ExportError, "separate_pieces"):
            sp.torch.export(model, args, composite=True, separate_pieces=True)

    def test_megatron(self):
        def make(is_fused):
            return phi3(is_fused, key_heads=4)

        whole = planned(exported(make, True), "tp=4", "megatron=tp")
        narrowed = planned(
            exported(make, True, separate_pieces=True), "tp=4", "megatron=tp"
        )
        separate = planned(exported(make, False), "tp=4", "megatron=tp")
        print(
            f"unequal pieces: fused {milliseconds(whole):.3f} ms, separated by the "
            f"export {milliseconds(narrowed):.3f} ms, separate weights "
            f"{milliseconds(separate):.3f} ms"
        )
        self.assertLess(milliseconds(narrowed), milliseconds(whole))


if __name__ == "__main__":
    unittest.main()
