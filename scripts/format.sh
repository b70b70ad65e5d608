#!/usr/bin/env bash
# Formats every C++ and CUDA file. With --check it lists the unformatted ones.
set -euo pipefail
source "$(dirname "$0")/common.sh"

action=(-i)
if [[ ${1:-} == --check ]]; then action=(--dry-run --Werror); fi
git ls-files -z '*.cc' '*.h' '*.cu' '*.cuh' |
  xargs -0 "${CLANG_FORMAT:-clang-format-19}" "${action[@]}"
