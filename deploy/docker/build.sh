#!/usr/bin/env bash
# build.sh ROOT [CMAKE FLAG...]: compiles the programs as a release and lays out a root file system
# with them; LEVELS says workers of which CPU levels (rootfs.sh). Run by the Dockerfile, in a stage that
# has the packages.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$folder/../.." && pwd)
out=$1
shift
# An object made in another folder, or for the other image, serves as well.
export CCACHE_BASEDIR=$source CCACHE_NOHASHDIR=1
programs=(gridclock gridclock-server gridclock-worker gridclock-compiler)

cd "$source"
cmake --preset release --log-level=WARNING "$@"
cmake --build --preset release -j "${JOBS:-$(nproc)}" --target "${programs[@]}"
# Levels are words.
# shellcheck disable=SC2086
"$folder/rootfs.sh" build/release/bin "$out" ${LEVELS:-}
