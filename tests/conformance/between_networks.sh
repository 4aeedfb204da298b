#!/bin/sh
# Runs a conformance program, "$@", with the roles of udp in two network namespaces that a cable
# (veth) joins; or, if VIA_TEST_WEATHER is a command via-weather with its options, a wire with that
# weather. Ends with 77, which means skipped, where that is not allowed.
a=via-$$-a
b=via-$$-b
weather=
remove() {
    [ -z "$weather" ] || { kill $weather; wait $weather; } 2>/dev/null
    for name in $a $b; do ip netns delete $name 2>/dev/null; done
    [ -z "$said" ] || { cat $said; rm -f $said; }
}
join_by_cable() {
    ip link add via0 netns $a type veth peer name via0 netns $b || exit 1
    last=1
    for name in $a $b; do
        ip -n $name address add 10.97.41.$last/24 dev via0 || exit 1
        ip -n $name link set via0 up || exit 1
        last=$((last + 1))
    done
}
join_in_bad_weather() {
    said=$(mktemp)
    $VIA_TEST_WEATHER --interface via0 --between $a,$b >$said &
    weather=$!
    until grep -q ready $said; do kill -0 $weather && sleep 0.05 || exit 1; done
}
trap remove EXIT
trap 'exit 1' INT TERM
if ! ip netns add $a || ! ip netns add $b ||
   ! ip link add via0 netns $a type veth peer name via0 netns $b; then
    echo "skipped: no network namespaces here (needs the administrator, and ip of iproute2)"
    exit 77
fi
ip -n $a link delete via0 && ip -n $a link set lo up && ip -n $b link set lo up || exit 1
if [ -n "$VIA_TEST_WEATHER" ]; then join_in_bad_weather; else join_by_cable; fi
VIA_TEST_NETWORKS="$a $b" "$@"
