// Worlds whose hosts have interfaces in several networks.
#include <algorithm>
#include <iterator>

#include "sim/draws.hpp"

namespace via::sim {

namespace {

using device::sim::Cut;

device::sim::StormyOptions& weather_of(DatagramWorld& world, std::uint32_t network) {
    return network == 0 ? world.weather : world.rails.others[network - 1].weather;
}

void shuffle(Random& random, std::vector<std::uint32_t>& numbers) {
    for (std::size_t n = numbers.size(); n > 1; --n)
        std::swap(numbers[n - 1], numbers[random.below(n)]);
}

/// In an order of its own, or in one that all hosts have, with a first network that all are in.
std::vector<std::uint32_t> draw_interfaces(Random& random, std::uint32_t networks, bool in_all,
                                           bool crossed) {
    std::vector<std::uint32_t> interfaces;
    for (std::uint32_t network = 0; network < networks; ++network)
        if (in_all || (network == 0 && !crossed) || random.chance(75))
            interfaces.push_back(network);
    if (interfaces.empty()) interfaces.push_back(0);
    if (crossed) shuffle(random, interfaces);
    return interfaces;
}

/// Some are far faster or shorter than others.
void draw_networks(Random& random, std::uint32_t count, DatagramWorld& world) {
    constexpr std::int64_t eighths[] = {1, 3, 8, 8, 16};
    constexpr std::uint32_t lengths[] = {548, 1'472, 8'972};
    const Duration way = world.weather.link.delay_max;
    for (std::uint32_t n = 1; n < count; ++n) {
        OtherNetwork& other = world.rails.others.emplace_back();
        other.weather.link =
            draw_link(random, nanoseconds(way.ns * eighths[random.below(std::size(eighths))] / 8));
        other.weather.links_differ = random.chance(60);
        other.datagram_max =
            random.chance(60) ? world.port.datagram_max : lengths[random.below(std::size(lengths))];
    }
}

/// Nothing is lost and nothing fits less; for what travels twice, late or slowly nobody gives up.
void calm(DatagramWorld& world, device::sim::StormyOptions& weather) {
    device::sim::LinkOptions& link = weather.link;
    link.loss = link.burst_begin = link.corruption = link.forged_unreachable = 0;
    link.fits_min = link.fits_max = 65'507;
    link.queue_bytes = ~0U;
    link.reordering_max = std::min(link.reordering_max, link.delay_max);
    weather.cuts.clear();
    world.length_changes_permille = world.pauses_permille = 0;
    world.strangers_permille = world.strangers_see = 0;
    world.port.receive_room = std::max(world.port.receive_room, 212'992U);
}

/// A host's cable, or all cables of a network; often one way only.
void draw_cut(Random& random, Time begin, Time end, std::uint32_t network, DatagramWorld& world) {
    device::sim::NodeId node = device::sim::any_node;
    if (random.chance(70)) {
        const auto host = static_cast<std::uint32_t>(random.below(world.hosts));
        const std::vector<std::uint32_t>& interfaces = world.rails.interfaces[host];
        const auto found = std::ranges::find(interfaces, network);
        if (found == interfaces.end()) return;
        node = number_of_interface(host, static_cast<std::uint32_t>(found - interfaces.begin()));
    }
    std::vector<Cut>& cuts = weather_of(world, network).cuts;
    const std::uint64_t ways = random.below(4);
    if (ways != 0) cuts.push_back({node, device::sim::any_node, begin, end});
    if (ways != 1) cuts.push_back({device::sim::any_node, node, begin, end});
}

/// Whenever, and several at once.
void draw_cuts_at_random(Random& random, const Parameters& p, DatagramWorld& world) {
    const Duration all = working_time(p);
    const Duration longest =
        random.chance(30) ? world.weather.link.delay_max * 20 : world.silence * 2;
    for (auto n = random.below(12); n != 0; --n) {
        const Time begin = Time{} + draw_below(random, all);
        const auto network =
            static_cast<std::uint32_t>(random.below(1 + world.rails.others.size()));
        draw_cut(random, begin, begin + draw_below(random, longest), network, world);
    }
}

/// Never two networks at once, and time enough between to use again what is mended.
void draw_cuts_by_turns(Random& random, const Parameters& p, DatagramWorld& world) {
    for (Time now{};;) {
        const Time begin = now + world.silence + draw_below(random, world.silence);
        now = begin + draw_below(random, world.silence * 3);
        if (begin > Time{} + working_time(p)) return;
        const auto network =
            static_cast<std::uint32_t>(random.below(1 + world.rails.others.size()));
        draw_cut(random, begin, now, network, world);
    }
}

void make_rails_steady(Random& random, Parameters& p) {
    DatagramWorld& world = p.datagram;
    for (std::uint32_t network = 0; network <= world.rails.others.size(); ++network)
        calm(world, weather_of(world, network));
    // A cable that was mended is asked four times a second, or as often as answers may come.
    world.silence = std::max(milliseconds(1'000), world.weather.link.delay_max * 400) *
                    static_cast<std::int64_t>(random.between(1, 3));
    work_for(world.silence * static_cast<std::int64_t>(random.between(5, 15)), p);
    draw_cuts_by_turns(random, p, world);
}

void make_stormy(Random& random, Parameters& p) {
    DatagramWorld& world = p.datagram;
    world.silence = world.silence * 2;  // as long as the longest way
    if (random.chance(50)) world.silence = std::max(world.silence, milliseconds(1'000));
    if (random.chance(30)) make_hostile(p);
    if (random.chance(70))
        work_for(world.silence * static_cast<std::int64_t>(random.between(2, 8)), p);
    world.weather.cuts.clear();
    if (random.chance(80)) draw_cuts_at_random(random, p, world);
}

}  // namespace

/// Hosts of one to three.
void make_rails(Parameters& p) {
    Random random(Random(p.seed ^ 0xDA7A'0000'000DULL).next());
    DatagramWorld& world = p.datagram;
    RailedWorld& rails = world.rails;
    p.nics = std::min(p.nics, 6U);
    world.hosts = std::min(world.hosts, p.nics);
    const auto networks = static_cast<std::uint32_t>(random.between(2, networks_max));
    rails.steady = random.chance(40);
    rails.routed = !rails.steady && random.chance(25);
    const bool crossed = random.chance(50);
    for (std::uint32_t host = 0; host < world.hosts; ++host)
        rails.interfaces.push_back(draw_interfaces(random, networks, rails.steady, crossed));
    draw_networks(random, networks, world);
    const bool has_keys = random.chance(30);
    if (rails.steady) {
        make_rails_steady(random, p);
    } else {
        make_stormy(random, p);
        rails.keys_everywhere = random.chance(80);
    }
    if (has_keys) draw_keys(random, world);
    // A cable that is cut is asked for signs of life, with no more keys than its other end expects.
    world.packets_per_key = 1'024;
    leave_room_for(has_keys ? sealed_more : 0, world);
}

}  // namespace via::sim
