# The code samples of the public headers compile.
find_package(Python3 COMPONENTS Interpreter)
if(NOT Python3_FOUND)
  return()
endif()
set(samples ${CMAKE_CURRENT_BINARY_DIR}/header_samples.cc)
file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/include/*.h ${PROJECT_SOURCE_DIR}/kernels/include/*.h)
add_custom_command(OUTPUT ${samples}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/headers/write_samples.py
          ${PROJECT_SOURCE_DIR} ${samples}
  DEPENDS headers/write_samples.py ${public_headers})
add_library(header_samples OBJECT ${samples})
get_property(modules GLOBAL PROPERTY SHARDPROP_MODULES)
list(TRANSFORM modules PREPEND shardprop::)
target_link_libraries(header_samples PRIVATE ${modules})
target_include_directories(header_samples PRIVATE
  ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include
  ${PROJECT_SOURCE_DIR}/kernels/include)
# Samples make what they do not use, and take what nobody defines.
target_compile_options(header_samples PRIVATE -O0 -g0 -w)
