#!/bin/sh
# Runs a conformance program, "$@", with the roles of udp in two network namespaces that a cable
# (veth) joins; or, if VIA_TEST_WEATHER is a command via-weather with its options, a wire with that
# weather; or, if VIA_TEST_RELAY is the program viad, a relay in a third one that both have a cable
# to, and nothing else. Ends with 77, which means skipped, where that is not allowed.
a=via-$$-a
b=via-$$-b
between=via-$$-r
weather=
relay=
tables=
remove() {
    [ -z "$weather" ] || { kill $weather; wait $weather; } 2>/dev/null
    [ -z "$relay" ] || { kill $relay; wait $relay; } 2>/dev/null
    [ -z "$tables" ] || rm -r "$tables"
    for name in $a $b $between; do ip netns delete $name 2>/dev/null; done
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
join_over_a_relay() {
    ip netns add $between || exit 1
    tables=$(mktemp -d)
    last=1
    for name in $a $b; do
        ip link add via0 netns $name type veth peer name via$last netns $between || exit 1
        ip -n $name address add 10.97.4$last.1/24 dev via0 || exit 1
        ip -n $name link set via0 up || exit 1
        ip -n $between address add 10.97.4$last.2/24 dev via$last || exit 1
        ip -n $between link set via$last up || exit 1
        {
            echo "way 10.97.4$last.1 10.97.4$((3 - last)).1 10.97.4$last.2 1000"
            echo "relay 10.97.4$last.2"
        } >>"$tables/ends"
        echo "way 10.97.4$last.2 10.97.4$last.1 10.97.4$last.1 500" >>"$tables/relay"
        last=$((last + 1))
    done
    ip netns exec $between "$VIA_TEST_RELAY" --relay "$tables/relay" >"$tables/said" &
    relay=$!
    until grep -q 'passes on' "$tables/said"; do kill -0 $relay && sleep 0.05 || exit 1; done
    export OPENVIA_OPTIONS="ways=$tables/ends"
}
trap remove EXIT
trap 'exit 1' INT TERM
if ! ip netns add $a || ! ip netns add $b ||
   ! ip link add via0 netns $a type veth peer name via0 netns $b; then
    echo "skipped: no network namespaces here (needs the administrator, and ip of iproute2)"
    exit 77
fi
ip -n $a link delete via0 && ip -n $a link set lo up && ip -n $b link set lo up || exit 1
if [ -n "$VIA_TEST_WEATHER" ]; then
    join_in_bad_weather
elif [ -n "$VIA_TEST_RELAY" ]; then
    join_over_a_relay
else
    join_by_cable
fi
VIA_TEST_NETWORKS="$a $b" "$@"
