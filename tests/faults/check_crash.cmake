# A crash ends a test at once, and names the test case.
execute_process(COMMAND ${PROGRAM} TIMEOUT 20
  OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE status)
if(NOT said MATCHES "crash: SIGABRT in test case \"a crash inside of malloc\"")
  message(FATAL_ERROR "The crash is not named: ${said} (${status})")
endif()
if(status MATCHES "timeout|^0$")
  message(FATAL_ERROR "The crash did not end the test: ${status}")
endif()
