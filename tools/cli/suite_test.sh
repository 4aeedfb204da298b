#!/bin/sh
# suite_test.sh VIA: what `via bench suite` leaves behind when it cannot come to a good end.
set -e
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
suite() {
    exec "$via" bench suite rate-cq --quick --rounds 1 --keep-disturbed --near-below 1 \
        --far-above 2 -o "$folder"
}
via=$1

# On a full disk: what was there before.
echo old >"$folder/rate-cq.jsonl"
ln -s /dev/full "$folder/rate-cq.jsonl.new"
code=0
(suite) || code=$?
test $code = 1
grep -q old "$folder/rate-cq.jsonl"

# Killed alone: no process that goes on.
rm "$folder/rate-cq.jsonl.new"
suite >/dev/null 2>&1 &
child=
until test -n "$child"; do
    child=$(sed -n "s/^\([0-9]*\) ([a-z]*) . $! .*/\1/p" /proc/[0-9]*/stat 2>/dev/null || true)
done
kill -KILL $!
while grep -q '^State:.[^ZX]' "/proc/$child/status" 2>/dev/null; do :; done

# Done: the new results, and nothing else.
(suite)
grep -q '"bench":"rate"' "$folder/rate-cq.jsonl"
test ! -e "$folder/rate-cq.jsonl.new"
