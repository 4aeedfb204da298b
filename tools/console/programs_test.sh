#!/bin/sh
# programs_test.sh BIN: what all tools owe to whoever starts them, of the programs in folder BIN.
bin=$1
PATH=$bin:$PATH
trap 'rm -f "$said" "$said.pid"' EXIT
said=$(mktemp)
failed=0

# wants CODE SHELL-COMMAND: it ends with that exit code
wants() {
    sh -c "$2" >"$said" 2>&1
    code=$?
    test $code = "$1" && return
    echo "$2: exit code $code, not $1: $(cat "$said")"
    failed=1
}

# Complaints that cannot be written are lost, and no more than that.
for nowhere in '2>/dev/full' '2>&-'; do
    wants 1 "via stat 1 $nowhere"
    wants 1 "via bench report /nonexist $nowhere"
    wants 1 "viad nonsense $nowhere"
    wants 2 "via-sim --trace /nonexist/x $nowhere"
done

# Output that cannot be written is no success.
for command in 'via stat --help' 'via info' 'via info --json' 'via bench --help' \
    'via-weather --help' 'viad --help'; do
    wants 1 "$command >/dev/full"
done
wants 2 'via-sim --seeds 3 >/dev/full'
wants 2 'via-sim --seed 5 --quiet --trace /dev/full'
wants 1 'via info >/dev/full'
grep -q 'No space left' "$said" || { echo "via does not say why: $(cat "$said")"; failed=1; }

# Whoever asks for help gets it, and a word that is no command is named.
for command in 'via help' 'via help bench' 'via help bench rate' 'via help mpirun' \
    'via help sockets' 'via --version' 'via-sim --version' 'viad --version'; do
    wants 0 "$command"
    grep -qE 'OpenVIA|Usage|MPIRUN' "$said" || { echo "$command: $(cat "$said")"; failed=1; }
done
for command in 'via nonsense' 'via help nonsense' 'via bench nonsense' \
    'via help bench nonsense'; do
    wants 2 "$command"
    grep -qE '"nonsense".*(info, stat|latency, bandwidth)' "$said" ||
        { echo "$command: $(cat "$said")"; failed=1; }
done
wants 2 via
grep -q 'info, stat' "$said" || { echo "via: which commands there are: $(cat "$said")"; failed=1; }

# What is closed is opened, so that no file of ours takes its place.
wants 0 'via-sim --seeds 2 >&-'
pair='--size 8 --rounds 1 --keep-disturbed --near-below 1 --far-above 1e6 --max-seconds 20'
wants 0 "via bench latency $pair <&- >&-"
wants 0 "via bench latency $pair >&- 2>&-"

# What is no number is in no range.
for option in 'compare A B --tolerance' 'latency --near-below' 'latency --far-above'; do
    wants 2 "via bench $option nan"
done
wants 2 'via stat --interval nan'
wants 2 'via-sim --seeds 0'
wants 2 'via-weather --between left,right --loss nan'
for number in -1 18446744073709551616; do
    for command in 'via-sim --seed' 'via-weather --seed' 'via-weather --queue'; do
        wants 2 "$command $number"
        grep -q -e "$number is no number in" "$said" && continue
        echo "$command $number does not say why: $(cat "$said")"
        failed=1
    done
done

# Whoever cannot ask does not know that there is nobody.
(viad loopback:programs >/dev/null & echo $! >"$said.pid"; wait) &
until via stat "$(cat "$said.pid")" 2>/dev/null | grep -q NIC; do :; done
wants 1 'ulimit -n 5; via stat'
if grep -q 'no process of yours' "$said"; then
    echo "via stat with few descriptors: $(cat "$said")"
    failed=1
fi
kill "$(cat "$said.pid")"

# Why a NIC cannot be opened, whatever the library logs.
OPENVIA_LOG_LEVEL=0
export OPENVIA_LOG_LEVEL
for command in 'viad nonsense' 'via info nonsense'; do
    wants 1 "$command"
    grep -q "no NIC has this name" "$said" && continue
    echo "$command does not say why: $(cat "$said")"
    failed=1
done

exit $failed
