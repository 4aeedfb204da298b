#!/bin/sh
# Runs a conformance program, "$@", with the roles of udp in two network namespaces that a cable
# (veth) joins. Ends with 77, which means skipped, where that is not allowed.
a=via-$$-a
b=via-$$-b
remove() {
    for name in $a $b; do ip netns delete $name 2>/dev/null; done
}
trap remove EXIT
trap 'exit 1' INT TERM
if ! ip netns add $a || ! ip netns add $b ||
   ! ip link add via0 netns $a type veth peer name via0 netns $b; then
    echo "skipped: no network namespaces here (needs the administrator, and ip of iproute2)"
    exit 77
fi
last=1
for name in $a $b; do
    ip -n $name address add 10.97.41.$last/24 dev via0 || exit 1
    ip -n $name link set lo up && ip -n $name link set via0 up || exit 1
    last=$((last + 1))
done
VIA_TEST_NETWORKS="$a $b" "$@"
