"""These programs shard the GPT-2 of transformers by hand."""

import torch
import torch.nn.functional as F

from . import moves
from .cases import Code, case

WIDTH, WORDS, TOKENS = 16, 32, 6


def _build():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(
        n_embd=WIDTH, n_head=4, n_layer=2, n_positions=TOKENS, vocab_size=WORDS,
        bos_token_id=0, eos_token_id=0,
    ))
    # A bias of zero would hide that it is added twice.
    torch.nn.init.ones_(model.transformer.h[0].mlp.c_proj.bias)
    return model


def _by_columns(module, count, group, is_one_part=False):
    """Shards the columns of each of `count` parts of a fused weight."""
    size, rank = group.size(), group.rank()
    for name in ("weight", "bias"):
        tensor = getattr(module, name).data
        parts = [tensor] if is_one_part else tensor.chunk(count, -1)
        own = torch.cat([part.chunk(size, -1)[rank] for part in parts], -1)
        getattr(module, name).data = own.contiguous()
    module.forward = lambda x: F.linear(
        moves.copy(x, group), module.weight.t(), module.bias
    )


def _by_rows(module, group, has_bias_on_each_rank=False):
    moves.shard(module.weight, 0, group)

    def forward(x):
        y = x @ module.weight
        if has_bias_on_each_rank:
            return moves.reduce(y + module.bias, group)
        return moves.reduce(y, group) + module.bias

    module.forward = forward


def _code(is_one_part=False, has_bias_on_each_rank=False):
    def parallelize(model, mesh):
        group = mesh.get_group("tp")
        for block in model.transformer.h:
            attention, mlp = block.attn, block.mlp
            attention.num_heads //= group.size()
            attention.split_size //= group.size()
            _by_columns(attention.c_attn, 3, group, is_one_part)
            _by_rows(attention.c_proj, group)
            _by_columns(mlp.c_fc, 1, group)
            _by_rows(mlp.c_proj, group, has_bias_on_each_rank)

    def step(model, ids):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        return loss

    def ids():
        torch.manual_seed(8)
        return torch.randint(0, WORDS, (3, TOKENS))

    return Code(_build, parallelize, step, ids)


@case(
    "tp=2", ("input", "transformer.h.0.attn.c_proj"), "No layout makes it right",
    needs="transformers.models.gpt2.modeling_gpt2",
)
def gpt2_fused_weight_in_contiguous_parts(mistake):
    return _code(is_one_part=mistake)


@case(
    "tp=2", ("output", "transformer.h.0.mlp.c_proj"), "which it contains 2 times",
    needs="transformers.models.gpt2.modeling_gpt2",
)
def gpt2_bias_on_each_rank(mistake):
    return _code(has_bias_on_each_rank=mistake)
