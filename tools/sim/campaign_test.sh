#!/bin/sh
# campaign_test.sh VIA-SIM: each seed of a campaign runs once, whatever was interrupted.
set -e
log=$(mktemp)
trap 'rm -f "$log" "$log.said"' EXIT

# worlds_run FIRST COUNT WORLDS: so many are not in the log yet
worlds_run() {
    "$1" --quiet --seed "$2" --seeds "$3" --log "$log" --block 2 --tree a-tree >"$log.said"
    worlds=worlds
    test "$4" != 1 || worlds=world
    grep -q "^$4 $worlds, " "$log.said" || { echo "expected $4:"; cat "$log.said" "$log"; exit 1; }
}

worlds_run "$1" 10 5 5
test "$(wc -l <"$log")" = 3
grep -q ' a-tree lossless 10\.\.11 2 worlds, 0 bad, ' "$log"
worlds_run "$1" 10 5 0
worlds_run "$1" 8 9 4
test "$(wc -l <"$log")" = 5
sed -i 2d "$log"
worlds_run "$1" 8 9 2
sed -i '1s/0 bad/1 bad/' "$log"
worlds_run "$1" 8 9 2
# refuses ARGUMENT...: a wrong command line, or a log that is none
refuses() {
    code=0
    timeout 20 "$sim" --quiet "$@" 2>"$log.said" || code=$?
    test $code = 2 || { echo "$*: $code"; exit 1; }
}
sim=$1

# The last seeds of all.
last=18446744073709551615
rm "$log"
worlds_run "$1" 18446744073709551613 3 3
worlds_run "$1" 18446744073709551613 3 0
worlds_run "$1" $last 1 0
refuses --seed $last --seeds 2
refuses --seed $last --seeds 2 --log "$log"

# What the next run could not read.
refuses --seed 1 --log "$log" --tree 'two words'
refuses --seed 1 --log "$log" --tree ''
# A line whose end was lost.
printf %s "$(cat "$log")" >"$log.cut"
mv "$log.cut" "$log"
worlds_run "$1" 1 1 1
worlds_run "$1" 1 1 0
echo nonsense >>"$log"
refuses --seed 1 --log "$log"
grep -q "line 4 .*'nonsense'" "$log.said"
refuses --seed 1 --log /dev/full
grep -q 'no regular file' "$log.said"
if test "$(id -u)" != 0; then
    chmod 222 "$log"
    refuses --seed 1 --log "$log"
fi
