# A room's sources are compiled a few at a time, so that what they include is parsed, and instantiated, once; tests share
# GoogleTest precompiled, kernels of one CPU level what they all include. Only a matter of build time: every header still
# compiles alone, and every source without this (release, tsan, fuzz).
option(GRIDCLOCK_QUICK_BUILD "Compile the sources of a room together, precompile headers of tests and kernels" OFF)

# In `parts` objects. Sources of one room then share their unnamed namespace.
function(gridclock_compile_together target parts)
  if(NOT GRIDCLOCK_QUICK_BUILD)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  set(part 0)
  foreach(source IN LISTS sources)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_${part})
    math(EXPR part "(${part} + 1) % ${parts}")
  endforeach()
endfunction()

# Tests share one. Its owner is a program, as they are: code for libraries is compiled another way.
function(gridclock_precompile_test name)
  if(NOT GRIDCLOCK_QUICK_BUILD)
    return()
  endif()
  if(NOT TARGET gridclock_pch_tests)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/pch_tests.cc CONTENT "int main() { return 0; }\n")
    add_executable(gridclock_pch_tests ${PROJECT_BINARY_DIR}/pch_tests.cc)
    target_link_libraries(gridclock_pch_tests PRIVATE gridclock::base gridclock_flags GTest::gmock)
    target_precompile_headers(gridclock_pch_tests PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    set_target_properties(gridclock_pch_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  endif()
  # One that defines other macros parses the headers itself, without a word.
  set_target_properties(${name} PROPERTIES PCH_WARN_INVALID OFF)
  target_precompile_headers(${name} REUSE_FROM gridclock_pch_tests)
endfunction()

# Vectors among them, which are another type at each level.
function(gridclock_precompile_kernels target)
  if(GRIDCLOCK_QUICK_BUILD)
    target_precompile_headers(${target} PRIVATE <kernels/api/kernel.h> <kernels/catalog/simd.h>)
    # g++ 12 forgets there that a header's vectors are undefined by intent. Builds without this warn.
    target_compile_options(${target} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized;-Wno-maybe-uninitialized>")
  endif()
endfunction()
