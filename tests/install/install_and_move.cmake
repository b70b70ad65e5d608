# Installs the build, then moves the prefix: nothing in it may hold its path.
file(REMOVE_RECURSE ${PREFIX} ${PREFIX}.first)
execute_process(
  COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX}.first
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${PREFIX}.first ${PREFIX})

file(GLOB_RECURSE texts ${PREFIX}/*.cmake ${PREFIX}/*.pc ${PREFIX}/*.h)
foreach(text IN LISTS texts)
  file(STRINGS ${text} held REGEX "${PREFIX}")
  if(held)
    message(FATAL_ERROR "${text} holds the path it was installed to")
  endif()
endforeach()
