"""explain() says why torch could not export a model, and gives advice."""

import pathlib
import re
import sysconfig
import traceback
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch

# Each row has a part of torch's message, its meaning, and advice. Options are in
# braces, because the command line and the function spell them differently.
_KNOWN = (
    (
        r"data-dependent|GuardOnDataDependent|DataDependentOutput",
        "a branch or a size of the model depends on the data",
        "let forward compute both ways and choose with torch.where, give fixed "
        "sizes, or torch._check() what always holds; experts: send every token to "
        "every expert and weight by the router, as tools/models/mixtral.py does; "
        "layerdrop: export with {infer} or set its probability to zero",
    ),
    (
        r"DynamicOutputShape",
        "an operator's result has sizes that only values tell",
        "give it a fixed size: torch.where for a mask, a padded result; keep the "
        "CTC loss, which has none, out of what is exported",
    ),
    (
        r"custom autograd function",
        "a torch.autograd.Function takes a module or a function, whose parameters "
        "its backward would hide",
        "give it tensors and numbers alone, or export with {infer}",
    ),
    (
        r"TensorWrapper|functorch tensor",
        "the model takes gradients with torch.func inside forward",
        "return the loss alone and export with {train}: the backward pass is traced "
        "from it",
    ),
    (
        r"does not support automatic differentiation for outputs with complex",
        "the backward pass goes through an operator on complex numbers",
        "export with {infer}, write the transform as a product of reals, or keep it "
        "out of what is trained",
    ),
    (
        r"in output, which is not a known type|Unsupported input type",
        "forward takes or returns an object that PyTorch cannot look into",
        "leave it out (caches of transformers: use_cache=False), or register its type "
        "with torch.utils._pytree.register_pytree_node (transformers does with "
        "integrations.executorch.register_dynamic_cache_export_support())",
    ),
    (
        r"flex_?attention",
        "flex_attention cannot be written down, and has no backward on the CPU",
        "use scaled_dot_product_attention in its place",
    ),
    (
        r"Unsupported list/tuple argument type|Unsupported getattr attribute|"
        r"SerializeError|Failed serializing",
        "the program holds an operator that torch.export cannot write down",
        "{core} takes higher-order operators apart where it can be done",
    ),
    (
        r"output.* marked as the loss|element 0 of tensors does not require grad",
        "the loss that forward returns is not a scalar that depends on the "
        "parameters",
        "return the loss first, or say its place with {loss_index}",
    ),
)


class Explanation(NamedTuple):
    """An Explanation is the meaning of an exception of torch for a user who plans."""

    message: str
    #: The first line of torch's message.
    cause: str
    #: Line of the model that torch was running: file, number, function and text.
    #: It is None if no line of the model was running.
    line: "str | None"
    #: Advice; It is None if the message is unknown.
    help: "str | None"


def _chain(error: "BaseException | None") -> "Iterator[BaseException]":
    """Yields the first exception, then the exceptions that it caused."""
    if error is not None:
        yield from _chain(error.__cause__ or error.__context__)
        yield error


def _is_of_model(file: str) -> bool:
    """Returns whether a file belongs to the model: not to torch, Python or this
    package."""
    path = pathlib.Path(file)
    if file.startswith("<"):
        return False
    for root in (torch.__path__[0], pathlib.Path(__file__).parents[1]):
        if path.is_relative_to(root):
            return False
    library = sysconfig.get_path("stdlib")
    return not path.is_relative_to(library) or "site-packages" in path.parts


def _line_of_model(error: BaseException) -> "str | None":
    """Returns the innermost line of the model in the first exception's traceback."""
    for raised in _chain(error):
        frames = traceback.extract_tb(raised.__traceback__)
        for frame in reversed(frames):
            if _is_of_model(frame.filename):
                return (
                    f"{frame.filename}:{frame.lineno}, in {frame.name}: {frame.line}"
                )
    return None


def explain(error: BaseException, options: "Mapping[str, str]") -> Explanation:
    """Explains an exception. `options` has the spelling of infer, train, core and
    loss_index."""
    text = f"{type(error).__name__}: {str(error).strip()}"
    cause = text.splitlines()[0][:300]
    line = _line_of_model(error)
    for pattern, message, advice in _KNOWN:
        if re.search(pattern, text, re.IGNORECASE):
            return Explanation(message, cause, line, advice.format(**options))
    return Explanation("torch.export cannot export the model", cause, line, None)
