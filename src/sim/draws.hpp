// What several kinds of worlds of datagrams draw.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "sim/parameters.hpp"

namespace via::sim {

constexpr std::uint32_t sealed_more = 24;  ///< bytes by which keys make a packet longer

device::sim::LinkOptions draw_link(Random& random, Duration way);
/// Of links between `nodes`, within `all`, each for `longest` at most.
std::vector<device::sim::Cut> draw_cuts(Random& random, std::uint32_t nodes, Duration all,
                                        Duration longest);
/// From 0 on, below `end`.
Duration draw_below(Random& random, Duration end);
void draw_keys(Random& random, DatagramWorld& world);
/// How long programs work.
Duration working_time(const Parameters& p);
/// Programs work for so long, and wait for each other as long as they need for that.
void work_for(Duration all, Parameters& p);
/// Nothing is lost, nobody stands still, and there are no strangers.
void make_fair(DatagramWorld& world);
/// No interface and no way is too short for a packet of the least length and that many bytes more.
void leave_room_for(std::uint32_t more, DatagramWorld& world);

// Kinds
void make_hostile(Parameters& p);
void make_relays(Parameters& p);
void make_rails(Parameters& p);

}  // namespace via::sim
