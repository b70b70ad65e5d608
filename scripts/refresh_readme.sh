#!/usr/bin/env bash
# Writes the present output of the command line into README.md, between the
# lines <!-- begin NAME --> and <!-- end -->. With --check it changes no file
# and reports whether README.md is up to date.
set -euo pipefail
source "$(dirname "$0")/common.sh"

shardprop=${SHARDPROP_BIN:-$build/tools/shardprop}
llama=examples/graphs/llama3_8b_train.json.gz
tiny=examples/graphs/tiny/llama3_train.json.gz

# Prints the first lines of a long output. Rows of more than 100 columns are
# wrapped before the column that does not fit, and indented.
excerpt() {
  awk -v most="$1" -v width=100 '
    function put(row,  at, i) {
      while (length(row) > width) {
        at = 0
        for (i = match(row, /[^ ]/); i <= width; ++i)
          if (substr(row, i, 2) == "  " && substr(row, i - 1, 1) != " ") at = i
        if (at == 0) break
        print substr(row, 1, at - 1)
        row = substr(row, at)
        sub(/^ +/, "      ", row)
      }
      print row
    }
    NR <= most { put($0) }
    NR == most + 1 { print "..." }'
}

print_block() {
  case $1 in
    explain) "$shardprop" explain "$llama" --mesh dp=8,tp=8 --optimizer adamw \
      --compare | excerpt 60 ;;
    error) "$shardprop" explain "$tiny" --mesh dp=2,tp=2 \
      --pin 'lm_head.weight=S(2),R' 2>&1 || true ;;
    fixed) "$shardprop" explain "$tiny" --mesh dp=2,tp=2 \
      --pin 'lm_head.weight=S(0),R' | excerpt 9 ;;
    *)
      echo "README.md: no block $1" >&2
      return 1
      ;;
  esac
}

fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
inside=false
while IFS= read -r line; do
  if [[ $line == "<!-- end -->" ]]; then inside=false; fi
  if ! $inside; then printf '%s\n' "$line"; fi
  if [[ $line =~ ^"<!-- begin "([a-z]+)" -->"$ ]]; then
    inside=true
    printf '```text\n'
    print_block "${BASH_REMATCH[1]}"
    printf '```\n'
  fi
done < README.md > "$fresh"

if [[ ${1:-} == --check ]]; then
  diff -u README.md "$fresh" && echo "README.md is up to date"
else
  cat "$fresh" > README.md
fi
