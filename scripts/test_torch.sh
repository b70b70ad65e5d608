#!/usr/bin/env bash
# Runs the tests that need PyTorch: scripts/test_torch.sh [BUILD_DIR]
# The Python is $SHARDPROP_PYTHON (python3 from PATH unless set); without torch
# and transformers in it nothing is run.
set -euo pipefail
build=$(realpath "${1:-build/release}")
cd "$(dirname "$0")/.."
python=${SHARDPROP_PYTHON:-python3}

if ! "$python" -c "import torch, transformers" 2>/dev/null; then
  echo "torch-backed tests skipped: $python has no torch and transformers" >&2
  exit 0
fi
SHARDPROP_ORACLE="$build/tests/oracle/shardprop_oracle" \
  "$python" -W ignore -m unittest discover -s tests/torch -v
