# Builds and runs one consumer of the package; -D CASE says which.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})

set(settings -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${CXX}
  -D "CMAKE_CXX_FLAGS=${FLAGS}" -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
  -D CMAKE_BUILD_TYPE=Debug)

function(build source)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${source} -B ${WORK}/build ${settings} ${ARGN}
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Runs a program and compares what it prints.
function(expect_output expected)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE printed
    COMMAND_ERROR_IS_FATAL ANY)
  if(NOT printed STREQUAL expected)
    message(FATAL_ERROR "printed\n${printed}instead of\n${expected}")
  endif()
endfunction()

function(expect_shards program)
  expect_output("f32[5,8] S(0),S(1) on dp=2,tp=2, at most 48 bytes a rank
rank 0: [0:3) [0:4)
rank 1: [0:3) [4:8)
rank 2: [3:5) [0:4)
rank 3: [3:5) [4:8)
" ${program} dp=2,tp=2 "f32[5,8] S(0),S(1)")
  execute_process(COMMAND ${program} dp=0 "f32[5] R"
    RESULT_VARIABLE status ERROR_VARIABLE said)
  if(NOT status EQUAL 2 OR NOT said MATCHES "^error\\[SP0102\\]: ")
    message(FATAL_ERROR "status ${status}, said ${said}")
  endif()
endfunction()

# Configures a project that only finds the package; `result` gets its output.
function(find result)
  file(WRITE ${WORK}/find/CMakeLists.txt
"cmake_minimum_required(VERSION 3.25)
project(find LANGUAGES CXX)
find_package(shardprop ${ARGN})
get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
message(STATUS \"found=\${shardprop_FOUND} io=\${shardprop_io_FOUND}\")
message(STATUS \"targets=\${targets};\")
")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${WORK}/find -B ${WORK}/find/build --fresh
            -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${PREFIX}
    OUTPUT_VARIABLE said ERROR_VARIABLE wrong)
  set(${result} "${said}${wrong}" PARENT_SCOPE)
endfunction()

function(expect text pattern)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "no `${pattern}` in\n${text}")
  endif()
endfunction()

if(CASE STREQUAL "find_package")
  build(${SOURCE}/examples/consumer_find_package
    -D CMAKE_PREFIX_PATH=${PREFIX})
  expect_shards(${WORK}/build/shards)
  execute_process(COMMAND ${WORK}/build/plan_mlp dp=2,tp=4
    OUTPUT_VARIABLE plan COMMAND_ERROR_IS_FATAL ANY)
  # Costs are the planner's own business, that there is a plan is ours.
  expect("${plan}" "x +[RS].*\nup +[RS].*\ndown +[RS].*relu.*[0-9]+\\.[0-9] us, ")
elseif(CASE STREQUAL "runtime")
  build(${SOURCE}/examples/consumer_runtime -D CMAKE_PREFIX_PATH=${PREFIX})
  expect_output("i32[3,2]: 0 1 10 11 20 21
i32[3,2]: 2 3 12 13 22 23
i32[3,1]: 4 14 24
i32[3,0]:
" ${WORK}/build/reshard 3,5)
elseif(CASE STREQUAL "c")
  # A project without C++, by find_package and by pkg-config.
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${SOURCE}/examples/consumer_c -B ${WORK}/build
            -G ${GENERATOR} -D CMAKE_C_COMPILER=${CC}
            "-D CMAKE_C_FLAGS=${FLAGS}" -D CMAKE_PREFIX_PATH=${PREFIX}
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  set(ENV{PKG_CONFIG_PATH} ${PREFIX}/${LIBDIR}/pkgconfig)
  find_program(pkg_config pkg-config REQUIRED)
  execute_process(COMMAND ${pkg_config} --cflags --libs shardprop-c
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  separate_arguments(outer UNIX_COMMAND "${FLAGS}")
  execute_process(
    COMMAND ${CC} -std=c11 ${outer} ${SOURCE}/examples/consumer_c/plan_graph.c
            -o ${WORK}/plan_graph ${flags} -Wl,-rpath,${PREFIX}/${LIBDIR}
    COMMAND_ERROR_IS_FATAL ANY)
  foreach(program ${WORK}/build/plan_graph ${WORK}/plan_graph)
    execute_process(
      COMMAND ${program} ${SOURCE}/examples/graphs/tiny/vit_infer.json.gz 2,2
      OUTPUT_VARIABLE plan COMMAND_ERROR_IS_FATAL ANY)
    expect("${plan}" "vit_infer: (optimal|feasible)\n")
  endforeach()
elseif(CASE STREQUAL "add_subdirectory")
  build(${SOURCE}/examples/consumer_add_subdirectory)
  expect_output("0 1 2 3\n4 5 6 7\n" ${WORK}/build/groups dp=2,tp=4 tp)
  # As a part of something else it brings no tests and no install of its own.
  file(STRINGS ${WORK}/build/CMakeCache.txt options REGEX "^SHARDPROP_TESTS:")
  expect("${options}" "=OFF$")
elseif(CASE STREQUAL "pkg_config")
  find_program(pkg_config pkg-config REQUIRED)
  set(ENV{PKG_CONFIG_PATH} ${PREFIX}/${LIBDIR}/pkgconfig)
  execute_process(COMMAND ${pkg_config} --exists --print-errors shardprop-io
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${pkg_config} --cflags --libs shardprop
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  separate_arguments(outer UNIX_COMMAND "${FLAGS}")
  execute_process(
    COMMAND ${CXX} -std=c++20 ${outer}
            ${SOURCE}/examples/consumer_find_package/shards.cc
            -o ${WORK}/shards ${flags}
    COMMAND_ERROR_IS_FATAL ANY)
  expect_shards(${WORK}/shards)
elseif(CASE STREQUAL "components")
  find(plain REQUIRED)
  expect("${plain}" "found=(1|TRUE)")
  expect("${plain}" "shardprop::planning;")
  expect("${plain}" "shardprop::placement;")
  if(plain MATCHES "shardprop::io;")
    message(FATAL_ERROR "the planning component brings io along:\n${plain}")
  endif()
  find(files REQUIRED COMPONENTS io)
  expect("${files}" "found=(1|TRUE) io=(1|TRUE)")
  expect("${files}" "shardprop::planning;.*shardprop::io;")
  find(runtime REQUIRED COMPONENTS runtime)
  expect("${runtime}" "shardprop::execute;")
  expect("${runtime}" "shardprop::kernels;")
  if(runtime MATCHES "shardprop::(io|mpi);")
    message(FATAL_ERROR "the runtime brings more than it needs:\n${runtime}")
  endif()
  find(version 9.0 REQUIRED)
  expect("${version}" "considered but\n? *not accepted|version: 0\\.")
  find(missing REQUIRED COMPONENTS telepathy)
  expect("${missing}" "no component `telepathy`")
  find(optional OPTIONAL_COMPONENTS telepathy)
  expect("${optional}" "found=(1|TRUE)")
else()
  message(FATAL_ERROR "no test ${CASE}")
endif()
