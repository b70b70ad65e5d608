#!/bin/sh
# check_gpu.sh [BUILD]: runs all steps that need a GPU: builds, tests, compares with
# torch, measures, and tests under compute-sanitizer if it is installed. The output is
# also written to BUILD/gpu.log, and the table to BUILD/kernels_cuda.md. The script needs
# the CUDA Toolkit and CMake. The comparison needs a Python with torch: $SHARDPROP_PYTHON
# or python3.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/build-gpu}
python=${SHARDPROP_PYTHON:-python3}
mkdir -p "$build"

main() {
  cmake -S "$here" -B "$build" -DCMAKE_BUILD_TYPE=Release -DSHARDPROP_CUDA=ON
  cmake --build "$build" -j "$(nproc)"
  ctest --test-dir "$build" --output-on-failure -j "$(nproc)" || status=1
  "$python" "$here/tests/torch/test_against_torch.py" --device cuda \
    --library "$build/libshardprop_kernels_c.so" --count 20000 || status=1
  "$python" "$here/bench/cuda_bench.py" --build "$build" >"$build/kernels_cuda.md" ||
    status=1
  cat "$build/kernels_cuda.md"
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck initcheck; do
      echo "compute-sanitizer $tool"
      # Random cases only; the large ones take too long under it.
      compute-sanitizer --tool $tool --error-exitcode 1 \
        "$build/tests/shardprop_kernels_cuda_tests" random || status=1
    done
  else
    echo "skipped: no compute-sanitizer"
  fi
  echo "exit $status"
}

status=0
main 2>&1 | tee "$build/gpu.log"
tail -1 "$build/gpu.log" | grep -q '^exit 0$'
