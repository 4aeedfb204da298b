#!/bin/sh
# bench_help_test.sh VIA: the help of `via bench` and of each kind fits a screen, and tells of that
# kind's options alone.
via=$1
kinds=$("$via" bench --help | sed -n '/^Subcommands/,/^$/s/^  \([a-z]*\) .*/\1/p')
test -n "$kinds" || exit 1
for kind in '' $kinds; do
    "$via" bench $kind --help | awk -v of="via bench $kind --help" '
        length > 100 { print of ": a line of " length " columns"; bad = 1 }
        END { if (NR == 0 || NR > 50) { print of ": " NR " lines"; bad = 1 } exit bad }' || exit 1
done
# An option, and the kinds that have it.
while read -r option has; do
    for kind in $kinds; do
        case " $has " in *" $kind "*) wanted=yes ;; *) wanted=no ;; esac
        told=no
        "$via" bench "$kind" --help | grep -q "^  \(-.,\)\?$option\>" && told=yes
        if test $told != $wanted; then
            echo "via bench $kind --help tells of $option: $told, not $wanted"
            exit 1
        fi
    done
done <<'END'
--depth bandwidth rate
--senders bandwidth rate
--peer latency bandwidth rate
--vis latency bandwidth rate
--against latency bandwidth rate suite
--size latency bandwidth rate operations register
--device latency bandwidth rate operations register suite
--max-seconds latency bandwidth rate operations suite serve
--json latency bandwidth rate operations register
--output suite
--address serve
--markdown report
--tolerance compare
END
