#!/usr/bin/env bash
# Runs clang-tidy over every source that the `dev` preset compiles. The status
# is 1 if clang-tidy reports anything.
#
#   scripts/tidy.sh [FILES...]
set -euo pipefail
source "$(dirname "$0")/common.sh"

build=build/dev
configure_preset dev
# Other sources include generated files, so these are built first.
ninja -C "$build" -t targets all |
  sed -n 's/^\(.*\.\(cc\|h\|inc\)\): CUSTOM_COMMAND$/\1/p' |
  xargs -r ninja -C "$build" > /dev/null
if (($# == 0)); then
  # Only files that this build compiles are checked. Without CUDA, files that
  # need its headers are left out.
  mapfile -t files < <(
    git ls-files 'src/*.cc' 'tools/*.cc' 'kernels/src/*.cc' |
      while read -r file; do
        if grep -qF "\"file\": \"$PWD/$file\"" "$build/compile_commands.json"; then
          echo "$file"
        fi
      done
  )
  set -- "${files[@]}"
fi
printf '%s\0' "$@" |
  xargs -0 -n 1 -P "$(jobs_that_fit)" \
    "${CLANG_TIDY:-clang-tidy-19}" --quiet -p "$build" \
    --extra-arg-before=-Wno-unknown-warning-option 2> /dev/null
echo "clang-tidy: $# files, nothing to say"
