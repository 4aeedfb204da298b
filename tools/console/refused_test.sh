#!/bin/sh
# refused_test.sh BIN: where the system refuses a call, the tools in folder BIN name the call, the
# place and the system's own words.
bin=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

# refuses WORDS COMMAND...: the command fails, and says so
refuses() {
    words=$1
    shift
    said=$("$@" 2>&1 < /dev/null) && { echo "$* does not fail"; failed=1; }
    printf '%s\n' "$said" | grep -qF -- "$words" && return
    echo "$* does not say \"$words\" but: $said"
    failed=1
}

gone=$folder/gone
none="No such file or directory"
refuses "$gone/trace (open): $none" "$bin/via-sim" --seeds 1 --trace "$gone/trace"
refuses "$gone/log: open: $none" "$bin/via-sim" --seeds 1 --log "$gone/log"
refuses "$gone/results.jsonl (stat, opendir): $none" \
    "$bin/via" bench compare "$gone/results.jsonl" "$gone/b"
refuses "network namespace nobodys (open): $none" \
    "$bin/via" bench latency --device udp-sockets --netns nobodys,nobodys
cat > "$folder/mpirun.openmpi" << 'END'
#!/no/such/interpreter
END
chmod 755 "$folder/mpirun.openmpi"
touch "$folder/libvia-fi.so"
refuses "$folder/mpirun.openmpi (execv): $none" \
    env PATH="$folder:$PATH" FI_PROVIDER_PATH="$folder" "$bin/via" mpirun -n 1 true
exit $failed
