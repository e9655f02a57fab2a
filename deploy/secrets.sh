#!/bin/sh
# usage: deploy/secrets.sh FOLDER CLIENT ROLES [NAMES]
#
# Fills FOLDER with what a server in a container needs to take tokens over TLS: server.pem and server.key, a certificate
# of its own making for NAMES (default DNS:localhost,IP:127.0.0.1); token, which is CLIENT's; and tokens, the server's file,
# with its hash and ROLES. As root: all belongs to the image's user. GRIDCLOCK_IMAGE names another image than gridclock:cpu.
set -eu
[ $# -ge 3 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
folder=$1 client=$2 roles=$3 names=${4:-DNS:localhost,IP:127.0.0.1}

mkdir -p "$folder"
for name in server.pem server.key token tokens; do
  [ ! -e "$folder/$name" ] || { echo "$folder has $name already: it would be lost" >&2; exit 1; }
done
umask 077
openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=gridclock -addext "subjectAltName=$names" \
  -keyout "$folder/server.key" -out "$folder/server.pem"
openssl rand -hex 32 > "$folder/token"
hash=$(docker run --rm -i "${GRIDCLOCK_IMAGE:-gridclock:cpu}" --hash-token < "$folder/token")
echo "$client $roles $hash" > "$folder/tokens"
chown 65532:65532 "$folder" "$folder/server.pem" "$folder/server.key" "$folder/token" "$folder/tokens"
