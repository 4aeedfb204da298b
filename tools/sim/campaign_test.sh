#!/bin/sh
# campaign_test.sh VIA-SIM: each seed of a campaign runs once, whatever was interrupted.
set -e
log=$(mktemp)
trap 'rm -f "$log" "$log.said"' EXIT

# worlds_run FIRST COUNT WORLDS: so many are not in the log yet
worlds_run() {
    "$1" --quiet --seed "$2" --seeds "$3" --log "$log" --block 2 --tree a-tree >"$log.said"
    grep -q "^$4 worlds" "$log.said" || { echo "expected $4:"; cat "$log.said" "$log"; exit 1; }
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
echo nonsense >>"$log"
if "$1" --quiet --seed 1 --log "$log"; then exit 1; fi
