#!/usr/bin/env bash
# cuda.sh TOOLKIT ROOT PART...: parts of a CUDA 13 toolkit, laid out in ROOT/usr/local/cuda.
#
#   nvrtc      the compiler of submitted code       ptxas     its assembler
#   nvdisasm   its disassembler, if there           headers   what submitted code may include
#   cupti      device times of launches, if there   cublaslt  NVIDIA's matrix multiplication
set -euo pipefail
toolkit=$1
out=$2/usr/local/cuda
shift 2
die() { printf 'cuda: %s\n' "$*" >&2; exit 1; }

# Where toolkits keep libraries: of the toolkit itself, of CUPTI, of one for several processors.
library() {
  local folder
  for folder in lib64 lib targets/x86_64-linux/lib extras/CUPTI/lib64; do
    if [ -e "$toolkit/$folder/$1" ]; then realpath "$toolkit/$folder/$1"; return; fi
  done
  return 1
}

need_library() {
  local file
  file=$(library "$1") || die "want $1 in $toolkit; is it a toolkit of CUDA 13, and whole?"
  install -D -m 644 "$file" "$out/lib64/$1"
}

copy_nvrtc() {
  local builtins
  need_library libnvrtc.so.13
  # NVRTC opens them by the name of its own minor version.
  for builtins in "$toolkit"/{lib64,lib,targets/x86_64-linux/lib}/libnvrtc-builtins.so.13.*; do
    [[ -e $builtins && $builtins =~ \.so\.13\.[0-9]+$ ]] || continue
    need_library "$(basename "$builtins")"
    return
  done
  die "want libnvrtc-builtins.so.13.N in $toolkit"
}

copy_ptxas() { install -D -m 755 "$toolkit/bin/ptxas" "$out/bin/ptxas"; }
copy_nvdisasm() { [ ! -e "$toolkit/bin/nvdisasm" ] || install -D -m 755 "$toolkit/bin/nvdisasm" "$out/bin/nvdisasm"; }
copy_cupti() { if library libcupti.so.13 > /dev/null; then need_library libcupti.so.13; fi; }
copy_cublaslt() { need_library libcublasLt.so.13; }

# Headers of libraries that no submitted kernel can be linked with are left out.
copy_headers() {
  mkdir -p "$out/include"
  cp -rL "$toolkit/include/." "$out/include/"
  (cd "$out/include" && rm -rf cublas* cusparse* cufft* cusolver* cudnn* npp* nvjpeg* nvJitLink* \
    nccl* nvtx3 nvml.h cupti* generated_* nvperf* cuda_profiler* cufile* Sanitizer* sanitizer* nvptxcompiler* fatbinary*)
}

for part; do
  declare -F "copy_$part" > /dev/null || die "no part '$part'"
  "copy_$part"
done
