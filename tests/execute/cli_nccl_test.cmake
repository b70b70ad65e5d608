# `redistribute --run nccl` runs on the GPUs of this machine or says what is
# missing. Run as cmake -D BIN=... -P.
cmake_minimum_required(VERSION 3.25)

function(run ranks)
  execute_process(
    COMMAND ${BIN} redistribute --mesh ${ranks} --shape 64,3 --dtype bf16
            S\(0\) S\(1\) --run nccl
    TIMEOUT 120 OUTPUT_VARIABLE said ERROR_VARIABLE wrong
    RESULT_VARIABLE status)
  set(said "${said}" PARENT_SCOPE)
  set(wrong "${wrong}" PARENT_SCOPE)
  set(status "${status}" PARENT_SCOPE)
endfunction()

# More GPUs than any machine has.
run(64)
if(NOT status EQUAL 2 OR NOT wrong MATCHES "error\\[SP0915\\]"
   OR NOT wrong MATCHES "this build has no CUDA|no NVIDIA driver|no CUDA device|has [0-9]+ GPU")
  message(FATAL_ERROR "64 ranks: status ${status}\n${said}${wrong}")
endif()

run(1)
if(status EQUAL 0)
  if(NOT said MATCHES "ran on nccl: every byte is right")
    message(FATAL_ERROR "one rank says\n${said}")
  endif()
elseif(NOT status EQUAL 2 OR NOT wrong MATCHES "error\\[SP0915\\]")
  message(FATAL_ERROR "one rank: status ${status}\n${said}${wrong}")
endif()
