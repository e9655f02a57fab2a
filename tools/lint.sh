#!/usr/bin/env bash
# lint.sh [--all]: every check that reads sources. All of them run, then the verdict.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
failed=()
python=python3
[ ! -x "$venv/bin/python" ] || python=$venv/bin/python

check() {
  local name=$1
  shift
  say "lint: $name"
  "$@" || failed+=("$name")
}

layout() { tracked '*.cc' '*.h' '*.cu' '*.cuh' | xargs -r bash -c 'source tools/common.sh; clang_format --dry-run -Werror "$@"' -; }
scripts() {
  local files
  mapfile -t files < <(tracked '*.sh' dev .ci/run)
  shellcheck "${files[@]}"
}
python_compiles() {
  tracked '*.py' | "$python" -c '
import sys
for path in sys.stdin.read().split():
    compile(open(path, encoding="utf-8").read(), path, "exec")'
}
# The whole configuration is needed for these two: the list of headers, the commands, the messages.
headers_alone() { build_preset dev all_verify_interface_header_sets; }
tidied() { "$python" tools/tidy.py --build build/dev --jobs "$GRIDCLOCK_JOBS" --budget "${GRIDCLOCK_TIDY_SECONDS:-600}" "$@"; }
# Breaking changes of the wire are refused: compared with the descriptors of the last release.
contract() { "$python" tools/check_contract.py; }

check layers "$python" tools/check_layers.py
check strangers "$python" tools/check_strangers.py
check kernels-page "$python" tools/check_kernels_page.py
check size "$python" tools/size.py --check
check layout layout
check scripts scripts
check python python_compiles
check contract contract
check headers headers_alone
check tidy tidied "$@"

[ "${#failed[@]}" = 0 ] || die "lint failed: ${failed[*]}"
say "lint: all checks passed"
