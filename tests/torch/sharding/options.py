"""Options that the proofs share."""

import os
import pathlib

from .words import mesh_sizes

ROOT = pathlib.Path(__file__).resolve().parents[3]


def add_binary(parser):
    parser.add_argument(
        "--bin",
        default=os.environ.get("SHARDPROP_BIN", str(ROOT / "build/tools/shardprop")),
        help="the command line tool (default $SHARDPROP_BIN)",
    )


def add_metas(parser):
    parser.add_argument(
        "--metas",
        default=os.environ.get("SHARDPROP_OP_METAS"),
        help="the tool that prints strides of outputs (default $SHARDPROP_OP_METAS; "
        "without it strides are not compared)",
    )


def add_sampled_meshes(parser, meshes):
    parser.add_argument(
        "--sampled-meshes",
        nargs="*",
        type=mesh_sizes,
        default=[mesh_sizes(mesh) for mesh in meshes],
        help=f"meshes proven by sample (default {' '.join(meshes)})",
    )


def add_processes(parser):
    parser.add_argument(
        "-j", type=int, choices=(1, 2), default=1, help="processes", dest="processes"
    )
