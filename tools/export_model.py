#!/usr/bin/env python3
"""Exports a PyTorch model as a graph that shardprop reads.

  export_model.py llama3_8b --mode train --device cuda -o llama.json.gz
  export_model.py mypkg.mymodel:make --mode train -o model.json.gz

MODEL is a name from --list, or MODULE:FACTORY. The factory returns (module, args),
(module, args, kwargs) or (module, args, kwargs, dynamic_shapes), in which args are
example inputs. If it has a parameter `training`, the parameter is true in training
mode. The export uses fake tensors and allocates neither weights nor inputs, so that a
model of any size exports on a laptop.

In training mode the module's forward returns a scalar loss, alone or at --loss-index.
The graph then holds forward and backward, and its outputs are the loss and the
gradients. The optimizer's steps are not part of the graph.
"""

import argparse
import importlib
import operator
import os
import sys
import warnings

sys.path.insert(
    0, os.path.join(os.path.dirname(__file__), "..", "python", "shardprop", "torch")
)
from exporting import failures, metadata, program, write  # noqa: E402


# These are the options by the names that an explanation uses.
_OPTIONS = {
    "infer": "--mode infer",
    "train": "--mode train",
    "core": "--ir core",
    "loss_index": "--loss-index",
}


def find_factory(name):
    if ":" in name:
        module, _, attribute = name.partition(":")
        sys.path.insert(0, os.getcwd())
        factory = getattr(importlib.import_module(module), attribute, None)
        if factory is None:
            raise SystemExit(f"{module} has no {attribute}")
        return factory
    # The named models need transformers, a user's own model need not.
    from models import MODELS

    if name not in MODELS:
        raise SystemExit(f"no model named {name}; known: {', '.join(MODELS)}")
    return MODELS[name]


class _List(argparse.Action):
    def __call__(self, parser, *_):
        from models import MODELS

        print("\n".join(MODELS))
        parser.exit()


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", metavar="MODEL", help="a name or MODULE:FACTORY")
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        help="ends in .pt2, .json or .json.gz",
    )
    parser.add_argument("--mode", choices=["train", "infer"], default="infer")
    parser.add_argument(
        "--ir",
        choices=["core", "composite"],
        default="core",
        help="core: taken apart to core ATen (always so in training); "
        "composite: as torch.export.export writes it",
    )
    parser.add_argument(
        "--device",
        choices=["cpu", "cuda"],
        default="cpu",
        help="the device that the graph is for; cuda needs no GPU here",
    )
    parser.add_argument("--loss-index", type=int, default=0)
    parser.add_argument(
        "--traceback", action="store_true", help="of what torch could not export"
    )
    parser.add_argument(
        "--list", action=_List, nargs=0, help="prints the named models"
    )
    options = parser.parse_args(arguments)
    if not write.is_writable_name(options.output):
        endings = ", ".join(write.SUFFIXES)
        parser.error(f"--output {options.output}: must end in one of {endings}")
    return options


def explained(error):
    """Returns the error text with which the command ends."""
    found = failures.explain(error, _OPTIONS)
    lines = [f"error: {found.message}", f"   |  {found.cause}"]
    if found.line is not None:
        lines.append(f"   |  at {found.line}")
    if found.help is not None:
        lines.append(f"   = help: {found.help}")
    return "\n".join([*lines, "   = help: --traceback shows where"])


def main(arguments=None):
    options = parse_arguments(arguments)
    # torch's own pickling gives this warning on every run.
    warnings.filterwarnings("ignore", category=FutureWarning, module="copyreg")
    factory = find_factory(options.model)
    try:
        exported = program.export_program(
            factory,
            training=options.mode == "train",
            device=options.device,
            composite=options.ir == "composite",
            loss_index=options.loss_index,
        )
        metadata.trim(exported)
        write.write(exported, options.output, options.device)
    except Exception as error:  # noqa: BLE001  (whatever torch raises)
        if options.traceback:
            raise
        raise SystemExit(explained(error)) from None
    ops = sum(
        n.op == "call_function" and n.target is not operator.getitem
        for n in exported.graph.nodes
    )
    size = os.path.getsize(options.output)
    print(f"{options.output}: {ops} ops, {size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
