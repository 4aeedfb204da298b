#!/bin/sh
# programs_test.sh BIN: what all tools owe to whoever starts them, of the programs in folder BIN.
bin=$1
trap 'rm -f "$said"' EXIT
said=$(mktemp)
failed=0

# wants CODE SHELL-COMMAND: it ends with that exit code
wants() {
    (cd "$bin" && PATH=$bin:$PATH sh -c "$2") >"$said" 2>&1
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

exit $failed
