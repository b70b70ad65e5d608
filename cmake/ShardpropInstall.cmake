# Installs libraries, headers, export set and pkg-config file of every package
# component. The file is included last, when all modules are known. It reads
# everything from the targets, so a new module needs no line here. Only a new
# third-party library needs a row in shardprop_third_party().
#
#   find_package(shardprop)                   the planning component
#   find_package(shardprop COMPONENTS io)     io and what it builds on
#   pkg-config --cflags --libs shardprop-io

include(CMakePackageConfigHelpers)

set(shardprop_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardprop)
set(shardprop_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(shardprop_stage ${PROJECT_BINARY_DIR}/package)
set(shardprop_components planning io runtime verify mpi nccl c)

# Records how a consumer finds a third-party target: the line of the CMake
# package, and the entry of the pkg-config file (a required package, or plain
# flags).
function(shardprop_third_party target cmake_line pc_requires pc_libs)
  set(requires "")
  set(libs "")
  if(target STREQUAL "tl::expected")
    set(line "find_dependency(tl-expected)")
  elseif(target MATCHES "^fmt::")
    set(line "find_dependency(fmt)")
    set(requires fmt)
  elseif(target STREQUAL "nlohmann_json::nlohmann_json")
    set(line "find_dependency(nlohmann_json)")
    set(requires nlohmann_json)
  elseif(target STREQUAL "ZLIB::ZLIB")
    set(line "find_dependency(ZLIB)")
    set(requires zlib)
  elseif(target STREQUAL "Threads::Threads")
    set(line "find_dependency(Threads)")
    set(libs -pthread)
  elseif(target MATCHES "^PkgConfig::(.+)$")
    # The CMake files of libzip are broken in Debian 12; its pkg-config file
    # works.
    set(package ${CMAKE_MATCH_1})
    set(line "find_dependency(PkgConfig)\npkg_check_modules(${package} \
REQUIRED IMPORTED_TARGET GLOBAL ${package})")
    set(requires ${package})
  elseif(target MATCHES "^Boost::")
    set(line "find_dependency(Boost)")
  elseif(target MATCHES "^Eigen3::")
    set(line "find_dependency(Eigen3)")
    set(requires eigen3)
  elseif(target STREQUAL "MPI::MPI_CXX")
    set(line "find_dependency(MPI COMPONENTS CXX)")
    set(requires ompi-cxx)
  elseif(target STREQUAL "CUDA::cudart" OR target STREQUAL "CUDA::cudart_static")
    set(line "find_dependency(CUDAToolkit)")
    set(libs "-lcudart")
  elseif(target MATCHES "^(dl|CMAKE_DL_LIBS|-l.+)$")
    set(line "")
    string(REGEX REPLACE "^([^-].*)$" "-l\\1" libs ${target})
  else()
    message(FATAL_ERROR
      "no row in shardprop_third_party() says how to find ${target}")
  endif()
  set(${cmake_line} ${line} PARENT_SCOPE)
  set(${pc_requires} ${requires} PARENT_SCOPE)
  set(${pc_libs} ${libs} PARENT_SCOPE)
endfunction()

# Lists the link dependencies of `targets`: our other modules, and third-party
# targets that a consumer has to find. Build-only dependencies (see
# shardprop_module) are left out.
function(shardprop_links targets ours third_party)
  set(modules "")
  set(others "")
  foreach(target IN LISTS targets)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    foreach(library IN LISTS libraries)
      if(NOT library OR library MATCHES "BUILD_INTERFACE")
        continue()
      elseif(library MATCHES "^shardprop(::|_)(.+)$")
        list(APPEND modules shardprop_${CMAKE_MATCH_2})
      else()
        list(APPEND others ${library})
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES modules)
  list(REMOVE_DUPLICATES others)
  set(${ours} ${modules} PARENT_SCOPE)
  set(${third_party} ${others} PARENT_SCOPE)
endfunction()

