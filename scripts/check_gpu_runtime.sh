#!/usr/bin/env bash
# check_gpu_runtime.sh [BUILD] runs all checks of the collectives and the
# executor that need a GPU. It needs the CUDA Toolkit, NCCL 2.19 or later, an
# MPI and one GPU, which the ranks share. The output is also written to
# BUILD/gpu_runtime.log. kernels/check_gpu.sh checks the kernels.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$here/build/gpu}
mkdir -p "$build"

status=0
run() {
  echo "--- $*"
  "$@" || { status=1; echo "FAILED ($?): $*"; }
}

main() {
  cmake -S "$here" -B "$build" -D CMAKE_BUILD_TYPE=Release -D SHARDPROP_CUDA=ON \
    -D SHARDPROP_MPI=ON -D SHARDPROP_PYTHON=OFF
  cmake --build "$build" -j "$(nproc)" \
    --target test_nccl test_execute_mpi mpi_kill shardprop_kernels_cuda_tests
  # By default Open MPI refuses root, and more processes than cores.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
  # Streams, blocks and devices (gpu_test.cc); adjoints and redistributions of
  # threads that share the GPU.
  run "$build/tests/nccl/test_nccl"
  # These launches find an error of an earlier call.
  run "$(find "$build" -name shardprop_kernels_cuda_tests -type f | head -1)"
  # NCCL between processes: redistributions, order on the stream, memory dropped
  # while a peer is late, NaN.
  run timeout 600 mpiexec -n 4 "$build/tests/execute/test_execute_mpi" --nccl
  # Killed processes: survivors report in time, and their buffers are freed.
  run ctest --test-dir "$build" --output-on-failure -R '^nccl_kill$'
  if command -v compute-sanitizer >/dev/null; then
    run compute-sanitizer --tool memcheck --error-exitcode 1 \
      "$build/tests/nccl/test_nccl" -tc='on a GPU*'
  else
    echo "skipped: no compute-sanitizer"
  fi
  echo "exit $status"
}

main 2>&1 | tee "$build/gpu_runtime.log"
tail -1 "$build/gpu_runtime.log" | grep -q '^exit 0$'
