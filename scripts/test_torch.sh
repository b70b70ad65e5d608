#!/usr/bin/env bash
# Runs the tests that compare with PyTorch (tests/torch), on the build of
# scripts/test.sh.
#
#   scripts/test_torch.sh [TEST FILES...]
#
# Python is $SHARDPROP_PYTHON if set, with any release of torch that the package
# supports. Otherwise the script creates a virtual environment with torch 2.13
# outside the tree once, in $SHARDPROP_VENV (default: a folder in TMPDIR).
# SHARDPROP_SLICE=K/M proves the rules only on every M-th operator call, from
# the K-th, on one M-th of the sampled calls, and on every M-th of PyTorch's
# samples. Without pip or network the tests are skipped with a message; with
# SHARDPROP_TORCH=required the script fails instead.
set -euo pipefail
source "$(dirname "$0")/common.sh"

skip() {
  echo "SKIPPED: the torch-backed tests: $*"
  if [[ ${SHARDPROP_TORCH:-} == required ]]; then exit 1; fi
  exit 0
}

has_torch() {
  "$1" -c 'import re, sys
import numpy, torch, transformers
assert re.match(sys.argv[1], torch.__version__), torch.__version__' "$2" 2> /dev/null
}

python=${SHARDPROP_PYTHON:-}
if [[ -z $python ]]; then
  venv=${SHARDPROP_VENV:-${TMPDIR:-/tmp}/shardprop-venv-$UID}
  python=$venv/bin/python
  if ! has_torch "$python" '2\.13\.'; then
    say "Installing torch 2.13 into $venv"
    command -v python3 > /dev/null || skip "there is no python3"
    # Debian's python3 may lack ensurepip, which comes with python3-venv.
    if ! python3 -m venv --clear "$venv" > "$venv.log" 2>&1; then
      if command -v apt-get > /dev/null && ((EUID == 0)); then
        DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
          --no-install-recommends python3-venv >> "$venv.log" 2>&1 || true
      fi
      python3 -m venv --clear "$venv" >> "$venv.log" 2>&1 ||
        skip "python3 makes no virtual environment ($venv.log)"
    fi
    "$python" -m pip install -q torch==2.13.0 numpy transformers expecttest \
      2>&1 | tee -a "$venv.log" ||
      skip "pip installs no torch, is there a network? ($venv.log)"
  fi
fi
has_torch "$python" '2\.1[234]\.' ||
  skip "$python has no torch 2.12 to 2.14 with transformers"

export SHARDPROP_ORACLE=$PWD/$build/tests/oracle/shardprop_oracle
export SHARDPROP_BIN=$PWD/$build/tools/shardprop
export SHARDPROP_OP_METAS=$PWD/$build/tests/oracle/op_metas
export SHARDPROP_OP_VALUES=$PWD/$build/tests/oracle/op_values
export SHARDPROP_PRICES=$PWD/$build/tests/oracle/redistribute_prices
export PYTHONDONTWRITEBYTECODE=1
# A process that aborts prints the stack of its threads.
export PYTHONFAULTHANDLER=1

# Builds the Python package for this Python in the same build folder. Its tests
# are skipped if Python has no headers.
build_package() {
  "$python" -c 'import nanobind' 2> /dev/null ||
    "$python" -m pip install -q nanobind || return 1
  cmake -S . -B "$build" -D SHARDPROP_PYTHON=ON \
    -D Python_EXECUTABLE="$(command -v "$python")" > "$build.python.log" 2>&1
}
say "Building the Python package"
if build_package; then
  cmake --build "$build" --parallel "$(jobs_that_fit)" --target shardprop_python_package
  export SHARDPROP_PACKAGE=$PWD/$build/python/package
else
  cmake -S . -B "$build" -D SHARDPROP_PYTHON=OFF > /dev/null
  if [[ ${SHARDPROP_TORCH:-} == required ]]; then
    cat "$build.python.log" >&2
    exit 1
  fi
  echo "SKIPPED: the Python package: no nanobind or no headers of Python" \
    "($build.python.log)"
fi

if [[ ${SHARDPROP_FULL:-} == 1 ]]; then
  export SHARDPROP_CASES=${SHARDPROP_CASES:-40000}
fi

if (($# == 0)); then
  set -- tests/torch/test_*.py tests/torch/prove_*.py \
    kernels/tests/torch/test_against_torch.py
fi
processes=$(($(nproc) > 1 ? 2 : 1))
failed=()
times=()
for file in "$@"; do
  say "$file"
  began=$SECONDS
  arguments=()
  if [[ $file == */prove_rules.py ]]; then
    arguments=(--slice "${SHARDPROP_SLICE:-1/1}" -j "$processes")
  elif [[ $file == */prove_drawn.py ]]; then
    arguments=(--slice "${SHARDPROP_SLICE:-1/1}" -j "$processes")
    # Operators that are not yet called proven run only at full counts.
    if [[ ${SHARDPROP_FULL:-} == 1 ]]; then
      arguments+=(--calls 200 --sample 40)
    else
      arguments+=(--proven --calls 12)
    fi
  elif [[ $file == */prove_samples.py ]]; then
    arguments=(--slice "${SHARDPROP_SLICE:-1/1}" -j "$processes")
    # Views and sums have thousands of calls, so only some run below full
    # counts.
    if [[ ${SHARDPROP_FULL:-} != 1 ]]; then arguments+=(--most 12); fi
  elif [[ $file == */test_reference.py ]]; then
    # This program is built only if Eigen is found.
    if [[ ! -x $SHARDPROP_OP_VALUES ]]; then
      say "SKIPPED: there is no $SHARDPROP_OP_VALUES"
      continue
    fi
    arguments=(--slice "${SHARDPROP_SLICE:-1/1}")
    if [[ ${SHARDPROP_FULL:-} == 1 ]]; then arguments+=(--calls 60); fi
  elif [[ $file == */test_against_torch.py ]]; then
    cases=1000
    if [[ ${SHARDPROP_FULL:-} == 1 ]]; then cases=20000; fi
    arguments=(--count "$cases"
      --library "$build/kernels/libshardprop_kernels_c.so")
  fi
  "$python" -W ignore "$file" "${arguments[@]}" || failed+=("$file")
  # Factors in all orders of mesh dims and with strides: about 1.4 million
  # strategies, estimated from 136 operators.
  if [[ $file == */prove_drawn.py && ${SHARDPROP_FULL:-} == 1 ]]; then
    say "$file --shardings"
    "$python" -W ignore "$file" --shardings --calls 20 --sample 40 \
      --meshes 2 3 2,2 2,3 2,2,2 --slice "${SHARDPROP_SLICE:-1/1}" \
      -j "$processes" || failed+=("$file --shardings")
  fi
  times+=("$((SECONDS - began)) s  $file")
done

say "Torch-backed tests: $# files, ${#failed[@]} failed"
printf '%s\n' "${times[@]}" | sort -rn
if ((${#failed[@]} > 0)); then
  printf 'FAILED: %s\n' "${failed[@]}"
  exit 1
fi
