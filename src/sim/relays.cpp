#include "sim/relays.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "sim/model.hpp"
#include "sim/relay_watch.hpp"

namespace via::sim {

namespace {

/// The numbers of hosts end below.
constexpr std::uint32_t first_door = 220;
constexpr std::uint32_t doors_end = first_door + 2 * relays_max;
/// Where hosts are of two networks, that one is between two relays in a row.
constexpr std::uint32_t middle = 2;

constexpr std::uint32_t door_number(std::uint32_t relay, std::uint32_t side) {
    return first_door + 2 * relay + side;
}

std::optional<std::uint32_t> number_of(const HostAddress& address) {
    for (std::uint32_t number = 0; number < doors_end; ++number)
        if (same_host(address, address_of_host(number))) return number;
    return {};
}

std::optional<HostAddress> address_of_text(std::string_view text) {
    std::uint32_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return address_of_host(number);
}

relay::Ways parse(const std::string& text) {
    auto ways = relay::Ways::parse(text, "the world's table", address_of_text);
    VIA_ASSERT(ways.has_value());
    return std::move(*ways);
}

std::string way(std::uint32_t own, std::uint32_t to, std::uint32_t next, std::uint64_t ns) {
    std::string line = "way";
    for (const std::uint64_t word :
         {std::uint64_t{own}, std::uint64_t{to}, std::uint64_t{next}, ns})
        line += ' ' + std::to_string(word);
    return line + '\n';
}

}  // namespace

Relays::Relays(const DatagramWorld& world, device::sim::DatagramNetwork& network)
    : world_(world), network_(network), deaths_(world.relays.deaths) {
    network_.set_reach(
        [this](const HostAddress& from, const HostAddress& to) { return reaches(from, to); });
    for (std::uint32_t n = 0; n < world_.relays.count; ++n) {
        Relay& relay = relays_.emplace_back(table_of_relay(n));
        for (std::uint32_t side = 0; side < 2; ++side)
            relay.doors[side].address =
                with_port(address_of_host(door_number(n, side)), relay::relay_port);
        begin(relay);
    }
}

// Networks and tables -----------------------------------------------------------------------------

std::uint32_t Relays::network_of_door(std::uint32_t relay, std::uint32_t side) const {
    return world_.relays.in_a_row && relay != side ? middle : side;
}

/// Strangers are in all networks, and nobody's addresses in none.
bool Relays::reaches(const HostAddress& from, const HostAddress& to) const {
    const auto network_of = [this](const HostAddress& address) -> std::optional<std::uint32_t> {
        const auto number = number_of(address);
        if (!number) return {};
        if (*number < world_.hosts) return network_of_host(*number);
        if (*number < first_door) return {};
        return network_of_door((*number - first_door) / 2, (*number - first_door) % 2);
    };
    const auto here = network_of(from);
    const auto there = network_of(to);
    return !here || !there || *here == *there;
}

/// Of relays side by side some hosts take this one first, others that one, whatever their peers do.
relay::Ways Relays::table_of_host(std::uint32_t host) const {
    const std::uint32_t side = network_of_host(host);
    std::string text;
    for (std::uint32_t relay = 0; relay < world_.relays.count; ++relay)
        if (network_of_door(relay, side) == side)
            text += "relay " + std::to_string(door_number(relay, side)) + '\n';
    for (std::uint32_t to = 0; to < world_.hosts; ++to) {
        if (!are_apart(host, to)) {
            text += way(host, to, to, 10);
            continue;
        }
        for (std::uint32_t relay = 0; relay < world_.relays.count; ++relay)
            if (network_of_door(relay, side) == side)
                text += way(host, to, door_number(relay, side), 20 + (relay + host / 2) % 2);
    }
    return parse(text);
}

relay::Ways Relays::table_of_relay(std::uint32_t relay) const {
    std::string text;
    if (world_.relays.in_a_row)
        text += "relay " + std::to_string(door_number(1 - relay, relay)) + '\n';
    for (std::uint32_t host = 0; host < world_.hosts; ++host) {
        const std::uint32_t side = network_of_host(host);
        const bool is_near = network_of_door(relay, side) == side;
        text += way(door_number(relay, side), host, is_near ? host : door_number(1 - relay, relay),
                    is_near ? 10 : 20);
    }
    return parse(text);
}

std::unique_ptr<device::datagram::Port> Relays::wrap(std::unique_ptr<device::datagram::Port> port,
                                                     std::uint32_t host,
                                                     device::sim::SocketId socket) {
    auto relayed = std::make_unique<relay::RelayedPort>(std::move(port), table_of_host(host));
    return std::make_unique<RelayWatch>(std::move(relayed), network_, socket);
}

// Time --------------------------------------------------------------------------------------------

Time Relays::next() const {
    Time next = Time::never();
    for (const RelayDeath& death : deaths_)
        next = earlier(next, relays_[death.relay].is_alive ? death.begin : death.end);
    for (const Relay& relay : relays_)
        for (const Door& door : relay.doors)
            if (relay.is_alive) next = earlier(next, network_.next_arrival(door.socket));
    return next.is_never() ? next : std::max(next, network_.clock().now());
}

void Relays::run() {
    network_.clock().advance_to(next());
    const Time now = network_.clock().now();
    for (Relay& relay : relays_)
        for (const Door& door : relay.doors)
            if (relay.is_alive) take(relay, door);
    std::erase_if(deaths_, [&](const RelayDeath& death) {
        Relay& relay = relays_[death.relay];
        if (relay.is_gone) return true;
        if (relay.is_alive && death.begin <= now) {
            relay.is_gone = death.for_good;
            end(relay, death.ending);
            return death.for_good;
        }
        if (relay.is_alive || death.end > now) return false;
        begin(relay);
        return true;
    });
}

void Relays::heal() {
    deaths_.clear();
    for (Relay& relay : relays_)
        if (!relay.is_alive && !relay.is_gone) begin(relay);
}

void Relays::begin(Relay& relay) {
    constexpr std::uint16_t nobodys_port = 1;  // it answers for no host
    relay.is_alive = true;
    last_dead_ = network_.clock().now();
    for (Door& door : relay.doors)
        door.socket = network_.open(with_port(door.address, nobodys_port), 0, relay::relay_port);
}

void Relays::end(Relay& relay, device::sim::Ending ending) {
    relay.is_alive = false;
    for (const Door& door : relay.doors) network_.close(door.socket, ending);
}

bool Relays::was_one_dead_since(Time since) const {
    return last_dead_ > since ||
           std::ranges::any_of(relays_, [](const Relay& relay) { return !relay.is_alive; });
}

bool Relays::are_cut_off(std::uint32_t host, std::uint32_t other) const {
    const auto is_gone = [](const Relay& relay) { return relay.is_gone; };
    return are_apart(host, other) &&
           (world_.relays.in_a_row ? std::ranges::any_of(relays_, is_gone)
                                   : std::ranges::all_of(relays_, is_gone));
}

// What is passed on -------------------------------------------------------------------------------

const Relays::Door* Relays::door_at(const Relay& relay, const HostAddress& address) const {
    const auto found = std::ranges::find_if(
        relay.doors, [&](const Door& door) { return same_host(door.address, address); });
    return found == relay.doors.end() ? nullptr : &*found;
}

std::uint64_t Relays::passed_on() const {
    std::uint64_t all = 0;
    for (const Relay& relay : relays_) all += relay.forwarder.totals().passed_on;
    return all;
}

/// All that came to that address by now.
void Relays::take(Relay& relay, const Door& door) {
    using device::datagram::NetworkErrorKind;
    while (const auto came = network_.take(door.socket)) {
        if (came->is_network_error) {
            if (came->network_error.kind != NetworkErrorKind::port_unreachable) continue;
            if (const auto notice = relay.forwarder.tell_unreachable(came->bytes))
                send(relay, *notice);
            continue;
        }
        network_.note_gone(door.socket, *came);
        const auto onward = relay.forwarder.pass_on(came->from, came->bytes);
        if (!onward) continue;
        if (const Door* const next = door_at(relay, onward->from))
            network_.pass_on(next->socket, *came, onward->to);
    }
}

void Relays::send(const Relay& relay, const relay::Forwarder::Notice& notice) {
    if (const Door* const door = door_at(relay, notice.onward.from))
        network_.send(door->socket, {notice.onward.to, notice.bytes.data(), notice.length});
}

}  // namespace via::sim
