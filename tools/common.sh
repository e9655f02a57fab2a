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

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
note() { printf '   %s\n' "$*"; }
die() { printf 'dev: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# clang-format lays out differently from one version to the next: 14 is the one that decides.
clang_format() {
  if have clang-format-14; then clang-format-14 "$@"; else clang-format "$@"; fi
}

configure() { cmake --preset "$1" --log-level=WARNING -S "$root"; }

# build_preset PRESET [TARGET...]
build_preset() {
  local preset=$1
  shift
  (cd "$root" && configure "$preset" &&
    cmake --build --preset "$preset" -j "$GRIDCLOCK_JOBS" ${1:+--target "$@"})
}

# Sources that git tracks, by pattern; generated and fetched files never are. A file that was
# deleted and not committed yet is left out.
tracked() {
  (cd "$root" && git ls-files -- "$@") | while IFS= read -r file; do
    [ ! -e "$root/$file" ] || printf '%s\n' "$file"
  done
}
