# Helpers of the build: one function per kind of thing that the rooms declare.

add_library(gridclock_flags INTERFACE)
target_compile_options(gridclock_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Werror;-fstack-protector-strong>"
  # With -O3 g++ 12 takes members of temporaries for uninitialised that are not.
  "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-Werror,-fstack-protector-strong>")

include(cmake/Precompiled.cmake)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  if(GRIDCLOCK_QUICK_BUILD)
    # ccache looks into precompiled headers only if told that their time does not count.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  endif()
endif()
find_program(MOLD mold)
if(MOLD AND NOT GRIDCLOCK_FUZZ)
  add_link_options(-fuse-ld=mold)
endif()

# gridclock_library(NAME base HDRS a.h SRCS a.cc DEPS x y PRIVATE_DEPS z PARTS 2): target gridclock::NAME.
# Headers are checked to compile alone (CMAKE_VERIFY_INTERFACE_HEADER_SETS). PARTS: see gridclock_compile_together.
function(gridclock_library)
  cmake_parse_arguments(A "" "NAME;PARTS" "HDRS;SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  if(A_SRCS)
    add_library(gridclock_${A_NAME} STATIC ${A_SRCS})
    set(scope PUBLIC)
    target_link_libraries(gridclock_${A_NAME} PRIVATE gridclock_flags)
  else()
    add_library(gridclock_${A_NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(gridclock::${A_NAME} ALIAS gridclock_${A_NAME})
  if(A_HDRS)
    target_sources(gridclock_${A_NAME} ${scope} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}
                                                FILES ${A_HDRS})
  endif()
  target_include_directories(gridclock_${A_NAME} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(gridclock_${A_NAME} ${scope} ${A_DEPS})
  if(A_PRIVATE_DEPS)
    target_link_libraries(gridclock_${A_NAME} PRIVATE ${A_PRIVATE_DEPS})
  endif()
  if(A_PARTS)
    gridclock_compile_together(gridclock_${A_NAME} ${A_PARTS})
  endif()
endfunction()

# Labels of a test: the folders that it lies in, so tests/unit/core gives `unit` and `core`, and what
# the caller adds. `tests-LABEL` builds the test programs with that label.
function(gridclock_labels out)
  file(RELATIVE_PATH folders ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" ";" labels "${folders}")
  list(APPEND labels ${ARGN})
  list(REMOVE_DUPLICATES labels)
  set(${out} ${labels} PARENT_SCOPE)
endfunction()

function(gridclock_test_targets target)
  foreach(label IN LISTS ARGN)
    if(NOT TARGET tests-${label})
      add_custom_target(tests-${label})
    endif()
    add_dependencies(tests-${label} ${target})
  endforeach()
endfunction()

# gridclock_test(NAME SRCS... DEPS...): one GoogleTest program, one ctest entry with a time limit.
function(gridclock_test name)
  cmake_parse_arguments(A "" "TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  gridclock_labels(labels ${A_LABELS})
  add_executable(${name} ${A_SRCS})
  target_link_libraries(${name} PRIVATE ${A_DEPS} gridclock_flags GTest::gmock_main)
  gridclock_precompile_test(${name})
  add_test(NAME ${name} COMMAND ${name})
  # What the log says is looked for as people read it.
  set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT} LABELS "${labels}"
                       ENVIRONMENT "GRIDCLOCK_LOG_FORMAT=plain")
  gridclock_test_targets(${name} ${labels})
endfunction()

# gridclock_python_test(NAME SCRIPT ARGS...): a test in Python, run from the top of the repository.
# It finds the built programs through GRIDCLOCK_BIN.
function(gridclock_python_test name script)
  cmake_parse_arguments(A "SERIAL" "TIMEOUT" "ARGS;LABELS" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  gridclock_labels(labels ${A_LABELS})
  add_test(NAME ${name} COMMAND ${GRIDCLOCK_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${A_ARGS}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT} LABELS "${labels}"
                       ENVIRONMENT "GRIDCLOCK_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};PYTHONDONTWRITEBYTECODE=1"
                       RUN_SERIAL ${A_SERIAL})
endfunction()
