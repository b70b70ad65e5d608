#!/bin/sh
# keep_report.sh DIRECTORY COMPILER ARGUMENTS...: compiles, and keeps the report of
# the compiler (-Xptxas=-v) in DIRECTORY/<object>.ptxas for the test that reads it.
# Errors are printed as usual.
directory=$1
shift
object=
previous=
for argument; do
  if [ "$previous" = -o ]; then object=$argument; fi
  previous=$argument
done
report=$directory/$(basename "$object" .o).ptxas
"$@" >"$report" 2>&1
status=$?
if [ $status -ne 0 ]; then
  cat "$report" >&2
  rm -f "$report"
else
  # Warnings are printed, but the report of ptxas is not.
  grep -v -e '^ptxas info' -e 'bytes stack frame' "$report" >&2
fi
exit $status
