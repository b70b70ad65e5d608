# Every error code has a test that provokes it: its name (kMeshSize) or its
# printed form (SP0102) stands somewhere under tests/ or kernels/tests/, in a
# test source or a golden file. Run as cmake -D ROOT=... -P.
cmake_minimum_required(VERSION 3.25)

file(STRINGS ${ROOT}/include/shardprop/base/error_codes.inc rows
  REGEX "^ *SHARDPROP_ERROR_CODE\\(k")

set(said "")
file(GLOB_RECURSE files ${ROOT}/tests/*.cc ${ROOT}/tests/golden/*
  ${ROOT}/tests/*.tsv ${ROOT}/tests/*.txt ${ROOT}/tests/*.py)
foreach(file IN LISTS files)
  # Binary inputs are skipped by their first NUL; texts here are small.
  file(READ ${file} text LIMIT 400000)
  string(APPEND said "${text}\n")
endforeach()

set(untested "")
set(numbers "")
foreach(row IN LISTS rows)
  if(NOT row MATCHES "\\((k[A-Za-z0-9]+), *([0-9]+),")
    message(SEND_ERROR "unreadable row: ${row}")
    continue()
  endif()
  set(name ${CMAKE_MATCH_1})
  set(number ${CMAKE_MATCH_2})
  if(number IN_LIST numbers)
    message(SEND_ERROR "code ${number} appears twice")
  endif()
  list(APPEND numbers ${number})
  string(LENGTH ${number} digits)
  math(EXPR zeros "4 - ${digits}")
  string(REPEAT "0" ${zeros} padding)
  if(NOT said MATCHES "[^A-Za-z0-9]${name}[^A-Za-z0-9]"
     AND NOT said MATCHES "SP${padding}${number}[^0-9]")
    string(APPEND untested "\n  SP${padding}${number} ${name}")
  endif()
endforeach()
list(LENGTH numbers count)
if(untested)
  message(FATAL_ERROR "error codes that no test provokes:${untested}")
endif()
message(STATUS "${count} error codes, each named by a test")
