#!/bin/sh
# measure_test.sh VIA VIAD: figures of a cluster on loopback are measured at a viad, and read again.
via=$1
viad=$2
folder=$(mktemp -d) || exit 1
trap 'kill "$server" 2>/dev/null; rm -rf "$folder"' EXIT
"$viad" --bench 127.0.0.1:0 >"$folder/serve.txt" 2>&1 &
server=$!
# It says where it listens.
while ! port=$(sed -n 's/.*127\.0\.0\.1:\([0-9][0-9]*\).*/\1/p' "$folder/serve.txt" | head -1) ||
    [ -z "$port" ]; do
    kill -0 "$server" || { cat "$folder/serve.txt"; exit 1; }
done
cat >"$folder/cluster.toml" <<END
[hosts.here]
[hosts.there]
[networks.lo]
device = "udp:lo"
hosts = { here = "127.0.0.1:1", there = "127.0.0.1:$port" }
latency = "1 ms"
bandwidth = "1 GB/s"
END
"$via" topology "$folder/cluster.toml" --measure here >"$folder/links.toml" || exit 1
cat "$folder/links.toml" >>"$folder/cluster.toml"
cat "$folder/links.toml"
"$via" topology "$folder/cluster.toml" --host here --json >"$folder/table.json" || exit 1
grep -q '"to":"there"' "$folder/table.json" || { cat "$folder/table.json"; exit 1; }
# A message within a host takes less than the millisecond that stood there.
grep -q '"us":1000' "$folder/table.json" && { cat "$folder/table.json"; exit 1; }
# Nobody serves there any more: an error that names the host.
kill "$server"; wait "$server" || exit 1
"$via" topology "$folder/cluster.toml" --measure here >"$folder/out.txt" 2>&1 && exit 1
grep -q 'there over lo' "$folder/out.txt" || { cat "$folder/out.txt"; exit 1; }
# An address that it cannot have ends the viad, which says so.
"$viad" --bench 192.0.2.1:1 >"$folder/out.txt" 2>&1; code=$?
[ $code -eq 1 ] && grep -q "cannot listen at 192.0.2.1:1" "$folder/out.txt" &&
    grep -q "viad: 'via bench serve' ended with exit code" "$folder/out.txt" ||
    { echo "$code"; cat "$folder/out.txt"; exit 1; }
