#!/bin/sh
# usage: deploy/secrets.sh FOLDER CLIENT ROLES [NAMES]
#
# Fills FOLDER/server with what a server in a container needs to take tokens over TLS: server.pem and server.key, a certificate
# of its own making for NAMES (default DNS:localhost,IP:127.0.0.1); and tokens, with CLIENT, ROLES and a hash. The token itself is
# CLIENT's, in FOLDER/token, where no container sees it. As root: FOLDER/server belongs to the image's user. GRIDCLOCK_IMAGE names
# another image than gridclock:cpu.
set -eu
[ $# -ge 3 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
folder=$1 client=$2 roles=$3 names=${4:-DNS:localhost,IP:127.0.0.1}

umask 077
mkdir -p "$folder/server"
for name in server/server.pem server/server.key server/tokens token; do
  [ ! -e "$folder/$name" ] || { echo "$folder has $name already: it would be lost" >&2; exit 1; }
done
# Half of it would be in the way of the next try.
trap 'rm -f "$folder/server/server.pem" "$folder/server/server.key" "$folder/server/tokens" "$folder/token"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=gridclock -addext "subjectAltName=$names" \
  -keyout "$folder/server/server.key" -out "$folder/server/server.pem"
openssl rand -hex 32 > "$folder/token"
hash=$(docker run --rm -i "${GRIDCLOCK_IMAGE:-gridclock:cpu}" --hash-token < "$folder/token")
echo "$client $roles $hash" > "$folder/server/tokens"
chown -R 65532:65532 "$folder/server"
trap - EXIT INT TERM HUP
