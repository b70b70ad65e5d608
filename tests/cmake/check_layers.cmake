# What sharding an operator means is said in two halves that know nothing of each
# other: `strategy` names no operator, `ops` no placement. Comments may. Run as
# cmake -D ROOT=... -P.
cmake_minimum_required(VERSION 3.25)

# Calls check(NAME CODE) for each source of the folders, comments left out.
function(for_each_source check)
  foreach(folder IN LISTS ARGN)
    file(GLOB_RECURSE files ${ROOT}/${folder}/*.cc ${ROOT}/${folder}/*.h)
    if(NOT files)
      message(FATAL_ERROR "${folder} has no sources")
    endif()
    foreach(file IN LISTS files)
      file(RELATIVE_PATH name ${ROOT} ${file})
      file(READ ${file} code)
      string(REGEX REPLACE "//[^\n]*" "" code "${code}")
      cmake_language(CALL ${check} ${name} "${code}")
    endforeach()
  endforeach()
endfunction()

# "aten.mm.default", "aten.mm" and "mm" in quotes name an operator.
file(STRINGS ${ROOT}/src/ops/aten_schemas.txt operators REGEX "^[a-z_]+::")
list(TRANSFORM operators REPLACE "^[a-z_]+::([A-Za-z0-9_]+).*" "\\1")
list(REMOVE_DUPLICATES operators)
list(LENGTH operators count)
if(count LESS 1000)
  message(FATAL_ERROR "only ${count} operators were read")
endif()

function(names_no_operator name code)
  string(REGEX MATCHALL "\"[^\"\n;]*\"" literals "${code}")
  foreach(literal IN LISTS literals)
    string(REPLACE "\"" "" word "${literal}")
    if(word MATCHES "(aten|prims)(\\.|::)" OR word IN_LIST operators)
      message(SEND_ERROR "${name} names an operator: ${literal}")
    endif()
  endforeach()
endfunction()

# placement.h is included for the reduce ops, which it names as well.
set(placements "Placement|Layout|TensorSpec|Shard|StridedShard|Replicate|Partial")

function(names_no_placement name code)
  if(code MATCHES "\"(S\\(|SS\\(|P\\(|R[,\"])[^\"]*"
     OR code MATCHES "placement/(tensor_spec|layout|local_region|partials)\\.h")
    message(SEND_ERROR "${name} names a placement: ${CMAKE_MATCH_0}")
  endif()
  string(REGEX REPLACE "\"[^\"\n]*\"" "" code "${code}")
  if(code MATCHES "[^A-Za-z0-9_](${placements})([^A-Za-z0-9_]|$)")
    message(SEND_ERROR "${name} names a placement: ${CMAKE_MATCH_1}")
  endif()
endfunction()

for_each_source(names_no_operator src/strategy include/shardprop/strategy)
for_each_source(names_no_placement src/ops include/shardprop/ops)
