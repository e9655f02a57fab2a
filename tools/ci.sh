#!/usr/bin/env bash
# What every change must pass, with the time of each stage. All stages run; the first that fails is
# named at the end.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
mkdir -p build
times=()
failed=()

stage() {
  local name=$1 start=$SECONDS code=0
  shift
  say "stage $name"
  "$@" || code=$?
  times+=("$(printf '%-8s %4d s  %s' "$name" $((SECONDS - start)) "$([ "$code" = 0 ] && echo passed || echo FAILED)")")
  [ "$code" = 0 ] || failed+=("$name")
}

# Inputs of tests are new for each commit, and the same each time that a commit is tested.
export GRIDCLOCK_TEST_SEED="${GRIDCLOCK_TEST_SEED:-$((16#$(git rev-parse --short=8 HEAD)))}"
nvcc=$(command -v "${CUDACXX:-nvcc}" || command -v /usr/local/cuda/bin/nvcc || true)
# Every file for GPUs must compile, whatever this build was told before. A machine without an nvcc says nothing of them.
find_nvcc() {
  [ -z "$nvcc" ] || return 0
  say "NO .cu FILE IS COMPILED: no nvcc in CUDACXX, on PATH or in /usr/local/cuda/bin"
  [ "${GRIDCLOCK_CI_WITHOUT_CUDA:-}" = 1 ] || { note "GRIDCLOCK_CI_WITHOUT_CUDA=1 says that this is wanted"; return 1; }
}
build() {
  [ -z "$nvcc" ] || cmake --preset dev -DGRIDCLOCK_CUDA=ON --log-level=WARNING || return
  ./dev build dev
}

# The dev build, kept so that its last lines, the test runner's own summary, can end the run.
run_tests() { ./dev test --output-on-failure 2>&1 | tee build/ci-test.log; }

stage nvcc find_nvcc
stage install ./dev --yes install-all
stage build build
stage test run_tests
stage demo ./dev demo
# clang-tidy of the whole tree, and AddressSanitizer beside gRPC, take longer than this may: they gate nightly.
stage lint env GRIDCLOCK_TIDY_SECONDS=300 ./dev lint
stage tsan ./dev tsan
stage asan ./dev asan rooms
stage fuzz tools/fuzz.sh 30 1

say "stages, $SECONDS s in all"
printf '   %s\n' "${times[@]}"
say "summary of the test stage"
result_lines build/ci-test.log
[ "${#failed[@]}" = 0 ] || die "ci failed: ${failed[*]}"
