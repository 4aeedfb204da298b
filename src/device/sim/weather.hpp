// What the network does to what travels through it. Whoever carries something asks for the fate of
// every parcel; how long it takes is all that a fair day decides. Loss, duplicates, corruption,
// reordering and partitions are decided by stormy weather (stormy_weather.hpp), and suffered by
// datagrams only.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "base/random.hpp"
#include "base/time.hpp"

namespace via::device::sim {

using NodeId = std::uint32_t;
constexpr NodeId no_node = ~NodeId{0};

/// One parcel about to travel.
struct Passage {
    NodeId from = 0;
    NodeId to = 0;
    Time sent{};
    std::uint32_t length = 0;  ///< bytes of header and payload
};

struct Fate {
    Duration delay{};  ///< from sending to arriving
    // What happens to datagrams only.
    bool lost = false;
    bool duplicated = false;
    Duration second_delay{};       ///< of the duplicate
    std::uint64_t corruption = 0;  ///< not 0: bytes arrive changed, how is drawn from this seed
    std::uint32_t fits = 0;        ///< not 0: lost, and the sender is told what length would not be
    bool told_unreachable = false;  ///< the sender is told that nobody takes datagrams there
};

/// Uniform in [low, high], neither of them negative.
Duration draw(Random& random, Duration low, Duration high);

class Weather {
public:
    virtual ~Weather() = default;
    /// Decides; called once for each parcel, in the order of sending.
    virtual Fate fate(const Passage& passage) = 0;
};

struct FairWeatherOptions {
    Duration delay_min = nanoseconds(500);  ///< a link's own delay is drawn between these two
    Duration delay_max = microseconds(5);
    Duration jitter_max = nanoseconds(200);  ///< drawn anew for each parcel
    std::int64_t ns_per_kilobyte = 100;      ///< of the wire: parcels of a link follow each other
};

/// Every link has its delay and its speed; nothing is lost. Decided by the seed alone: a link's
/// delays do not depend on what other links carry.
class FairWeather final : public Weather {
public:
    FairWeather(std::uint64_t seed, const FairWeatherOptions& options)
        : seed_(seed), options_(options) {}

    Fate fate(const Passage& passage) override;

private:
    struct Link {
        Random random;
        Duration delay;
        Time free_at{};  ///< when the wire can take the next parcel
    };
    Link& link_of(NodeId from, NodeId to);

    std::uint64_t seed_;
    FairWeatherOptions options_;
    std::map<std::pair<NodeId, NodeId>, Link> links_;
};

}  // namespace via::device::sim
