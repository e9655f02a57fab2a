#!/usr/bin/env bash
# What does not fit the time of CI. All of it runs; what failed is named at the end.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
failed=()
run() {
  local name=$1
  shift
  say "nightly: $name"
  "$@" || failed+=("$name")
}

long_tests() { build_preset dev && ctest --preset dev -L nightly -j 1; }

# What a release holds for which GPU; only its own build can show it.
release() {
  build_preset release gridclock gridclock-server gridclock-worker gridclock-compiler &&
    python3 tests/house/gpu_code_test.py build/release/bin/gridclock-worker-v3 \
      "$(sed -n 's/^GRIDCLOCK_CUDA_ARCHITECTURES:[A-Z]*=//p' build/release/CMakeCache.txt | tr ';' ',')"
}

# What Triton makes of the example, without a GPU: by the version that docs/triton.md names, which nothing else needs.
triton() {
  build_preset dev gridclock gridclock-server gridclock-worker gridclock-compiler &&
    python3 -m venv build/triton &&
    build/triton/bin/python -m pip install --quiet --disable-pip-version-check -r tools/requirements-triton.txt &&
    build/triton/bin/python -B tests/gpu/triton_test.py build/dev/bin
}

run install ./dev --yes install-all
run browser ./dev --yes install-browser
run ci env "GRIDCLOCK_TEST_SEED=$(date +%s)" tools/ci.sh
run asan ./dev asan
run gpu-bundle ./dev gpu-bundle
run kernels-page python3 tools/check_kernels_page.py --gpus
run tidy env GRIDCLOCK_TIDY_SECONDS=7200 tools/lint.sh --all
run release release
run long-tests long_tests
run triton triton
run fuzz tools/fuzz.sh 600
run bench ./dev bench --check
run deploy-test ./dev deploy-test --full --no-skips
# Behind the tests, so that lint and CI find most of what they build.
run bare-root ./dev bare-root "./dev --yes demo" "./dev --yes test" "./dev --yes lint" \
  "GRIDCLOCK_CI_WITHOUT_CUDA=1 .ci/run" \
  "./dev --yes deploy-test --only stack"
[ "${#failed[@]}" = 0 ] || die "nightly failed: ${failed[*]}"
say "nightly: all passed"
