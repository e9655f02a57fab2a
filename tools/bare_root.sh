#!/usr/bin/env bash
# bare_root.sh [COMMAND...]: proves that the two commands of the README need nothing but Debian 12.
# Makes an empty root file system, clones HEAD into it and runs `./dev demo` and `./dev test` there
# (or the commands given, each one word list in quotes). Needs root and mmdebstrap.
#
# What this machine knows of its mirrors, proxies and certificate authorities is handed on as files
# and variables, so nothing of it is written here. GRIDCLOCK_BARE_ROOT names a folder to keep.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
[ "$(id -u)" = 0 ] || die "bare-root needs root: it mounts and changes the root directory"
commands=("./dev --yes demo" "./dev --yes test")
[ "$#" = 0 ] || commands=("$@")
bare=${GRIDCLOCK_BARE_ROOT:-}
[ -n "$bare" ] || { bare=$(mktemp -d); own=1; }
logs=$root/build/bare-root
commit=$(git rev-parse HEAD)

# Nothing is mounted in our own mount namespace: the mounts are made in one that ends with its last
# process (see `inside`), so there is nothing to undo here but the folder.
# shellcheck disable=SC2317  # The trap calls it.
clean_up() { [ -z "${own:-}" ] || rm -rf --one-file-system "$bare"; }
trap clean_up EXIT
trap 'exit 130' INT TERM

make_root() {
  [ ! -e "$bare/etc/debian_version" ] || return 0
  say "an empty Debian 12"
  mmdebstrap --quiet --variant=minbase bookworm "$bare"
  # No service may start, as in a container.
  printf '#!/bin/sh\nexit 101\n' > "$bare/usr/sbin/policy-rc.d"
  chmod +x "$bare/usr/sbin/policy-rc.d"
}

hand_on() {
  local path paths=(/etc/apt/apt.conf.d /etc/hosts /etc/resolv.conf /etc/pip.conf
    /usr/local/share/ca-certificates /etc/ssl/certs/ca-certificates.crt)
  # Another distribution's mirror has other packages.
  if grep -qx VERSION_CODENAME=bookworm /etc/os-release; then
    paths+=(/etc/apt/sources.list /etc/apt/sources.list.d/debian.sources)
  fi
  for path in "${paths[@]}"; do
    [ -e "$path" ] || continue
    mkdir -p "$bare$(dirname "$path")"
    cp -rL --remove-destination -T "$path" "$bare$path"
  done
  # Two lists with the same lines would be refused.
  [ ! -e "$bare/etc/apt/sources.list.d/debian.sources" ] || : > "$bare/etc/apt/sources.list"
}

clone() {
  rm -rf "$bare/src"
  git clone --quiet --no-hardlinks "$root" "$bare/src"
  git -C "$bare/src" checkout --quiet --detach "$commit"
}

# inside COMMAND: in the bare root, in a mount and pid namespace of its own; whatever the command
# leaves behind ends with it.
inside() {
  local name pass=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8)
  while IFS= read -r name; do
    [ -z "${!name:-}" ] || pass+=("$name=${!name}")
  done < <(compgen -e | grep -iE '^((https?|no|all)_proxy|pip_(index_url|extra_index_url|cert|default_timeout|trusted_host))$' || true)
  # The single quotes are meant: the inner shell expands.
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --kill-child --propagation private bash -euc '
    bare=$1 command=$2
    shift 2
    mount -t proc proc "$bare/proc"
    mount --rbind /dev "$bare/dev"
    mount --rbind /sys "$bare/sys"
    exec env -i "$@" chroot "$bare" bash -c "cd /src && $command"' - "$bare" "$1" "${pass[@]}" < /dev/null
}

make_root
hand_on
clone
mkdir -p "$logs"
results=()
failed=0
for command in "${commands[@]}"; do
  say "bare root: $command"
  start=$SECONDS code=0
  log=$logs/$(tr -c 'a-z\n' '_' <<< "$command").log
  inside "$command" 2>&1 | tee "$log" || code=$?
  results+=("$command: exit $code after $((SECONDS - start)) s" "$(result_lines "$log" | sed 's/^/  | /')")
  [ "$code" = 0 ] || failed=1
done
say "bare root of Debian 12 at commit $commit"
printf '%s\n' "${results[@]}"
exit "$failed"
