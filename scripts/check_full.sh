#!/usr/bin/env bash
# Checks everything: formatting; a build of single sources, with each public
# header compiled alone; all tests and those against PyTorch at full counts; all
# tests at everyday counts under the sanitizers (fewer plans under the thread
# sanitizer); clang-tidy; fuzzing. The script continues after a failure and
# prints a summary with the time of each part. The logs are in build/full.
#
#   scripts/check_full.sh [PARTS...]
#
# SHARDPROP_FUZZ_MINUTES is the time for each fuzz target (10).
# SHARDPROP_PYTHONS lists Pythons with other releases of torch, separated by
# spaces. The part `releases` runs the tests that depend on the release on each.
# SHARDPROP_TORCHTITAN names a folder with torchtitan 0.3.0, as made by
# `pip install --target`. Its tests are skipped without it and without torch 2.14.
set -euo pipefail
source "$(dirname "$0")/common.sh"

logs=build/full
mkdir -p "$logs"
jobs=$(jobs_that_fit)

# These tests run several of our threads. Under MPI, ranks are processes, and
# the sanitizer reports Open MPI's own locks there.
threaded='^(base|kernels|collective|execute|propagate|solver|plan|redistribute)'
threaded+='|^(nccl|verify|c_api_c|c_api_cc|cli_run_nccl|interruption)$'
threaded+='|^tools_(same_answer|emit|odd_calls|reproducers)$'

with_preset() {
  local preset=$1
  shift
  configure_preset "$preset"
  cmake --build "build/$preset" --parallel "$jobs"
  ctest --test-dir "build/$preset" --output-on-failure --timeout 3600 \
    --parallel "$jobs" "$@"
}

run_packages() { scripts/install_packages.sh --yes --full; }
run_format() { scripts/format.sh --check; }
# The `dev` preset compiles sources one by one, which is how most public headers
# are compiled alone; header_check does so for the others.
run_headers() {
  configure_preset dev
  cmake --build build/dev --parallel "$jobs" --target all header_check
}
run_tests() { SHARDPROP_FULL=1 scripts/test.sh --timeout 7200; }
run_asan() { with_preset asan --no-tests=error; }
run_tsan() { with_preset tsan -R "$threaded" --timeout 5400; }
run_tidy() { scripts/tidy.sh; }
run_torch() { SHARDPROP_FULL=1 SHARDPROP_TORCH=required scripts/test_torch.sh; }
run_fuzz() { scripts/fuzz.sh; }

# Exporting, `parallelize` and the propagator depend on the release of torch.
# The package must refuse an unsupported release.
release_tests=(
  tests/torch/test_{parallelize,train_models,module_copies,weights}.py
  tests/torch/test_{checkpoints,count,parallel_errors,torch_inputs}.py
  tests/torch/test_{eager_dtensor,propagator_install,python_package}.py
  tests/torch/test_verify_{own_code,other_code,programs,mutants}.py
  tests/torch/test_verify_{variables,noise}.py
  tests/torch/test_verify_{torchtitan,torchtitan_llama}.py
)
run_releases() {
  local python failed=0
  if [[ -z ${SHARDPROP_PYTHONS:-} ]]; then
    echo "SKIPPED: SHARDPROP_PYTHONS lists no Python with another torch"
    return
  fi
  for python in $SHARDPROP_PYTHONS; do
    say "$python: torch $("$python" -c 'import torch; print(torch.__version__)')"
    if "$python" -c 'import sys, torch
sys.exit(torch.__version__[:5] in ("2.12.", "2.13.", "2.14."))'; then
      SHARDPROP_PACKAGE=$PWD/$build/python/package \
        "$python" tests/torch/unsupported_release.py || failed=1
    else
      SHARDPROP_PYTHON=$python SHARDPROP_TORCH=required scripts/test_torch.sh \
        "${release_tests[@]}" || failed=1
    fi
  done
  return "$failed"
}

# Runs one part in its own shell, which ends at the first failure.
if [[ ${1:-} == --part ]]; then
  "run_$2"
  exit
fi

all=(packages format headers tests torch releases asan tsan tidy fuzz)
parts=("${all[@]}")
if (($# > 0)); then parts=("$@"); fi
for part in "${parts[@]}"; do
  if ! declare -F "run_$part" > /dev/null; then
    echo "no part $part; there are: ${all[*]}" >&2
    exit 2
  fi
done

summary=()
failed=0
for part in "${parts[@]}"; do
  say "$part (log: $logs/$part.log)"
  began=$SECONDS
  verdict=passed
  if ! scripts/check_full.sh --part "$part" > "$logs/$part.log" 2>&1; then
    verdict=FAILED
    failed=1
    tail -40 "$logs/$part.log"
  fi
  summary+=("$(printf '%-10s %-8s %6d s' "$part" "$verdict" $((SECONDS - began)))")
done

say "Summary of $(git describe --always --dirty --abbrev=12)"
printf '%s\n' "${summary[@]}"
exit "$failed"
