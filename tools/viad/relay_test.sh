#!/bin/sh
# relay_test.sh VIAD: a relay on loopback addresses starts, says what it did, and ends; tables that
# are wrong, and addresses that it cannot have, are told.
viad=$1
folder=$(mktemp -d) || exit 1
trap 'kill "$pid" 2>/dev/null; rm -rf "$folder"' EXIT
# Of this process alone, since others' relays have the same port.
here=127.$(($$ / 65536 % 100 + 100)).$(($$ / 256 % 256)).$(($$ % 256))
printf 'way %s 127.0.0.1 127.0.0.1 100\n' "$here" >"$folder/table"
"$viad" --relay "$folder/table" >"$folder/said" &
pid=$!
until grep -q 'passes on' "$folder/said"; do kill -0 $pid || exit 1; done
kill -USR1 $pid
until grep -q 'relay: 0 datagrams, 0 bytes passed on' "$folder/said"; do
    kill -0 $pid || exit 1
done
# Its address is taken.
"$viad" --relay "$folder/table" 2>"$folder/why" && exit 1
grep -q "relay: $here:9742: Address already in use" "$folder/why" || { cat "$folder/why"; exit 1; }
kill $pid
wait $pid || exit 1
grep -q 'ended by signal 15' "$folder/said" || { cat "$folder/said"; exit 1; }

refuses() {
    "$viad" "$@" 2>"$folder/why"
    [ $? -eq 1 ] && grep -q "$wanted" "$folder/why" || { cat "$folder/why"; exit 1; }
}
wanted='nowhere: No such file'
refuses --relay "$folder/nowhere"
refuses "udp:127.0.0.1,ways=$folder/nowhere"
echo 'way 10.0.0.1 10.0.0.2' >"$folder/table"
wanted='table:1: want "way OWN TO NEXT NANOSECONDS"'
refuses --relay "$folder/table"
refuses "udp:127.0.0.1,ways=$folder/table"
echo '# nothing' >"$folder/table"
wanted='the table names no address of this host'
refuses --relay "$folder/table"
wanted='[Ii]s a directory\|is no file'
refuses --relay "$folder"
