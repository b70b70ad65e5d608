"""Builds architectures of transformers, torchvision and timm at a tiny size.

Which ones is fixed by a rule, not by choice: those of each library by alphabet
whose default configuration, with the sizes below in it, builds a model. A
source is an iterator over names and a function from a name to (module, args,
kwargs); what cannot be built raises, and says why.
"""

import itertools

import torch

BATCH, LENGTH, IMAGE = 4, 16, 64

# `TINY` maps the size fields of transformers' configurations to small values.
TINY = {
    64: "hidden_size d_model n_embd dim embed_dim hidden_dim embedding_size "
    "word_embed_proj_dim encoder_hidden_size decoder_hidden_size",
    128: "intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim d_ff n_inner "
    "dim_feedforward vocab_size max_position_embeddings n_positions "
    "moe_intermediate_size",
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers "
    "num_key_value_heads num_encoder_layers num_decoder_layers "
    "num_experts_per_tok attention_layers",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads "
    "decoder_attention_heads num_experts num_local_experts n_routed_experts",
    16: "head_dim kv_channels attention_head_size",
    IMAGE: "image_size",
}
TINY = {name: size for size, names in TINY.items() for name in names.split()}
MOST_PARAMETERS = 60_000_000


class NotBuilt(Exception):
    pass


class TensorsOnly(torch.nn.Module):
    """Returns the tensors in the wrapped model's result, as a tuple."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *args, **kwargs):
        leaves = torch.utils._pytree.tree_leaves(
            _plain(self.model(*args, **kwargs))
        )
        return tuple(x for x in leaves if isinstance(x, torch.Tensor))


def _plain(value):
    return dict(value) if isinstance(value, dict) else value


def _checked(model, args, kwargs):
    count = sum(p.numel() for p in model.parameters())
    if count > MOST_PARAMETERS:
        raise NotBuilt(f"{count / 1e6:.0f} million parameters at its tiny size")
    model = TensorsOnly(model.eval())
    with torch.no_grad():
        model(*args, **kwargs)
    return model, args, kwargs


# --- transformers ---


def _shrunk(config):
    """The changes that make a configuration tiny, its parts' included."""
    changes = {"use_cache": False} if hasattr(config, "use_cache") else {}
    for name, value in config.to_dict().items():
        part = getattr(config, name, None)
        if isinstance(part, type(config).__mro__[-2]) or hasattr(part, "to_dict"):
            changes[name] = _shrunk(part)
        elif name in TINY and isinstance(value, int):
            changes[name] = min(value, TINY[name])
        elif name.endswith("_token_id") and isinstance(value, int):
            changes[name] = min(value, 100)
        elif name == "layer_types" and isinstance(value, list):
            changes[name] = value[: TINY["num_hidden_layers"]]
    return changes


def _images(config, channels="num_channels"):
    size = getattr(config, "image_size", IMAGE)
    if isinstance(size, (list, tuple)):
        size = size[0]
    return torch.randn(BATCH, getattr(config, channels, 3), size, size)


def _inputs_of(model, config):
    ids = torch.randint(3, 90, (BATCH, LENGTH))
    kinds = {
        "input_ids": lambda: ids,
        "pixel_values": lambda: _images(getattr(config, "vision_config", config)),
        "input_features": lambda: torch.randn(
            BATCH, getattr(config, "num_mel_bins", 80), 64
        ),
        "input_values": lambda: torch.randn(BATCH, 4000),
    }
    import inspect

    accepted = inspect.signature(model.forward).parameters
    main = model.main_input_name
    if main not in kinds:
        raise NotBuilt(f"takes `{main}`")
    inputs = {main: kinds[main]()}
    if getattr(config, "is_encoder_decoder", False) and (
        "decoder_input_ids" in accepted
    ):
        inputs["decoder_input_ids"] = ids
    for name in ("input_ids", "pixel_values"):
        # Models of text and images take both.
        if name in accepted and hasattr(config, "vision_config") and name in kinds:
            if hasattr(config, "text_config") and "clip" in config.model_type:
                inputs.setdefault(name, kinds[name]())
    return inputs


class Transformers:
    name = "transformers"

    def names(self):
        from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

        return sorted(MODEL_MAPPING_NAMES)

    def build(self, name):
        import transformers

        transformers.logging.set_verbosity_error()
        config = transformers.AutoConfig.for_model(name)
        try:
            config = type(config)(**_shrunk(config))
        except Exception as error:
            raise NotBuilt(f"no tiny configuration: {error}") from error
        model = transformers.AutoModel.from_config(config)
        return _checked(model, (), _inputs_of(model, config))


# --- torchvision, timm ---


def _declared_operators():
    """Declares the operators without which torchvision cannot be imported.
    Their kernels need the CUDA libraries of its wheels. Returns None if the
    operators exist."""
    boxes = "Tensor dets, Tensor scores, float threshold"
    declared = torch.library.Library("torchvision", "FRAGMENT")
    try:
        for name in ("nms", "qnms"):
            declared.define(f"{name}({boxes}) -> Tensor")
    except RuntimeError:
        return None
    return declared


class TorchVision:
    name = "torchvision"

    def names(self):
        self.declared = _declared_operators()
        import torchvision.models

        return sorted(torchvision.models.list_models())

    def build(self, name):
        import torchvision.models

        # Detection and segmentation models load backbone weights by default.
        try:
            model = torchvision.models.get_model(
                name, weights=None, weights_backbone=None
            )
        except TypeError:
            model = torchvision.models.get_model(name, weights=None)
        for size in (64, 96, 224, 299):
            try:
                video = "video" in type(model).__module__
                shape = (2, 3, 8, 112, 112) if video else (BATCH, 3, size, size)
                return _checked(model, (torch.randn(shape),), {})
            except NotBuilt:
                raise
            except Exception as error:
                last = error
        raise NotBuilt(str(last))


class Timm:
    name = "timm"

    def names(self):
        self.declared = _declared_operators()
        import timm

        # Variants of one model that differ in size are one architecture: the
        # first name of each entry point's module and stem.
        stems = {}
        for name in sorted(timm.list_models()):
            stems.setdefault(name.split("_")[0].rstrip("0123456789"), name)
        return sorted(stems.values())

    def build(self, name):
        import timm

        model = timm.create_model(name, pretrained=False)
        size = model.default_cfg.get("input_size", (3, 224, 224))
        return _checked(model, (torch.randn(2, *size),), {})


SOURCES = {s.name: s for s in (Transformers(), TorchVision(), Timm())}


def first_by_alphabet(source, count, exports):
    """Names of `source` by alphabet until `count` of them are exported."""
    done = itertools.count(1)
    for name in source.names():
        if exports(name) and next(done) == count:
            return
