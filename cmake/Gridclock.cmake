# Helpers of the build: one function per kind of thing that the rooms declare.

add_library(gridclock_flags INTERFACE)
target_compile_options(gridclock_flags INTERFACE -Wall -Wextra -Werror -fstack-protector-strong)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD AND NOT GRIDCLOCK_FUZZ)
  add_link_options(-fuse-ld=mold)
endif()

# gridclock_library(NAME base HDRS a.h SRCS a.cc DEPS x y PRIVATE_DEPS z): target gridclock::NAME.
# Headers are checked to compile alone (CMAKE_VERIFY_INTERFACE_HEADER_SETS).
function(gridclock_library)
  cmake_parse_arguments(A "" "NAME" "HDRS;SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
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
endfunction()

# gridclock_test(NAME SRCS... DEPS...): one GoogleTest program, one ctest entry with a time limit.
function(gridclock_test name)
  cmake_parse_arguments(A "" "TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  add_executable(${name} ${A_SRCS})
  target_link_libraries(${name} PRIVATE ${A_DEPS} gridclock_flags GTest::gmock_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT} LABELS "${A_LABELS}")
endfunction()
