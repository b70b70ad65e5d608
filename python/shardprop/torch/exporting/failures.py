"""Why torch could not export a model, in a line, and what to do about it."""

import re

# A part of the message, what it means, what helps.
_KNOWN = (
    (
        r"data-dependent expression|GuardOnDataDependent|DataDependentOutput",
        "the model branches on values that only a run knows",
        "make the branch one of shapes or flags: experts chosen by data as "
        "tools/models/mixtral.py does, layerdrop and the like switched off; "
        "torch._check() tells the exporter what always holds",
    ),
    (
        r"Cannot access storage of TensorWrapper",
        "the forward calls torch.func transforms, which cannot be taken apart",
        "return the loss and use --mode train: the gradients are added here",
    ),
    (
        r"does not support automatic differentiation for outputs with complex",
        "an operator on complex numbers has no gradient that can be exported",
        "use --mode infer, or write the transform as a product of reals",
    ),
    (
        r"Unsupported list/tuple argument type|Unsupported getattr attribute|"
        r"Failed serializing node",
        "torch.export.save has no way to write an operator of this program",
        "--ir core takes it apart where it can be; flex_attention cannot",
    ),
    (
        r"FlexAttention|flex_attention",
        "flex_attention has no backward on the CPU",
        "use scaled_dot_product_attention, or --device cuda",
    ),
    (
        r"loss.*(scalar|requires grad)|element 0 of tensors does not require grad",
        "the loss that the forward returns is not a scalar with a gradient",
        "return it first, or name its place with --loss-index",
    ),
)


def explain(error):
    """The text that the command ends with."""
    text = str(error).strip()
    first = text.split("\n")[0][:300]
    name = type(error).__name__
    for pattern, meaning, advice in _KNOWN:
        if re.search(pattern, f"{name}: {text}", re.IGNORECASE):
            return (
                f"error: {meaning}\n   |  {name}: {first}\n   = help: {advice}\n"
                "   = help: --traceback shows where"
            )
    return (
        f"error: torch could not export the model\n   |  {name}: {first}\n"
        "   = help: --traceback shows where"
    )
