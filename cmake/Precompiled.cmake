# Headers that many sources parse alike are parsed once: gRPC's in the rooms of the wire, CLI11's in the
# command line, GoogleTest's in the tests. Only a matter of build time: every header still compiles alone, and every source
# without this.
option(GRIDCLOCK_PCH "Precompile headers that many sources parse, compile some sources together" OFF)

function(gridclock_precompile)
  if(NOT GRIDCLOCK_PCH)
    return()
  endif()
  if(TARGET gridclock_client_cpp)
    target_precompile_headers(gridclock_client_cpp PRIVATE <grpcpp/grpcpp.h> <gridclock/v1/kernels.grpc.pb.h>)
  endif()
  # It has no stubs, and does not wait until they are made.
  if(TARGET gridclock_rpc)
    target_precompile_headers(gridclock_rpc PRIVATE <grpcpp/grpcpp.h> <gridclock/v1/kernels.pb.h>)
  endif()
  if(TARGET gridclock_cli)
    target_precompile_headers(gridclock_cli PRIVATE <CLI/CLI.hpp> <gridclock/v1/kernels.pb.h>
                                                    <nlohmann/json.hpp>)
  endif()
endfunction()

# The sources of a library that include `header` are compiled a few at a time: what they instantiate of it
# costs far more than they themselves.
function(gridclock_compile_together target header parts)
  if(NOT GRIDCLOCK_PCH)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  set(part 0)
  foreach(source IN LISTS sources)
    if(NOT IS_ABSOLUTE ${source} AND source MATCHES "\\.cc$")
      file(STRINGS ${source} includes REGEX "^#include [<\"]${header}[>\"]")
      if(includes)
        set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_${part})
        math(EXPR part "(${part} + 1) % ${parts}")
      endif()
    endif()
  endforeach()
endfunction()

# Tests share one. Its owner is a program, as they are: code for libraries is compiled another way.
function(gridclock_precompile_test name)
  if(NOT GRIDCLOCK_PCH)
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
