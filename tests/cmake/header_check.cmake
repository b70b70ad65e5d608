# Every public header compiles alone: one generated source each, built with
# the tests.
set(sources)
set(headers)
foreach(folder include kernels/include)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS
    RELATIVE ${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_SOURCE_DIR}/${folder}/*.h)
  list(APPEND headers ${found})
endforeach()
foreach(header IN LISTS headers)
  string(REGEX REPLACE "[/.]" "_" name ${header})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/header_check/${name}.cc)
  # Twice: the second time it must be nothing.
  file(CONFIGURE OUTPUT ${source} @ONLY
    CONTENT "#include <@header@>\n#include <@header@>\n")
  list(APPEND sources ${source})
endforeach()

# Not part of every build: scripts/check_full.sh asks for it.
add_library(header_check OBJECT EXCLUDE_FROM_ALL ${sources})
get_property(modules GLOBAL PROPERTY SHARDPROP_MODULES)
list(TRANSFORM modules PREPEND shardprop::)
target_link_libraries(header_check PRIVATE ${modules})
target_include_directories(header_check PRIVATE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/kernels/include)
target_compile_options(header_check PRIVATE -O0 -g0)
shardprop_warnings(header_check)
