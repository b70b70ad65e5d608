# `redistribute --run mpi` under mpirun ends with the very bytes of `--run
# local`, rank by rank. Run as cmake -D BIN=... -D MPIEXEC=... -P.
cmake_minimum_required(VERSION 3.25)

set(cases
  "--mesh dp=2,tp=2 --shape 5,7 --dtype bf16 S(0),P(sum) R,S(1)"
  "--mesh 4 --shape 6,9 --dtype f8e4m3fn S(0) S(1)"
  "--mesh 2,2 --shape 3,5,2 --dtype c64 S(1)@1,S(1)@0 S(0),S(2)"
  "--mesh 4 --shape 13 --dtype i16 SS(0,2) R"
  "--mesh 2,2 --shape 8,3 --dtype f16 P(avg),P(sum) S(0),R"
  "--mesh 2,2 --shape 8,3 --dtype u8 P(bxor),R P(bxor),S(1)"
  "--mesh 2,2 --shape 4,4 --dtype bf16 P(sum,f32),P(sum,f32) R,S(0)"
  "--mesh 3 --shape 7,2 --dtype f64 P(avg) R"
  "--mesh 4 --shape 5 --dtype bool P(product) R"
  "--mesh 2 --dst-mesh 3 --dst-first-rank 1 --shape 8,3 --dtype i64 S(0) S(1)"
  "--mesh 2 --dst-mesh 2 --dst-first-rank 2 --shape 9 --dtype f32 P(max) S(0)")

function(digests result)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE said ERROR_VARIABLE wrong
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nends with ${status}:\n${said}${wrong}")
  endif()
  string(REGEX MATCHALL "rank +[0-9]+ +[0-9]+ bytes  [0-9a-f]+" lines "${said}")
  if(NOT lines OR NOT said MATCHES "every byte is right")
    message(FATAL_ERROR "${ARGN}\nsays nothing of its ranks:\n${said}")
  endif()
  set(${result} "${lines}" PARENT_SCOPE)
endfunction()

foreach(case IN LISTS cases)
  separate_arguments(arguments UNIX_COMMAND "${case}")
  digests(local ${BIN} redistribute ${arguments} --run local)
  digests(mpi ${MPIEXEC} ${BIN} redistribute ${arguments} --run mpi)
  if(NOT local STREQUAL mpi)
    message(FATAL_ERROR "${case}\nlocal: ${local}\nmpi: ${mpi}")
  endif()
endforeach()

# Too few processes for the mesh: said, not hung.
execute_process(
  COMMAND ${BIN} redistribute --mesh 4 --shape 8 S\(0\) R --run mpi
  ERROR_VARIABLE said RESULT_VARIABLE status)
if(NOT status EQUAL 2 OR NOT said MATCHES "mpirun -n 4")
  message(FATAL_ERROR "status ${status}, said ${said}")
endif()
