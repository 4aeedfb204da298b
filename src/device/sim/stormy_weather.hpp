// Weather that drops, duplicates, delays, reorders and corrupts datagrams, cuts links for a while,
// and heals at last. Each link has its own stream of chance, which every passage draws from in the
// same way: what one link carries changes nothing on another, and one kind of trouble less leaves
// the others where they were.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/time.hpp"
#include "device/sim/weather.hpp"

namespace via::device::sim {

/// One direction between two hosts. Chances are parts of a million, for each datagram.
struct LinkOptions {
    Duration delay_min = microseconds(10);  ///< a link's own is drawn between these two
    Duration delay_max = microseconds(10);
    Duration jitter_max{};               ///< drawn anew each time; nobody overtakes by it
    std::int64_t ns_per_kilobyte = 0;    ///< of the wire; 0: it has no limit
    std::uint32_t queue_bytes = ~0U;     ///< that wait for the wire; what comes then is lost
    std::uint32_t loss = 0;              ///< of each on its own
    std::uint32_t burst_begin = 0;       ///< losses in bursts (Gilbert, Elliott): from good to bad
    std::uint32_t burst_end = 100'000;   ///< from bad to good
    std::uint32_t burst_loss = 900'000;  ///< while it is bad
    std::uint32_t duplication = 0;
    std::uint32_t reordering = 0;  ///< delayed besides, so that later ones overtake
    Duration reordering_max{};
    std::uint32_t corruption = 0;          ///< bits flipped, or the end cut off
    std::uint32_t forged_unreachable = 0;  ///< a forged message that nobody takes datagrams there
    std::uint32_t fits_min = 65'507;       ///< longest datagram in one piece, drawn for a link ...
    std::uint32_t fits_max = 65'507;
    Duration fits_period{};    ///< ... and each time this has passed; 0: once
    bool tells_length = true;  ///< senders of longer ones hear of it
};

constexpr NodeId any_node = ~NodeId{0};

/// Nothing goes through from `begin` to `end`, in that direction only.
struct Cut {
    NodeId from = any_node;
    NodeId to = any_node;
    Time begin{};
    Time end{};
};

struct StormyOptions {
    LinkOptions link;
    /// Each link draws which of these troubles it has, and how much of each, up to `link`.
    bool links_differ = false;
    std::vector<Cut> cuts;
    /// From then on nothing is lost but in full queues, and nothing duplicated, corrupted or
    /// delayed beyond the jitter. never(): it stays as it is.
    Time heals_at = Time::never();
};

class StormyWeather final : public Weather {
public:
    StormyWeather(std::uint64_t seed, StormyOptions options)
        : seed_(seed), options_(std::move(options)) {}

    Fate fate(const Passage& passage) override;
    /// It heals now, whatever was planned.
    void heal(Time now) { options_.heals_at = now; }

private:
    struct Link {
        Random random;
        LinkOptions options;
        std::uint64_t seed = 0;
        Duration delay;
        bool bad = false;  ///< within a burst of losses
        Time free_at{};    ///< when the wire can take the next datagram
        Time last_arrival{};
    };
    Link& link_of(NodeId from, NodeId to);
    LinkOptions draw_options(Random& random) const;
    bool is_cut(const Passage& passage) const;
    bool is_lost(Link& link);
    bool queue_is_full(const Link& link, const Passage& passage) const;
    std::uint32_t fits(const Link& link, Time now) const;

    std::uint64_t seed_;
    StormyOptions options_;
    std::map<std::pair<NodeId, NodeId>, Link> links_;
};

}  // namespace via::device::sim
