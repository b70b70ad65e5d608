"""A Key names a value; its kind says when the value appears in a step."""

import dataclasses

#: Values of the forward pass. "value" is the value of a node of a traced program.
FORWARD = {"input", "output", "value"}
#: Values that have the layout of their parameter.
AS_PARAMETER = {"gradient", "updated parameter"}
#: The ranks must not hold terms of these values.
WITHOUT_TERMS = {"parameter", "buffer", "updated buffer", "optimizer state"}
#: Values that are compared if they are integers, too.
COUNTED = {"result", "updated buffer"}
#: Values between the parameters and the results of a step.
WITHIN = {"input", "output", "output gradient", "value"}
#: Values that a step returns or writes.
FINAL = {
    "gradient",
    "updated parameter",
    "updated buffer",
    "optimizer state",
    "result",
}
#: Values that follow from the outputs of modules.
AFTER = {"output gradient", "gradient", "result", "value"}


@dataclasses.dataclass(frozen=True)
class Key:
    """A Key names a value in the runs of all ranks and of the reference."""

    #: parameter, buffer, input, output, output gradient, gradient, updated parameter,
    #: updated buffer, optimizer state or result
    kind: str
    #: `name` is the name of the module or of the parameter.
    name: str
    #: `path` is the place in a structure, such as "[0]". It is empty for a tensor.
    path: str = ""

    def text(self) -> str:
        name = f"`{self.name or 'model'}{self.path}`"
        if self.kind == "result":
            return f"result{f' `{self.path}`' if self.path else ''} of step()"
        return f"{name} {self.kind}"
