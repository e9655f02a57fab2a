#!/usr/bin/env bash
# rootfs.sh BIN ROOT [LEVEL...]: a root file system with the programs of BIN in /usr/bin, with workers of
# these CPU levels (v2 v3 v4; where one is missing the next lower one runs), the libraries that they are linked with, and what a C library expects of a system. It has no shell and no package manager;
# for scanners, each package that a file is from is recorded in /var/lib/dpkg/status.d, and its licence
# in /usr/share/doc.
set -euo pipefail
bin=$1
root=$2
shift 2
levels=("$@")
[ $# -gt 0 ] || levels=(v2 v3 v4)
die() { printf 'rootfs: %s\n' "$*" >&2; exit 1; }

copy_programs() {
  local program
  mkdir -p "$root/usr/bin"
  for program in gridclock gridclock-server gridclock-compiler gridclock-worker "${levels[@]/#/gridclock-worker-}"; do
    [ -x "$bin/$program" ] || die "want $bin/$program: build it first"
    strip -o "$root/usr/bin/$program" "$bin/$program"
    chmod 755 "$root/usr/bin/$program"
  done
}

# /lib and /lib64 are links, as in the distribution.
make_folders() {
  mkdir -p "$root"/{etc/ssl/certs,usr/lib,usr/lib64,var/lib/dpkg/status.d,run,tmp}
  ln -sfn usr/lib "$root/lib"
  ln -sfn usr/lib64 "$root/lib64"
  chmod 1777 "$root/tmp"
}

# What NVRTC opens by name when it runs: the names that the C library's parts had before they became one.
opened() {
  local name path known
  known=$(ldconfig -p)
  for name in libpthread.so.0 libdl.so.2 librt.so.1; do
    path=$(awk -v name="$name" 'index($1, name) == 1 && !found {print $NF; found = 1}' <<< "$known")
    [ -n "$path" ] || die "want $name on this machine"
    printf '%s\n' "$path"
  done
}

# The paths that the loader finds, its own included.
libraries() {
  local named linked
  named=$(opened)
  # The names are words: no library has a blank in its path.
  # shellcheck disable=SC2086
  linked=$(ldd "$root"/usr/bin/* $named)
  printf '%s\n%s\n' "$named" "$linked" | grep -oE '^/[^ :]+\.so[^ :]*$|=> /[^ ]+|^\s+/[^ ]+' | grep -oE '/.*' | sort -u
}

copy_libraries() {
  local library found
  found=$(libraries)
  for library in $found; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
    record_package "$library"
  done
}

# Packages name a library by the file behind its links, in /lib or in /usr/lib.
record_package() {
  local real package
  real=$(realpath "$1")
  package=$(dpkg-query -S "$real" "${real#/usr}" 2>/dev/null | head -n 1 | cut -d: -f1) || true
  [ -n "$package" ] || { printf 'rootfs: no package has %s\n' "$real" >&2; return 0; }
  dpkg-query -s "$package" > "$root/var/lib/dpkg/status.d/$package"
  [ ! -e "/usr/share/doc/$package/copyright" ] ||
    install -D -m 644 "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/copyright"
}

write_system_files() {
  cp -L /etc/os-release "$root/etc/os-release"
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  printf 'root:x:0:0:root:/:/sbin/nologin\ngridclock:x:65532:65532:gridclock:/:/sbin/nologin\n' > "$root/etc/passwd"
  printf 'root:x:0:\ngridclock:x:65532:\n' > "$root/etc/group"
  printf 'hosts: files dns\n' > "$root/etc/nsswitch.conf"
  install -D -m 644 "$(dirname "$0")/../../LICENSE" "$root/usr/share/doc/gridclock/LICENSE"
}

make_folders
copy_programs
copy_libraries
write_system_files
