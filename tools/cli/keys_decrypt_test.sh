#!/bin/sh
# keys_decrypt_test.sh VIA TSHARK DISSECTOR HELLO: two processes talk over a sealed wire, in a
# network of their own, and are captured. With the keys that were logged the dissector reads all,
# without it names what is sealed and reads nothing.
via=$1 tshark=$2 dissector=$3 hello=$4
if [ -z "$VIA_OWN_NETWORK" ]; then
    unshare -n true 2>/dev/null || {
        echo "skipped: no network namespaces here (needs the administrator, and ip of iproute2)"
        exit 77
    }
    VIA_OWN_NETWORK=yes exec unshare -n sh "$0" "$@"
fi
folder=$(mktemp -d) || exit 1
listener=
remove() {
    [ -z "$listener" ] || { kill $listener; wait $listener; } 2>/dev/null
    rm -rf "$folder"
}
trap remove EXIT
failed() { echo "$1"; exit 1; }
ip link set lo up || exit 1
export XDG_CONFIG_HOME="$folder/config" OPENVIA_OPTIONS=secure=require
"$via" keys new >/dev/null || failed "no key"

"$tshark" -q -i lo -F pcap -w "$folder/sealed.pcap" 2>"$folder/said" &
listener=$!
until [ -s "$folder/sealed.pcap" ]; do
    kill -0 $listener 2>/dev/null || failed "no capture: $(cat "$folder/said")"
    sleep 0.05
done
# One sentence from one process to another: the dissector reckons checksums in Lua, byte by byte, so
# that megabytes would take it minutes.
talk() {
    OPENVIA_KEY_LOG="$folder/log" "$hello" hear udp:lo >"$folder/heard" 2>&1 &
    hearer=$!
    said=$(OPENVIA_KEY_LOG="$folder/log" "$hello" say udp:lo 2>&1) || failed "$said"
    wait $hearer || failed "$(cat "$folder/heard")"
}
for _ in 1 2 3; do talk; done
case $said in *"anybody who reads that file can read what is sent"*) ;;
    *) failed "the log does not say that keys are logged: $said" ;;
esac
# In the open: when that was captured, all was that came before.
(OPENVIA_OPTIONS=secure=never && export OPENVIA_OPTIONS && talk) || exit 1
until grep -qa 'Hello, neighbour!' "$folder/sealed.pcap"; do sleep 0.05; done
kill -INT $listener
wait $listener
listener=
test "$(stat -c %a "$folder/log")" = 600 || failed "others can read the keys"

# What the dissector says of a capture, a line for each datagram: 1 kind of a frame, 2 number of a
# sealed packet, 3 cipher of a sealed hello, 4 malformed, 5 wrong checksum, 6 of ICMP, 7 kind.
dissect() {
    "$tshark" -X "lua_script:$dissector" -r "$1" -T fields -E 'separator=;' -E occurrence=f \
        -e openvia.frame.kind -e openvia.sealed.number -e openvia.sealed.hello.cipher \
        -e openvia.malformed -e openvia.wrong_checksum -e icmp.type -e openvia.kind \
        >"$folder/fields" 2>"$folder/said" || failed "$(cat "$folder/said")"
}
count() { awk -F ';' "$1 { ++n } END { print n + 0 }" "$folder/fields"; }
dissect "$folder/sealed.pcap"
open=$(count '$1 != ""')
sealed=$(count '$2 != ""')
hellos=$(count '$3 != ""')
bad=$(count '$4 $5 != "" && $6 == ""')
test "$sealed" -ge 9 || failed "the dissector names $sealed sealed packets"
test "$hellos" -ge 3 || failed "the dissector names $hellos sealed hellos of 3"
test "$bad" -eq 0 || failed "the dissector finds $bad sealed packets malformed"
said=$("$via" keys decrypt "$folder/sealed.pcap" -k "$folder/log" -o "$folder/open.pcap" 2>&1) ||
    failed "$said"
opened=$(printf '%s\n' "$said" |
    sed -n 's/.*: \([0-9]*\) sealed packets opened, 0 without.*, 0 .*/\1/p')
test "${opened:-0}" -ge "$sealed" || failed "of $sealed sealed packets were opened: $said"
test "$(stat -c %a "$folder/open.pcap")" = 600 || failed "others can read what was secret"
dissect "$folder/open.pcap"
after=$(($(count '$1 != ""') - open))
test "$after" -ge 6 || failed "the dissector reads frames in $after packets of $opened"
bad=$(count '$7 == 8 && $4 $5 != "" && $6 == ""')
test "$bad" -eq 0 || failed "the dissector finds $bad of them malformed"

# Another key, and none.
sed 's/.$/0/; s/[^0]$/0/; s/[0-9a-f]\{8\}$/00000000/' "$folder/log" >"$folder/wrong"
said=$("$via" keys decrypt "$folder/sealed.pcap" -k "$folder/wrong" -o "$folder/open.pcap" 2>&1) ||
    failed "$said"
case $said in *": 0 sealed packets opened"*) ;; *) failed "opened with a wrong key: $said" ;; esac
said=$("$via" keys decrypt "$folder/log" -k "$folder/log" -o "$folder/open.pcap" 2>&1) &&
    failed "a file that is no capture is read"
case $said in *"not a pcap file"*) ;; *) failed "$said" ;; esac
said=$("$via" keys decrypt "$folder/sealed.pcap" -k "$dissector" -o "$folder/open.pcap" 2>&1) &&
    failed "a file that is no log of keys is read"
case $said in *":1: a line is: sealed"*) ;; *) failed "$said" ;; esac
echo "$opened packets opened, $after with frames"
