#!/usr/bin/env bash
# Runs every fuzz target (tests/fuzz) for SHARDPROP_FUZZ_MINUTES (10) each.
#
#   scripts/fuzz.sh [TARGETS...]
#
# Corpora are in build/fuzz/corpus. A finding is a file build/fuzz/crash-*. Once
# it is fixed, it becomes a test under tests/fuzz/<target>.
set -euo pipefail
source "$(dirname "$0")/common.sh"

minutes=${SHARDPROP_FUZZ_MINUTES:-10}
configure_preset fuzz
cmake --build build/fuzz --target fuzz_targets --parallel "$(jobs_that_fit)"
if (($# == 0)); then
  mapfile -t targets < <(cd tests/fuzz && ls fuzz_*.cc | sed 's/\.cc$//')
  set -- "${targets[@]}"
fi
for target in "$@"; do
  say "$target for $minutes minutes"
  name=${target#fuzz_}
  corpus=build/fuzz/corpus/$target
  mkdir -p "$corpus"
  inputs=("$corpus" "tests/fuzz/$name")
  if [[ -f tests/fuzz/$name.dict ]]; then
    inputs+=("-dict=tests/fuzz/$name.dict")
  fi
  build/fuzz/tests/fuzz/"$target" -max_total_time=$((minutes * 60)) \
    -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix=build/fuzz/ "${inputs[@]}"
done
