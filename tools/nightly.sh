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

run install ./dev --yes install-all
run ci tools/ci.sh
run asan ./dev asan
run tidy env GRIDCLOCK_TIDY_SECONDS=7200 tools/lint.sh --all
run long-tests long_tests
run fuzz tools/fuzz.sh 600
run bench ./dev bench --check
run bare-root ./dev bare-root
[ "${#failed[@]}" = 0 ] || die "nightly failed: ${failed[*]}"
say "nightly: all passed"
