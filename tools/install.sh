# Installs what is missing, and says what that is: sourced by `dev`.
# shellcheck shell=bash disable=SC2154

distribution() {
  # shellcheck disable=SC1091
  (. /etc/os-release 2>/dev/null && printf '%s' "${ID:-unknown}") || printf unknown
}

# packages GROUP...: names for this distribution, one per line.
packages() {
  local id group package _
  id=$(distribution)
  while read -r group package _; do
    case " $* " in *" $group "*) ;; *) continue ;; esac
    case $package in
      *@"$id") printf '%s\n' "${package%@*}" ;;
      *@*) ;;
      *) printf '%s\n' "$package" ;;
    esac
  done < "$root/tools/packages.txt"
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ]; }

missing_packages() {
  local package
  packages "$@" | while IFS= read -r package; do installed "$package" || printf '%s\n' "$package"; done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; return; fi
  have sudo || die "needs root, or sudo, to install: run as root: $*"
  if [ -z "$GRIDCLOCK_YES" ]; then
    local answer=no
    printf 'dev: run "sudo %s"? [y/N] ' "$*"
    read -r answer < /dev/tty || true
    case $answer in y | Y | yes) ;; *) die "not installed; run it yourself, then ./dev again" ;; esac
  fi
  sudo "$@"
}

# Debian's package starts its server on every address, now and at each boot, when only the program is
# wanted: so the service is masked before it is installed. `systemctl unmask` undoes it.
mask_service() {
  have systemctl || return 0
  note "the service $1 shall not run: masked"
  as_root systemctl mask --quiet "$1.service"
}

install_packages() {
  have dpkg-query || die "this installs with apt-get (Debian 12, Ubuntu 24.04); here, install what tools/packages.txt names"
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [ "${#missing[@]}" -gt 0 ] || return 0
  say "installing ${#missing[@]} packages: ${missing[*]}"
  case " ${missing[*]} " in *" prometheus "*) mask_service prometheus ;; esac
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# venv_with FILE: the Python environment, made again when a requirement changes.
venv_with() {
  local want
  want=$root/tools/$1
  if [ -x "$venv/bin/python" ] && cmp -s "$want" "$venv/$1"; then return; fi
  say "Python environment: $1"
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$want" ||
    die "pip could not install $1; the tests need it (a mirror or proxy is set in pip's own configuration)"
  cp "$want" "$venv/$1"
}

install() {
  [ -z "${GRIDCLOCK_NO_INSTALL:-}" ] || return 0
  install_packages "$@"
  venv_with requirements.txt
}

# One line for each package: there with its version, or missing with what that means.
doctor() {
  local group package purpose version absent=0
  printf 'distribution   %s\nprocessors     %s\nmemory         %s MiB\n' \
    "$(. /etc/os-release 2>/dev/null && printf '%s' "${PRETTY_NAME:-unknown}")" "$(nproc)" \
    "$(awk '/^MemTotal/ {print int($2 / 1024)}' /proc/meminfo)"
  while read -r group package purpose; do
    case $group in '' | \#*) continue ;; esac
    case $package in *@"$(distribution)") package=${package%@*} ;; *@*) continue ;; esac
    if version=$(dpkg-query -W -f '${Version}' "$package" 2>/dev/null) && installed "$package"; then
      printf '%-6s %-26s %s\n' "$group" "$package" "$version"
    else
      printf '%-6s %-26s MISSING: %s\n' "$group" "$package" "$purpose"
      absent=$((absent + 1))
    fi
  done < "$root/tools/packages.txt"
  if [ -x "$venv/bin/python" ]; then
    "$venv/bin/python" -m pip --disable-pip-version-check freeze | sed 's/^/python /'
  else
    printf 'python environment           MISSING: numpy and grpcio for the tests; each verb that needs it makes it\n'
  fi
  [ "$absent" = 0 ] || note "$absent packages are missing; each verb installs those that it needs"
}
