# Every public header compiles alone, in few units. A source that includes a
# header first compiles it with nothing before it, and so does a header that
# another such header includes first. The headers that no source reaches in this
# way get one generated source each. (Sources are compiled one by one, not in
# batches, in the `dev` preset and by scripts/check_full.sh.)
set(public_headers)
foreach(folder include kernels/include)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS
    RELATIVE ${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_SOURCE_DIR}/${folder}/*.h)
  foreach(header IN LISTS found)
    list(APPEND public_headers ${header})
    set(path_of_${header} ${PROJECT_SOURCE_DIR}/${folder}/${header})
  endforeach()
endforeach()

# first_include(FILE VARIABLE): the name in the first #include of a file.
function(first_include file variable)
  file(STRINGS ${file} line REGEX "^ *# *include" LIMIT_COUNT 1)
  string(REGEX REPLACE "^ *# *include *[<\"]([^>\"]*).*" "\\1" name "${line}")
  set(${variable} "${name}" PARENT_SCOPE)
endfunction()

# Only sources that are always compiled: CUDA, MPI and Python may be absent.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/src/*.cc ${PROJECT_SOURCE_DIR}/kernels/src/cpu/*.cc
  ${PROJECT_SOURCE_DIR}/kernels/src/plan/*.cc)
list(FILTER sources EXCLUDE REGEX "/src/(mpi|nccl|reference|verify)/")
set(unreached ${public_headers})
foreach(source IN LISTS sources)
  first_include(${source} header)
  while(header IN_LIST unreached)
    list(REMOVE_ITEM unreached ${header})
    first_include(${path_of_${header}} header)
  endwhile()
endforeach()

set(checks)
foreach(header IN LISTS unreached)
  string(MAKE_C_IDENTIFIER ${header} name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/header_check/${name}.cc)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "#include <@header@>\n")
  list(APPEND checks ${source})
endforeach()

# Not part of every build: scripts/check_full.sh asks for it.
add_library(header_check OBJECT EXCLUDE_FROM_ALL ${checks})
get_property(modules GLOBAL PROPERTY SHARDPROP_MODULES)
list(TRANSFORM modules PREPEND shardprop::)
target_link_libraries(header_check PRIVATE ${modules})
target_include_directories(header_check PRIVATE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/kernels/include)
target_compile_options(header_check PRIVATE -O0 -g0)
shardprop_warnings(header_check)

# A header that is included twice is nothing the second time.
foreach(header IN LISTS public_headers)
  file(STRINGS ${path_of_${header}} guards
    REGEX "^#(pragma once|ifndef SHARDPROP_.*H_?)$")
  if(NOT guards)
    message(SEND_ERROR "${path_of_${header}}: found no include guard")
  endif()
endforeach()
