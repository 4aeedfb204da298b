#!/bin/sh
# Two programs are recorded, and their traces go through caches of many shapes.
# sweep_test.sh VIA VIA-PAGES
set -eu
via=$1
pages=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_RUNTIME_DIR="$folder"
for kernel in fft water-nsquared; do
    "$via" lab record -o "$folder/$kernel.trace" -- "$pages" "$kernel" 8
done
said=$("$via" lab sweep "$folder/fft.trace" "$folder/water-nsquared.trace" --per-host 2 \
    --divide 64 --divide-lines 8 -o "$folder/pictures")
echo "$said"
test "$(echo "$said" | grep -c '^C')" -eq 36
grep -q '>C512 L16 A8</text>' "$folder/pictures/sweep.svg"
test "$(grep -c '^C' "$folder/pictures/sweep.tsv")" -eq 36
# Whatever the order of a run was, lines that are longer bring what is touched next.
echo "$said" | awk '/^C512 L1 A4/ { short = $4 } /^C512 L16 A4/ { long = $4 }
    END { exit !(short > 3 * long && long > 0) }'
