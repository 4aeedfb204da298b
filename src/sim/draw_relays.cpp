// Worlds whose hosts are of two networks and meet over relays.
#include <algorithm>

#include "sim/draws.hpp"
#include "wire/envelope.hpp"

namespace via::sim {

namespace {

/// Whenever, and several at once.
std::vector<RelayDeath> draw_deaths(Random& random, const Parameters& p) {
    const DatagramWorld& world = p.datagram;
    std::vector<RelayDeath> deaths;
    for (auto n = random.below(5); n != 0; --n) {
        RelayDeath death;
        death.relay = static_cast<std::uint32_t>(random.below(world.relays.count));
        death.begin = Time{} + draw_below(random, working_time(p));
        death.end = death.begin + draw_below(random, world.silence * 2);
        death.ending =
            random.chance(50) ? device::sim::Ending::silent : device::sim::Ending::closed;
        death.for_good = random.chance(20);
        deaths.push_back(death);
    }
    return deaths;
}

/// Never both, and time enough between to find the way that works.
std::vector<RelayDeath> draw_deaths_by_turns(Random& random, const Parameters& p) {
    const Duration silence = p.datagram.silence;
    std::vector<RelayDeath> deaths;
    Time now{};
    while (true) {
        RelayDeath death;
        death.relay = static_cast<std::uint32_t>(random.below(p.datagram.relays.count));
        death.begin = now + silence + draw_below(random, silence * 2);
        death.end = death.begin + draw_below(random, silence * 3);
        death.ending =
            random.chance(50) ? device::sim::Ending::silent : device::sim::Ending::closed;
        if (death.begin > Time{} + working_time(p)) return deaths;
        now = death.end;
        deaths.push_back(death);
    }
}

/// Nothing goes wrong but that.
void make_steady(Random& random, Parameters& p) {
    DatagramWorld& world = p.datagram;
    const Duration way = world.weather.link.delay_max;
    make_fair(world);
    // Two probe timeouts of the whole way find the other one, and then its peer has to.
    world.silence =
        std::max(milliseconds(60), way * 300) * static_cast<std::int64_t>(random.between(1, 3));
    work_for(world.silence * static_cast<std::int64_t>(random.between(5, 15)), p);
}

}  // namespace

/// One or two between two networks.
void make_relays(Parameters& p) {
    Random random(Random(p.seed ^ 0xDA7A'0000'000CULL).next());
    DatagramWorld& world = p.datagram;
    RelayedWorld& relays = world.relays;
    relays.count = static_cast<std::uint32_t>(random.between(1, relays_max));
    relays.in_a_row = relays.count > 1 && random.chance(30);
    relays.steady = relays.count > 1 && !relays.in_a_row && random.chance(50);
    const bool has_keys = random.chance(25);
    if (relays.steady) {
        make_steady(random, p);
        relays.deaths = draw_deaths_by_turns(random, p);
    } else {
        world.silence = world.silence * (relays.in_a_row ? 3 : 2);  // as long as the way
        if (random.chance(40)) make_hostile(p);
        if (random.chance(50))
            work_for(world.silence * static_cast<std::int64_t>(random.between(2, 8)), p);
        const Duration longest = random.chance(50) ? world.weather.link.delay_max * 20
                                                   : nanoseconds(world.silence.ns * 3 / 2);
        world.weather.cuts.clear();
        if (random.chance(50))
            world.weather.cuts =
                draw_cuts(random, world.hosts + 2 * relays.count, working_time(p), longest);
        relays.deaths = draw_deaths(random, p);
    }
    if (has_keys) draw_keys(random, world);
    leave_room_for(wire::envelope_length(6) + (has_keys ? sealed_more : 0), world);
}

}  // namespace via::sim
