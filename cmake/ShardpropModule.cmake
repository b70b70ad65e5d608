# Defines a module: one static target, public headers under
# include/shardprop/<module>, sources under src/<module>. The link line lists
# the modules that it may include, so an upward include does not compile.

# shardprop_module(<name> COMPONENT <planning|io|runtime|verify|mpi|nccl>
#                  SOURCES <files...> [DEPENDS <modules...>]
#                  [PRIVATE_LINK <targets...>] [RUNS_ONCE])
# RUNS_ONCE: see shardprop_runs_once().
function(shardprop_module name)
  cmake_parse_arguments(ARG "RUNS_ONCE" "COMPONENT" "SOURCES;DEPENDS;PRIVATE_LINK" ${ARGN})
  set(target shardprop_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(shardprop::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM ARG_DEPENDS PREPEND shardprop::)
  target_link_libraries(${target} PUBLIC ${ARG_DEPENDS})
  foreach(library IN LISTS ARG_PRIVATE_LINK)
    # Headers that only our sources use are needed by our build, not by a
    # consumer.
    get_target_property(type ${library} TYPE)
    get_target_property(links ${library} INTERFACE_LINK_LIBRARIES)
    if(type STREQUAL "INTERFACE_LIBRARY" AND NOT links)
      set(library $<BUILD_INTERFACE:${library}>)
    endif()
    target_link_libraries(${target} PRIVATE ${library})
  endforeach()
  shardprop_warnings(${target})
  shardprop_batches(${target} 30)
  if(ARG_RUNS_ONCE)
    shardprop_runs_once(${target})
  endif()
  set_property(GLOBAL APPEND PROPERTY SHARDPROP_COMPONENT_${ARG_COMPONENT} ${target})
  set_property(GLOBAL APPEND PROPERTY SHARDPROP_MODULES ${name})
endfunction()

# Links all modules of a component under its name, such as shardprop::planning,
# unless a module has that name. Call it when the modules are known.
function(shardprop_component_targets)
  get_property(modules GLOBAL PROPERTY SHARDPROP_MODULES)
  foreach(component IN ITEMS planning io runtime verify mpi nccl)
    get_property(targets GLOBAL PROPERTY SHARDPROP_COMPONENT_${component})
    if(NOT targets OR component IN_LIST modules)
      continue()
    endif()
    list(TRANSFORM targets REPLACE "^shardprop_" "shardprop::" OUTPUT_VARIABLE names)
    add_library(shardprop_${component} INTERFACE)
    add_library(shardprop::${component} ALIAS shardprop_${component})
    set_target_properties(shardprop_${component} PROPERTIES EXPORT_NAME ${component})
    target_link_libraries(shardprop_${component} INTERFACE ${names})
  endforeach()
endfunction()

function(shardprop_warnings target)
  # Designated initialisers leave members at their defaults on purpose.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow
                                           -Wno-missing-field-initializers)
  # GCC 12 wrongly reports an overlap in every `"a" + std::string` (its bug
  # 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
     AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  if(SHARDPROP_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# Compiles the sources of `target` in batches of `size`, unless the build has
# batches switched off. Names in anonymous namespaces must then differ between
# the sources of a target. A source with flags of its own is not batched.
function(shardprop_batches target size)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${SHARDPROP_BATCHES} UNITY_BUILD_BATCH_SIZE ${size})
  # In a batch GCC warns of what it does not warn of in a single source: members
  # whose type is local to a file, names of two files, variants that it cannot
  # follow. The `dev` preset compiles single sources with these warnings.
  if(SHARDPROP_BATCHES AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage -Wno-shadow
      -Wno-maybe-uninitialized -Wno-mismatched-new-delete)
  endif()
endfunction()

# Compiles a target in two thirds of the time, at -O1 in Release. Its code reads,
# prints or prepares, and is in no loop of a search, a propagator or a kernel.
function(shardprop_runs_once target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Inlines the functions of a batch as those of single sources: GCC allows a large
# source less growth. For code that runs in each miss of a propagator, because it
# compiles half as long again.
function(shardprop_runs_often target)
  if(SHARDPROP_BATCHES AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE
      $<$<CONFIG:Release>:--param=large-unit-insns=1000000>)
  endif()
endfunction()

# The options of a target whose code only tests: batches, and -O1 in Release.
# The tested code is optimised, and enumerations in tests run often.
function(shardprop_test_options target)
  shardprop_warnings(${target})
  shardprop_batches(${target} 32)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# shardprop_test(<name> SOURCES <files...> LINK <modules...>)
# One doctest binary a module; it runs from the source tree's root so that
# golden files and example graphs are found by their repository path. CTest ends a
# binary that hangs.
# PARTS <part>=<source>,<source>...: the cases of these sources are the CTest entry
# <name>_<part>, and those of all other sources <name>.
function(shardprop_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK;PARTS" ${ARGN})
  set(target test_${name})
  add_executable(${target} ${ARG_SOURCES})
  list(TRANSFORM ARG_LINK PREPEND shardprop::)
  target_link_libraries(${target} PRIVATE ${ARG_LINK} ${ARG_PRIVATE_LINK} shardprop_test_main)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
  shardprop_test_options(${target})
  set(timeout 600)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    set(timeout 3600)
  endif()
  set(of_parts)
  set(entries ${name})
  foreach(part IN LISTS ARG_PARTS)
    string(REGEX MATCH "^([^=]+)=(.+)$" matched "${part}")
    set(part_name ${CMAKE_MATCH_1})
    string(REPLACE "," ";" sources "${CMAKE_MATCH_2}")
    foreach(source IN LISTS sources)
      # A filter that matches nothing would pass.
      if(NOT source IN_LIST ARG_SOURCES)
        message(FATAL_ERROR "${name}: ${source} is no source of the test")
      endif()
    endforeach()
    list(TRANSFORM sources PREPEND "*/")
    list(APPEND of_parts ${sources})
    list(JOIN sources "," filter)
    add_test(NAME ${name}_${part_name} COMMAND ${target} "--source-file=${filter}"
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    list(APPEND entries ${name}_${part_name})
  endforeach()
  set(others)
  if(of_parts)
    list(JOIN of_parts "," filter)
    set(others "--source-file-exclude=${filter}")
  endif()
  add_test(NAME ${name} COMMAND ${target} ${others} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${entries} PROPERTIES TIMEOUT ${timeout})
endfunction()

# Makes a shared library export only the symbols in `map`. Symbols of a C++
# library that is linked into it are hidden too, since they would mix with the
# process's own.
function(shardprop_show_only target map)
  if(UNIX AND NOT APPLE)
    target_link_options(${target} PRIVATE LINKER:--version-script=${map})
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})
  endif()
endfunction()
