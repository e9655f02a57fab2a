#!/usr/bin/env bash
# fuzz.sh SECONDS [SEED]: runs every fuzzer for so long. A crash leaves its input under build/fuzz and
# fails. Without a seed each run searches further, from all that earlier runs found; with one, from the
# committed corpus alone and always in the same order, so that a gate answers the same twice.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
seconds=$1
seed=${2:-}
build_preset fuzz fuzzers
mapfile -t fuzzers < <(find build/fuzz/bin -maxdepth 1 -type f -name 'fuzz_*' -perm -u+x | sort)
[ "${#fuzzers[@]}" -gt 0 ] || die "no fuzzer was built"

fuzz_one() {
  local name seeds found
  name=$(basename "$1")
  name=${name#fuzz_}
  found=build/fuzz/corpus/$name
  if [ -n "$seed" ]; then
    found=build/fuzz/gate/$name
    rm -rf "$found"
  fi
  mkdir -p "$found" build/fuzz/crashes
  seeds=()
  [ ! -d "tests/fuzz/corpus/$name" ] || seeds=("tests/fuzz/corpus/$name")
  say "fuzz: $name for $seconds s"
  "$1" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
    -reload=0 -seed="${seed:-0}" -artifact_prefix="build/fuzz/crashes/$name-" \
    "$found" "${seeds[@]}" 2>&1 | tail -n 20
}

for fuzzer in "${fuzzers[@]}"; do fuzz_one "$fuzzer"; done
say "fuzz: ${#fuzzers[@]} fuzzers, $seconds s each, no crash"
