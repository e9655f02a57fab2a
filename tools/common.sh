# Shared by `dev` and the scripts in tools/: sourced, never run.
# shellcheck shell=bash disable=SC2034
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
: "${GRIDCLOCK_JOBS:=$(nproc)}"
: "${GRIDCLOCK_YES:=}"
export GRIDCLOCK_JOBS GRIDCLOCK_YES
# One clone's objects serve the next: ccache then leaves the folder's name out of what it compares.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
venv=$root/.venv

# Bold on a terminal whose owner does not mind (no-color.org), plain in pipes and files.
bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; fi

say() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
note() { printf '   %s\n' "$*"; }
die() { printf 'dev: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# clang-format lays out differently from one version to the next: 14 is the one that decides.
clang_format() {
  if have clang-format-14; then clang-format-14 "$@"; else clang-format "$@"; fi
}

# Says nothing but warnings where it succeeds: what CMake lists beside them looks like faults.
configure() {
  local said code=0
  said=$(cmake --preset "$1" --log-level=WARNING -S "$root" 2>&1) || code=$?
  case $code$said in 0*'CMake Warning'* | [1-9]*) printf '%s\n' "$said" >&2 ;; esac
  return "$code"
}

# build_preset PRESET [TARGET...]
build_preset() {
  local preset=$1
  shift
  (cd "$root" && configure "$preset" &&
    cmake --build --preset "$preset" -j "$GRIDCLOCK_JOBS" ${1:+--target "$@"})
}

# result_lines LOG: what a log of ours says of the result, each line once; of one that says none its end.
result_lines() {
  local tests='^[0-9]+% tests passed|^Total Test time|^The following tests|^[[:space:]]+[0-9]+ - '
  local stages='^== stages|^ +[a-z]+ +[0-9]+ s +(passed|FAILED)'
  grep -E "$tests|$stages|^(demo|dev|clang-tidy): |^== lint: all" "$1" |
    awk '!seen[$0]++' || tail -n 5 "$1"
}

# Sources that git tracks, by pattern; generated and fetched files never are. A file that was
# deleted and not committed yet is left out.
tracked() {
  (cd "$root" && git ls-files -- "$@") | while IFS= read -r file; do
    [ ! -e "$root/$file" ] || printf '%s\n' "$file"
  done
}
