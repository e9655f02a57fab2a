#!/usr/bin/env bash
# fuzz.sh SECONDS [TOTAL]: runs every fuzzer for so long, at most TOTAL seconds together. A crash
# leaves its input under build/fuzz and fails.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
seconds=$1
total=${2:-0}
build_preset fuzz fuzzers
mapfile -t fuzzers < <(find build/fuzz/bin -maxdepth 1 -type f -name 'fuzz_*' -perm -u+x | sort)
[ "${#fuzzers[@]}" -gt 0 ] || die "no fuzzer was built"
if [ "$total" -gt 0 ] && [ $((seconds * ${#fuzzers[@]})) -gt "$total" ]; then
  seconds=$((total / ${#fuzzers[@]}))
fi

fuzz_one() {
  local name seeds
  name=$(basename "$1")
  name=${name#fuzz_}
  mkdir -p "build/fuzz/corpus/$name" build/fuzz/crashes
  seeds=()
  [ ! -d "tests/fuzz/corpus/$name" ] || seeds=("tests/fuzz/corpus/$name")
  say "fuzz: $name for $seconds s"
  "$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build/fuzz/crashes/$name-" "build/fuzz/corpus/$name" "${seeds[@]}" 2>&1 | tail -n 20
}

for fuzzer in "${fuzzers[@]}"; do fuzz_one "$fuzzer"; done
say "fuzz: ${#fuzzers[@]} fuzzers, $seconds s each, no crash"
