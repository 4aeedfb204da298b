#!/bin/sh
# libfabric's own fi_pingpong between two processes, bytes checked, 64 bytes to 1 MB:
#   pingpong.sh FOLDER-OF-PROVIDER PORT DEVICE PROVIDER ENDPOINT-TYPE
# ENDPOINT-TYPE: as fi_pingpong has them, or "native", our own rdm.
# DEVICE: "shm", or "udp" or "auto", then in two network namespaces that a cable (veth) joins.
# PORT: where the two sides meet. Ends with 77, which means skipped, where that is not allowed.
folder=$1 port=$2 device=$3 provider=$4 type=$5
if [ "$type" = native ]; then
    type=rdm
    export FI_VIA_RDM=1
fi
a=mpi-$$-a
b=mpi-$$-b
server=
remove() {
    [ -z "$server" ] || kill $server 2>/dev/null
    for name in $a $b; do ip netns delete $name 2>/dev/null; done
    [ ! -e said.$port ] || { cat said.$port; rm -f said.$port; }
}
trap remove EXIT
trap 'exit 1' INT TERM
here=
there=
host=127.0.0.1
if ! command -v fi_pingpong >/dev/null; then
    echo "skipped: no fi_pingpong here (libfabric-bin)"
    exit 77
fi
if [ "$device" != shm ]; then
    if ! ip netns add $a || ! ip netns add $b ||
       ! ip link add via0 netns $a type veth peer name via0 netns $b; then
        echo "skipped: no network namespaces here (needs the administrator, and ip of iproute2)"
        exit 77
    fi
    last=1
    for name in $a $b; do
        ip -n $name address add 10.97.43.$last/24 dev via0 || exit 1
        ip -n $name link set via0 up && ip -n $name link set lo up || exit 1
        last=$((last + 1))
    done
    here="ip netns exec $a"
    there="ip netns exec $b"
    host=10.97.43.1
    device=$device:via0
fi
export FI_PROVIDER_PATH="$folder" FI_VIA_DEVICE="$device"
options="-p $provider -e $type -I 50 -c"
$here fi_pingpong $options -B $port >said.$port 2>&1 &
server=$!
# The server listens soon; until then the client is refused at once.
tries=0
until $there fi_pingpong $options -P $port $host; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] && kill -0 $server || exit 1
    sleep 0.1
done
wait $server
status=$?
server=
exit $status
