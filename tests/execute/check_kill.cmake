# Kills a process in the middle of redistributions and checks what the others
# wrote: 50 times with SHARDPROP_FULL=1, else 3 times, spread over all cases,
# steps and ranks. Run as cmake -D PROGRAM=... -D MPIEXEC=... -D WORK=... -P, with
# -D ENGINE=nccl on GPUs.
cmake_minimum_required(VERSION 3.25)

# Only Open MPI's mpirun can be told to let the others live.
execute_process(COMMAND ${MPIEXEC} --version OUTPUT_VARIABLE version
  ERROR_QUIET)
if(NOT version MATCHES "OpenRTE|Open MPI")
  message(STATUS "not Open MPI: nothing was checked")
  return()
endif()

execute_process(COMMAND ${PROGRAM} list OUTPUT_VARIABLE kills
  RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "`${PROGRAM} list` ends with ${status}")
endif()
string(REPLACE "\n" ";" kills "${kills}")
list(LENGTH kills there_are)

set(count 3)
if("$ENV{SHARDPROP_FULL}" STREQUAL "1")
  set(count 50)
endif()
math(EXPR last "${count} - 1")

foreach(k RANGE ${last})
  math(EXPR place "(${k} * ${there_are} / ${count} + ${k}) % ${there_are}")
  list(GET kills ${place} kill)
  separate_arguments(kill)
  list(GET kill 1 killed)
  file(REMOVE_RECURSE ${WORK})
  file(MAKE_DIRECTORY ${WORK})
  execute_process(
    COMMAND ${MPIEXEC} --enable-recovery -n 4 ${PROGRAM} ${kill} ${WORK} ${ENGINE}
    TIMEOUT 120 OUTPUT_QUIET ERROR_VARIABLE said)
  if(said MATCHES "skipped: ([^\n]*)")
    message(STATUS "${CMAKE_MATCH_1}: nothing was checked")
    return()
  endif()
  foreach(rank RANGE 0 3)
    set(report "(none)")
    if(EXISTS ${WORK}/rank${rank})
      file(READ ${WORK}/rank${rank} report)
    endif()
    if(rank EQUAL killed)
      if(NOT report STREQUAL "(none)")
        message(FATAL_ERROR "kill ${kill}: rank ${rank} outlived it\n${report}")
      endif()
      continue()
    endif()
    if(NOT report MATCHES "error\\[SP091[124]\\].*ranks? ([0-9]+, )*${killed}[^0-9]"
       OR NOT report MATCHES "in time")
      message(FATAL_ERROR "kill ${kill} (case, rank, step): rank ${rank} "
        "reported\n${report}\nstderr: ${said}")
    endif()
  endforeach()
endforeach()
message(STATUS "${count} kills, ${there_are} different ones there are: reported by all survivors")

# Without it mpirun ends the job itself. Whether a survivor is faster is chance.
execute_process(COMMAND ${MPIEXEC} -n 4 ${PROGRAM} 0 1 0 ${WORK} ${ENGINE}
  TIMEOUT 120 OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE status)
if(status EQUAL 0 OR NOT said MATCHES "signal 9")
  message(FATAL_ERROR "plain mpirun ends with ${status}, which "
    "docs/execution.md says otherwise\n${said}")
endif()
