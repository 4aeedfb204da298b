#!/bin/sh
# with_a_key.sh PROGRAM...: runs the program where a fresh key seals the wire between hosts, and
# where no NIC opens without one.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/openvia"
umask 077
echo "key $(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')" >"$folder/openvia/wire.keys"
export XDG_CONFIG_HOME="$folder" OPENVIA_OPTIONS=secure=require
"$@"
