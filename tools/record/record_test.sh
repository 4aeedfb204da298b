#!/bin/sh
# Two processes are recorded as they run over shm, and their trace goes through a machine's design.
# record_test.sh VIA HELLO
set -eu
via=$1
hello=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_RUNTIME_DIR="$folder"
said=$("$via" lab record -o "$folder/trace" -- \
    sh -c "\"$hello\" hear shm & \"$hello\" say shm && wait")
echo "$said"
case $said in *"Hello, neighbour!"*"2 processes, 1 connections"*) ;; *) exit 1 ;; esac
if gzip -dc "$folder/trace" | grep -q neighbour; then
    echo "there is payload in the trace"
    exit 1
fi
said=$("$via" lab replay "$folder/trace" mini)
echo "$said"
case $said in *"1 messages"*"misses"*) ;; *) exit 1 ;; esac
"$via" lab replay "$folder/trace" mini --design cache=64,line=1,ways=2 --json |
    grep -q '"messages":1'
if "$via" lab replay "$0" mini 2>"$folder/why"; then exit 1; fi
grep -q 'this is no trace' "$folder/why"
if "$via" lab record -o "$folder/none" -- true 2>"$folder/why"; then exit 1; fi
grep -q 'nothing was asked of VIA' "$folder/why"
# What cannot be read is no recording of nothing.
if "$via" lab record -o "$folder/none" -- sh -c 'mkdir "$VIA_RECORD/7.x"' 2>"$folder/why"; then
    exit 1
fi
grep -q 'cannot read .*/7.x: Is a directory' "$folder/why"
if "$via" lab record -o "$folder/none" -- sh -c 'rmdir "$VIA_RECORD"' 2>"$folder/why"; then
    exit 1
fi
grep -q 'cannot read .*: No such file or directory' "$folder/why"
