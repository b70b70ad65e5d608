#!/usr/bin/env bash
# Leads from a fresh clone to an explained plan. It installs packages, builds
# the command line, and explains a tiny graph and Llama 3 8B training on 64
# GPUs.
#
#   scripts/quickstart.sh [--yes]
#
# It prints the packages and, on a terminal, asks first unless --yes is given.
set -euo pipefail
source "$(dirname "$0")/common.sh"

if (($# > 1)) || [[ $# == 1 && $1 != --yes ]]; then
  echo "usage: scripts/quickstart.sh [--yes]" >&2
  exit 2
fi

say "Packages"
scripts/install_packages.sh "$@"

jobs=$(jobs_that_fit)
say "Building the command line into $build with $jobs jobs"
# Planning needs neither the reference of `verify` nor CUDA nor MPI.
configure_release -D SHARDPROP_REFERENCE=OFF -D SHARDPROP_CUDA=OFF \
  -D SHARDPROP_MPI=OFF
cmake --build "$build" --target shardprop --parallel "$jobs"
shardprop=$build/tools/shardprop

explain() {
  say "shardprop explain $*"
  "$shardprop" explain "$@"
}
explain examples/graphs/tiny/llama3_train.json.gz --mesh dp=2,tp=2
explain examples/graphs/llama3_8b_train.json.gz --mesh dp=8,tp=8 --optimizer adamw --compare --time-limit 15

say "Done. Your own model: see README.md; all commands: $shardprop --help"
echo "scripts/test.sh adds the command \`verify\`, CUDA and MPI to this build."
