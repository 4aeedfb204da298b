#!/bin/sh
# bench_help_test.sh VIA: the help of `via bench` and of each kind fits a screen, and tells of that
# kind's options alone.
via=$1
kinds=$("$via" bench --help | sed -n '/^Subcommands/,/^$/s/^  \([a-z]*\) .*/\1/p')
test -n "$kinds" || exit 1
for kind in '' $kinds; do
    help=$("$via" bench $kind --help) || exit 1
    printf '%s\n' "$help" | awk -v of="via bench $kind --help" '
        length > 100 { print of ": a line of " length " columns"; bad = 1 }
        END { if (NR > 50) { print of ": " NR " lines"; bad = 1 } exit bad }' || exit 1
    case $kind in
        bandwidth | rate) continue ;;
    esac
    case $help in
        *--depth*)
            echo "via bench $kind --help tells of --depth"
            exit 1 ;;
    esac
done
