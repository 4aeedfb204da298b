#include "sim/giving_up.hpp"

#include <algorithm>

namespace via::sim {

namespace {

/// A hint that a port is unreachable ends a path that is silent for this long at least.
constexpr Duration hint_patience = milliseconds(3);

}  // namespace

/// Is there one of which `call(way)` is true?
template <class Call>
bool GivingUp::any_way(const Node& here, const Node& there, Call call) {
    return std::ranges::any_of(here.sockets, [&](device::sim::SocketId from) {
        return std::ranges::any_of(there.sockets,
                                   [&](device::sim::SocketId to) { return call(Way{from, to}); });
    });
}

/// Could it have answered? Who stood still from before there was a doubt asks when that is over.
bool GivingUp::was_asked(const Node& here, const Way& way, Duration one_way) const {
    if (way.here == way.there) return true;  // two ends, of which either may have asked
    const Time latest{(now() - (Time{} + one_way + one_way)).ns};
    if (network_.first_asked(way.here, way.there) > latest) return false;
    const Time heard = network_.last_heard(way.here, way.there);
    const Time doubt = heard + nanoseconds(world_.silence.ns / 3);
    return here.stood_still_from > doubt || here.stood_still_until <= std::max(latest, heard);
}

/// It was silent for the whole patience, though asked, or since a hint that nobody is there.
bool GivingUp::is_silent(const Node& here, const Way& way, Duration one_way) const {
    // It may be heard, and take nothing.
    if (network_.asks_in_vain(way.here, way.there, world_.silence, world_.silence * 3)) return true;
    const Time heard = network_.last_heard(way.here, way.there);
    if (now() - heard >= world_.silence && was_asked(here, way, one_way)) return true;
    // Who talks to itself has two ends, which hear each other at different times.
    if (way.here == way.there &&
        (now() - network_.last_gap_end(way.here, way.there) <= world_.silence ||
         network_.is_deaf_to_itself(way.here, world_.silence, world_.silence * 3)))
        return true;
    // The first hint counts, until something is heard; what is on its way then is not an answer.
    return network_.was_told_unreachable(way.here, way.there,
                                         Time{(heard - Time{}).ns - (one_way + one_way).ns},
                                         Time{(now() - Time{}).ns - hint_patience.ns});
}

/// Nothing that is said by it is heard at its other end: who gets no answer gives up. What wants
/// one may have been lost long before the last that did not.
bool GivingUp::is_deaf(const Way& way) const {
    return now() - network_.last_heard(way.there, way.here) >= nanoseconds(world_.silence.ns / 2);
}

/// Where the first interfaces are in different networks, hosts that ask for each other at once have
/// a path by each, and one may end.
bool GivingUp::may_have_two_paths(const Node& here, const Node& there) const {
    const auto& interfaces = world_.rails.interfaces;
    return !interfaces.empty() && interfaces[here.host].front() != interfaces[there.host].front();
}

/// Of several ways all by which it was heard are over.
bool GivingUp::is_silent(const Node& here, const Node& there, Duration one_way) const {
    // Of one end what it asks may be lost with a relay, of the other end later what it answers: so
    // it is heard, and has no answer for its whole patience.
    if (relays_ && Relays::are_apart(here.host, there.host) &&
        relays_->was_one_dead_since(Time{(now() - Time{}).ns - world_.silence.ns * 2}))
        return true;
    const bool has_rails = !world_.rails.interfaces.empty();  // and cables cut for one way, often
    const auto was_heard = [&](const Way& way) {
        return network_.last_heard(way.here, way.there) > Time{};
    };
    const auto is_over = [&](const Way& way) {
        return is_silent(here, way, one_way) || (has_rails && was_heard(way) && is_deaf(way));
    };
    const auto is_used = [&](const Way& way) { return was_heard(way) && !is_over(way); };
    return any_way(here, there, is_over) &&
           (may_have_two_paths(here, there) || !any_way(here, there, is_used));
}

/// By two ways at least either has heard the other one.
bool GivingUp::have_met_twice(const Node& here, const Node& there) const {
    int ways = 0;
    any_way(here, there, [&](const Way& way) {
        ways += network_.last_heard(way.here, way.there) > Time{} &&
                        network_.last_heard(way.there, way.here) > Time{}
                    ? 1
                    : 0;
        return false;
    });
    return ways > 1;
}

bool GivingUp::is_allowed(const Node& here, const Node& there, Duration one_way) const {
    if (world_.relays.steady) return false;
    if (world_.rails.steady && have_met_twice(here, there) && !may_have_two_paths(here, there))
        return false;
    return is_silent(here, there, one_way);
}

bool GivingUp::was_allowed(const Node& here, const Node& there, Time since,
                           Duration one_way) const {
    return is_silent(here, there, one_way) || any_way(here, there, [&](const Way& way) {
               return now() - network_.last_heard(way.here, way.there) >= world_.silence ||
                      network_.last_gap_end(way.here, way.there) > since ||
                      network_.last_told_unreachable(way.here, way.there) > since;
           });
}

}  // namespace via::sim
