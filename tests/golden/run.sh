#!/usr/bin/env bash
# Runs the commands of a golden file and compares what they print.
#
#   tests/golden/run.sh PROGRAM FILE
#
# Lines that start with `$ ` are commands (`shardprop` is PROGRAM), lines that
# start with `#` are comments, all others are what the command above prints,
# messages included; an exit status other than 0 ends it as `[exit 2]`.
# SHARDPROP_REWRITE=1 writes the file anew instead of comparing.
set -euo pipefail
program=$1
file=$2
shardprop() { "$program" "$@"; }

replay() {
  local line status
  while IFS= read -r line; do
    case $line in
      '#'*) printf '%s\n' "$line" ;;
      '$ '*)
        printf '%s\n' "$line"
        status=0
        (eval "${line#\$ }") 2>&1 < /dev/null || status=$?
        if ((status != 0)); then printf '[exit %d]\n' "$status"; fi
        ;;
    esac
  done < "$file"
}

if [[ ${SHARDPROP_REWRITE:-} == 1 ]]; then
  new=$(replay)
  printf '%s\n' "$new" > "$file"
else
  diff -u "$file" <(replay)
fi
