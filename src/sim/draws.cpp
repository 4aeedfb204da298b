#include "sim/draws.hpp"

#include <algorithm>
#include <utility>

#include "wire/packet.hpp"

namespace via::sim {

namespace {

/// Chances of a link, parts of a million: none in many worlds, little in most, terrible in a few.
std::uint32_t draw_chance(Random& random, std::uint32_t percent_of_worlds, std::uint32_t high) {
    const bool has = random.chance(percent_of_worlds);
    const std::uint64_t few = random.below(high / 20 + 1ULL);
    const std::uint64_t many = random.below(high + 1ULL);
    if (!has) return 0;
    return static_cast<std::uint32_t>(random.chance(60) ? few : many);
}

}  // namespace

device::sim::LinkOptions draw_link(Random& random, Duration way) {
    device::sim::LinkOptions link;
    const auto up_to = [&](std::int64_t ns) {
        return nanoseconds(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(ns))));
    };
    link.delay_max = way;
    link.delay_min = random.chance(50) ? nanoseconds(way.ns / 2) : nanoseconds(way.ns / 20);
    link.jitter_max = random.chance(60) ? up_to(way.ns / 2) : nanoseconds(0);
    if (random.chance(50)) {
        // A packet of 1500 bytes takes a tenth to a thousandth of the way.
        link.ns_per_kilobyte =
            1 + static_cast<std::int64_t>(random.between(1, 100)) * way.ns / 1'500;
        link.queue_bytes = 1'500 * static_cast<std::uint32_t>(random.between(4, 100));
    }
    link.loss = draw_chance(random, 70, 300'000);
    link.burst_begin = draw_chance(random, 40, 50'000);
    link.burst_end = static_cast<std::uint32_t>(random.between(20'000, 500'000));
    link.duplication = draw_chance(random, 50, 200'000);
    link.reordering = draw_chance(random, 50, 300'000);
    link.reordering_max = up_to(4 * way.ns + 1);
    link.corruption = draw_chance(random, 50, 100'000);
    link.forged_unreachable = draw_chance(random, 30, 50'000);
    if (random.chance(40)) {
        link.fits_min = static_cast<std::uint32_t>(random.between(548, 1'500));
        link.fits_max = link.fits_min + static_cast<std::uint32_t>(random.below(9'000));
        if (random.chance(50)) link.fits_period = nanoseconds(20 * way.ns);
        link.tells_length = random.chance(50);
    }
    return link;
}

std::vector<device::sim::Cut> draw_cuts(Random& random, std::uint32_t hosts, Duration all,
                                        Duration longest) {
    std::vector<device::sim::Cut> cuts;
    for (auto n = random.below(5); n != 0; --n) {
        const auto end = [&] {
            return random.chance(20) ? device::sim::any_node
                                     : static_cast<device::sim::NodeId>(random.below(hosts));
        };
        const Time begin{
            static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(all.ns)))};
        const auto length = random.below(static_cast<std::uint64_t>(longest.ns));
        device::sim::Cut cut{end(), end(), begin,
                             begin + nanoseconds(static_cast<std::int64_t>(length))};
        cuts.push_back(cut);
        std::swap(cut.from, cut.to);
        if (random.chance(60)) cuts.push_back(cut);
    }
    return cuts;
}

Duration working_time(const Parameters& p) {
    return nanoseconds(p.step_max.ns / 2 * p.steps / p.nics + 1);
}

Duration draw_below(Random& random, Duration end) {
    return nanoseconds(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(end.ns))));
}

void work_for(Duration all, Parameters& p) {
    p.step_max = nanoseconds(all.ns * 2 * p.nics / p.steps + 200);
    p.listen_max = std::max(p.listen_max, p.step_max * 60);
    p.request_max = std::max(p.request_max, p.step_max * 120);
}

void make_fair(DatagramWorld& world) {
    const Duration way = world.weather.link.delay_max;
    world.weather = {};
    world.weather.link.delay_min = world.weather.link.delay_max = way;
    world.port.receive_room = std::max(world.port.receive_room, 212'992U);
    world.length_changes_permille = world.pauses_permille = 0;
    world.strangers_permille = world.strangers_see = 0;
}

void make_hostile(Parameters& parameters) {
    Random random(Random(parameters.seed ^ 0xDA7A'0000'0002ULL).next());
    DatagramWorld& world = parameters.datagram;
    world.strangers_permille = static_cast<std::uint32_t>(random.between(100, 500));
    world.strangers_see = static_cast<std::uint32_t>(random.between(10, 500));
    world.strangers_forge = true;
    parameters.weights.close = static_cast<std::uint32_t>(random.between(1, 6));
    world.crash_percent = 50;
}

void leave_room_for(std::uint32_t more, DatagramWorld& world) {
    const std::uint32_t least = wire::packet_length_min + more;
    const auto widen = [least](std::uint32_t& length) { length = std::max(length, least); };
    const auto widen_link = [&](device::sim::LinkOptions& link) {
        widen(link.fits_min);
        widen(link.fits_max);
    };
    widen(world.datagram_min);
    widen(world.port.datagram_max);
    widen_link(world.weather.link);
    for (OtherNetwork& other : world.rails.others) {
        widen(other.datagram_max);
        widen_link(other.weather.link);
    }
}

void draw_keys(Random& random, DatagramWorld& world) {
    world.keys = random.chance(50) ? KeysOf::cluster : KeysOf::hosts;
    world.packets_per_key = 64;
    world.key_age = world.silence * static_cast<std::int64_t>(random.between(1, 20));
}

}  // namespace via::sim
