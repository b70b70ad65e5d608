#!/usr/bin/env bash
# Installs missing packages, builds everything and runs the tests.
#
#   scripts/test.sh [CTEST ARGUMENTS...]
#
# SHARDPROP_FULL=1 runs every property at full counts.
set -euo pipefail
source "$(dirname "$0")/common.sh"

say "Packages"
scripts/install_packages.sh --yes

jobs=$(jobs_that_fit)
say "Building into $build with $jobs jobs"
# Removes the options by which scripts/quickstart.sh left parts out of this
# build.
configure_release -U SHARDPROP_REFERENCE -U SHARDPROP_CUDA -U SHARDPROP_MPI
cmake --build "$build" --parallel "$jobs"

say "Tests"
ctest --test-dir "$build" --output-on-failure --no-tests=error \
  --timeout 900 --parallel "$jobs" "$@"
