#!/usr/bin/env bash
# gpu_bundle.sh BIN FOLDER: the programs of BIN, the tests and benchmarks of GPUs and the libraries that
# all these need, in one folder that runs on another machine which has only a driver, the CUDA toolkit
# and a C library as new as this one's.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
bin=$1
folder=$2
programs=(gridclock gridclock-server gridclock-compiler gridclock-test-worker cuda_device_test cuda_module_test
  guest_sandbox_gpu_test conformance_cuda_test conformance_misread server_gpu_test cuda_error_test cuda_parts_test
  scheduler_devices_test bench-bulk bench-modules bench-stream)
most_mib=40

# copy_program FROM [TO]
copy_program() {
  [ -x "$bin/$1" ] || die "want $bin/$1: build with CUDA first (GRIDCLOCK_CUDA=ON)"
  strip -o "$folder/bin/${2:-$1}" "$bin/$1"
}

# One worker for all CPUs, which have AVX2 where there is such a GPU: it stands in the launcher's place.
copy_programs() {
  local program
  for program in "${programs[@]}"; do copy_program "$program"; done
  copy_program gridclock-worker-v3 gridclock-worker
}

# What every Linux machine has is left out: two C libraries in one process do not work.
copy_libraries() {
  local library
  ldd "$folder"/bin/* | awk '/=> \//{print $3}' | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libgcc_s|libstdc\+\+)\.so' |
    while read -r library; do
      strip -o "$folder/lib/$(basename "$library")" "$(readlink -f "$library")"
    done
}

# CUPTI's activity interface, which workers open at run time: a driver alone does not bring it.
copy_cupti() {
  local library name
  library=$(sed -n 's/^CUDA_cupti_LIBRARY:[A-Z]*=//p' "$bin/../CMakeCache.txt")
  [ -e "$library" ] || die "no libcupti beside the CUDA compiler here: without it the bundle could time nothing by device_time"
  name=$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
  strip -o "$folder/lib/$name" "$(readlink -f "$library")"
}

copy_scripts() {
  cp -r "$root/tests/support/server.py" "$folder/tests/support/"
  cp -r "$root/tests/gpu" "$root/tests/sources" "$folder/tests/"
  cp -r "$root/examples/triton" "$folder/examples/"
  cp -r "$root/kernels/catalog" "$folder/kernels/"
  cp "$root/tests/bench/bench.py" "$folder/tests/bench/"
  cp -r "$root/tests/bench/speed" "$folder/tests/bench/"
  cp "$root"/tests/docs/{run_snippets,pages}.py "$folder/tests/docs/"
  cp "$root"/tools/{common,up}.sh "$folder/tools/"
  cp "$root"/{README,CONTRIBUTING,SECURITY,ARCHITECTURE}.md "$folder/"
  cp "$root"/docs/*.md "$folder/docs/"
  find "$folder" -name __pycache__ -prune -exec rm -r {} +
  local verb
  for verb in gpu-test gpu-bench; do
    cat >"$folder/$verb" <<SCRIPT
#!/bin/sh
# Needs a GPU and python3; the peers also need PyTorch, and are left out where it is missing.
cd "\$(dirname "\$0")" || exit
(
  flock 9
  archive=\$(sha256sum programs.tar.gz) || exit
  [ "\$(cat bin/.archive 2>/dev/null)" = "\$archive" ] ||
    { rm -rf bin lib && tar xzf programs.tar.gz && echo "\$archive" >bin/.archive; }
) 9>.unpacking || exit
export GRIDCLOCK_REVISION=$(git -C "$root" describe --always --dirty --exclude '*')
export LD_LIBRARY_PATH="\$PWD/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" GRIDCLOCK_BIN="\$PWD/bin"
exec python3 tests/gpu/${verb#gpu-}.py --bin bin "\$@"
SCRIPT
    chmod +x "$folder/$verb"
  done
}

rm -rf "$folder"
mkdir -p "$folder"/{bin,lib,docs,examples,kernels,tools,tests/{support,bench,docs}}
copy_cupti
copy_programs
copy_libraries
copy_scripts
# Packed, for the way to the other machine; what is run there unpacks it once.
tar -C "$folder" -czf "$folder/programs.tar.gz" bin lib
rm -r "${folder:?}/bin" "${folder:?}/lib"
mib=$(du -sm --apparent-size "$folder" | cut -f1)
[ "$mib" -le "$most_mib" ] || die "the bundle has $mib MiB, the most is $most_mib"
architectures=$(sed -n 's/^GRIDCLOCK_CUDA_ARCHITECTURES:[A-Z]*=//p' "$bin/../CMakeCache.txt")
say "$folder: $mib MiB with code for ${architectures:-no GPU}; run gpu-test or gpu-bench in it on a machine with a GPU"
