"""The models that export_model.py knows by name."""

from models import deepseek, gpt2, llama, mixtral, resnet, small, t5, vit

MODELS = {
    "llama3_8b": llama.llama3_8b,
    "llama3_128k": llama.llama3_128k,
    "llama3_405b": llama.llama3_405b,
    "llama3_tiny": llama.llama3_tiny,
    "llama3_tiny_bf16": llama.llama3_tiny_bf16,
    "gpt2_124m": gpt2.gpt2_124m,
    "gpt2_tiny": gpt2.gpt2_tiny,
    "vit_b16": vit.vit_b16,
    "vit_tiny": vit.vit_tiny,
    "resnet50": resnet.resnet50,
    "resnet_tiny": resnet.resnet_tiny,
    "t5_small": t5.t5_small,
    "t5_tiny": t5.t5_tiny,
    "mixtral_8x7b": mixtral.mixtral_8x7b,
    "mixtral_tiny": mixtral.mixtral_tiny,
    "mixtral_tiny_bf16": mixtral.mixtral_tiny_bf16,
    "deepseek_moe_64": deepseek.deepseek_moe_64,
    "deepseek_moe_8": deepseek.deepseek_moe_8,
    "deepseek_moe_tiny": deepseek.deepseek_moe_tiny,
    "mlp_dynamic": small.mlp_dynamic,
    "block_composite": small.block_composite,
}
