# CUDA: used where there is a compiler for it, and asked for by name where there must be one. Only the
# runtime is linked, and statically; the driver and all other libraries are found when a worker starts.
set(GRIDCLOCK_CUDA AUTO CACHE STRING "Build for NVIDIA GPUs: ON, OFF, or AUTO, where there is an nvcc")
set_property(CACHE GRIDCLOCK_CUDA PROPERTY STRINGS AUTO ON OFF)
set(GRIDCLOCK_CUDA_ARCHITECTURES 90a CACHE STRING "GPUs to build for, as CMAKE_CUDA_ARCHITECTURES")

set(GRIDCLOCK_HAS_CUDA OFF)
if(GRIDCLOCK_CUDA STREQUAL "OFF")
  return()
endif()

find_program(GRIDCLOCK_NVCC NAMES $ENV{CUDACXX} nvcc PATHS /usr/local/cuda/bin
             DOC "The CUDA compiler: CUDACXX, or the first nvcc on PATH or in /usr/local/cuda/bin")
if(NOT GRIDCLOCK_NVCC)
  set(not_found "no nvcc in CUDACXX, on PATH or in /usr/local/cuda/bin")
  if(GRIDCLOCK_CUDA STREQUAL "AUTO")
    message(STATUS "No CUDA device: ${not_found}")
    return()
  endif()
  message(FATAL_ERROR "GRIDCLOCK_CUDA=${GRIDCLOCK_CUDA}: ${not_found}")
endif()

set(CMAKE_CUDA_COMPILER ${GRIDCLOCK_NVCC})
set(CMAKE_CUDA_ARCHITECTURES ${GRIDCLOCK_CUDA_ARCHITECTURES})
enable_language(CUDA)
# CMake 3.25 does not know that nvcc has C++20.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
# A worker holds the code of each GPU; this halves it and costs nothing once it is loaded.
add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
find_package(CUDAToolkit REQUIRED)
set(GRIDCLOCK_HAS_CUDA ON)
message(STATUS "CUDA ${CUDAToolkit_VERSION} for ${GRIDCLOCK_CUDA_ARCHITECTURES}")