foreach(component IN LISTS shardprop_components)
  get_property(targets GLOBAL PROPERTY SHARDPROP_COMPONENT_${component})
  if(NOT targets)
    continue()
  endif()

  set(umbrella "")
  if(NOT shardprop_${component} IN_LIST targets)
    set(umbrella shardprop_${component})
  endif()
  install(TARGETS ${targets} ${umbrella} EXPORT shardprop-${component}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component})
  install(EXPORT shardprop-${component}
    FILE shardprop-${component}-targets.cmake
    NAMESPACE shardprop::
    DESTINATION ${shardprop_cmake_dir} COMPONENT ${component})
  if(component STREQUAL "c")
    install(FILES ${PROJECT_SOURCE_DIR}/include/shardprop.h
      DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT c)
  endif()
  foreach(target IN LISTS targets)
    string(REGEX REPLACE "^shardprop_" "" module ${target})
    foreach(include include kernels/include)
      set(headers ${PROJECT_SOURCE_DIR}/${include}/shardprop/${module})
      if(IS_DIRECTORY ${headers})
        install(DIRECTORY ${headers}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardprop
          COMPONENT ${component} FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
      endif()
    endforeach()
  endforeach()

  # These are the dependencies of the component.
  shardprop_links("${targets}" ours third_party)
  set(base_components "")
  set(pc_requires "")
  foreach(other IN LISTS shardprop_components)
    if(other STREQUAL component)
      continue()
    endif()
    get_property(other_targets GLOBAL PROPERTY SHARDPROP_COMPONENT_${other})
    foreach(target IN LISTS ours)
      if(target IN_LIST other_targets)
        list(APPEND base_components ${other})
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES base_components)
  foreach(other IN LISTS base_components)
    if(other STREQUAL "planning")
      list(APPEND pc_requires shardprop)
    else()
      list(APPEND pc_requires shardprop-${other})
    endif()
  endforeach()

  set(find_lines "")
  set(pc_third_libs "")
  foreach(target IN LISTS third_party)
    shardprop_third_party(${target} line requires libs)
    string(APPEND find_lines "${line}\n")
    list(APPEND pc_requires ${requires})
    list(APPEND pc_third_libs ${libs})
  endforeach()
  file(CONFIGURE OUTPUT ${shardprop_stage}/shardprop-${component}-needs.cmake
    CONTENT "set(shardprop_needs @base_components@)\n@find_lines@" @ONLY)
  install(FILES ${shardprop_stage}/shardprop-${component}-needs.cmake
    DESTINATION ${shardprop_cmake_dir} COMPONENT ${component})

  # Users of a static archive come before it on the link line.
  set(pc_libs "")
  foreach(target IN LISTS targets)
    get_target_property(file_name ${target} OUTPUT_NAME)
    if(NOT file_name)
      set(file_name ${target})
    endif()
    list(PREPEND pc_libs -l${file_name})
  endforeach()
  list(APPEND pc_libs ${pc_third_libs})
  list(JOIN pc_libs " " pc_libs)
  list(JOIN pc_requires ", " pc_requires)
  set(pc_name shardprop-${component})
  if(component STREQUAL "planning")
    set(pc_name shardprop)
  endif()
  file(RELATIVE_PATH pc_up
    ${CMAKE_INSTALL_PREFIX}/${shardprop_pc_dir} ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" pc_up ${pc_up})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/shardprop.pc.in
    ${shardprop_stage}/${pc_name}.pc @ONLY)
  install(FILES ${shardprop_stage}/${pc_name}.pc
    DESTINATION ${shardprop_pc_dir} COMPONENT ${component})
endforeach()

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/shardprop-config.cmake.in
  ${shardprop_stage}/shardprop-config.cmake
  INSTALL_DESTINATION ${shardprop_cmake_dir})
write_basic_package_version_file(${shardprop_stage}/shardprop-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${shardprop_stage}/shardprop-config.cmake
  ${shardprop_stage}/shardprop-config-version.cmake
  DESTINATION ${shardprop_cmake_dir} COMPONENT planning)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/shardprop COMPONENT planning)
