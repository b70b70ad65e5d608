# Runs mpi_fault with each rank guilty once and checks what the others wrote.
cmake_minimum_required(VERSION 3.25)

# Ranks end without finalising, which would wait for the one that is gone; only
# Open MPI's mpirun can be told to let the others live.
execute_process(COMMAND ${MPIEXEC} --version OUTPUT_VARIABLE version
  ERROR_QUIET)
if(NOT version MATCHES "OpenRTE|Open MPI")
  message(STATUS "not Open MPI: nothing was checked")
  return()
endif()

set(expected "error\\[SP0911\\].*rank(s)? [0-9, ]*GUILTY[0-9, ]* did not come")
if(FAULT STREQUAL "throws")
  set(expected "error\\[SP0912\\].*rank GUILTY failed: no more paper")
elseif(FAULT STREQUAL "mismatch")
  set(expected "error\\[SP0913\\].*rank GUILTY calls all_")
endif()

list(GET MPIEXEC 0 launcher)
list(SUBLIST MPIEXEC 1 -1 count)
foreach(guilty RANGE 0 3)
  math(EXPR step "(${guilty} * 2 + 1) % 6")
  file(REMOVE_RECURSE ${WORK})
  file(MAKE_DIRECTORY ${WORK})
  execute_process(
    COMMAND ${launcher} --enable-recovery ${count} ${PROGRAM} ${FAULT} ${guilty}
            ${step} ${WORK}
    TIMEOUT 60 OUTPUT_QUIET ERROR_VARIABLE said)
  string(REPLACE "GUILTY" "${guilty}" pattern "${expected}")
  foreach(rank RANGE 0 3)
    if(rank EQUAL guilty)
      continue()
    endif()
    set(report "(none)")
    if(EXISTS ${WORK}/rank${rank})
      file(READ ${WORK}/rank${rank} report)
    endif()
    if(NOT report MATCHES "${pattern}" OR NOT report MATCHES "in time")
      message(FATAL_ERROR "rank ${rank}, with rank ${guilty} guilty of "
        "`${FAULT}` in step ${step}, reported\n${report}\nstderr: ${said}")
    endif()
  endforeach()
endforeach()
