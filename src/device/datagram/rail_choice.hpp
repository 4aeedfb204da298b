// Which rail of a path a packet leaves by: the one by which it is there soonest, of those that have
// room for it (docs/design/rails.md).
#pragma once

#include <cstdint>

#include "device/datagram/path.hpp"

namespace via::device::datagram {

/// Of two rails that would do. Where it makes next to no difference it is the one that the peer
/// uses, so that acknowledgements ride on answers.
inline bool is_sooner(const Path& one, const Path& other) {
    constexpr std::int64_t parts = 64;
    const auto time_of = [](const Path& rail) {
        return rail.round_trip.smoothed().ns * (rail.owes_ack() ? parts - 1 : parts);
    };
    return time_of(one) < time_of(other);
}

/// May packets leave by that rail of `first`? By those that answer, or all that are up while none
/// does.
inline bool is_in_use(const Path& first, const Path& rail) {
    return rail.first == &first && rail.stage == Path::Stage::up &&
           (rail.answers() || !first.has_rail_that_answers());
}

/// Calls `call(rail)` for each rail in use.
template <class Call>
void for_rails_in_use(const Path& first, Call call) {
    const bool any = first.has_rail_that_answers();
    for (Path* rail : first.rails)
        if (rail->stage == Path::Stage::up && (!any || rail->answers())) call(*rail);
}

/// Is a packet of that length short enough for one of them?
inline bool fits_a_rail(const Path& first, std::uint32_t packet_length) {
    bool fits = false;
    for_rails_in_use(
        first, [&](const Path& rail) { fits = fits || packet_length <= rail.datagram_max(); });
    return fits;
}

/// nullptr: none has room now. `has_room(rail)` says which have. Of rails that are too short for it
/// one is chosen only where all are.
template <class HasRoom>
Path* choose_rail(const Path& first, std::uint32_t packet_length, HasRoom has_room) {
    const bool any_fits = fits_a_rail(first, packet_length);
    Path* best = nullptr;
    for_rails_in_use(first, [&](Path& rail) {
        if (any_fits && packet_length > rail.datagram_max()) return;
        if (!has_room(rail)) {
            rail.held_back = rail.held_back || !rail.window_allows(packet_length);
        } else if (best == nullptr || is_sooner(rail, *best)) {
            best = &rail;
        }
    });
    return best;
}

}  // namespace via::device::datagram
