#include "device/sim/stormy_weather.hpp"

#include <algorithm>

namespace via::device::sim {

namespace {

bool happens(Random& random, std::uint32_t parts_of_a_million) {
    return random.below(1'000'000) < parts_of_a_million;
}

}  // namespace

StormyWeather::Link& StormyWeather::link_of(NodeId from, NodeId to) {
    const auto found = links_.find({from, to});
    if (found != links_.end()) return found->second;
    Random random(seed_ ^ ((std::uint64_t{from} << 32 | to) * 0x9E3779B97F4A7C15ULL));
    Link link{random, {}, random.next(), {}};
    link.options = options_.links_differ ? draw_options(random) : options_.link;
    link.delay = draw(random, options_.link.delay_min, options_.link.delay_max);
    link.random = random;
    return links_.emplace(std::pair{from, to}, link).first->second;
}

/// None of a trouble as often as some of it: links differ in what they do, not only in how much.
LinkOptions StormyWeather::draw_options(Random& random) const {
    LinkOptions drawn = options_.link;
    for (std::uint32_t* chance :
         {&drawn.loss, &drawn.burst_begin, &drawn.duplication, &drawn.reordering, &drawn.corruption,
          &drawn.forged_unreachable}) {
        const bool has = random.chance(60);
        const auto some = static_cast<std::uint32_t>(random.below(*chance + 1ULL));
        *chance = has ? some : 0;
    }
    return drawn;
}

bool StormyWeather::is_cut(const Passage& passage) const {
    return std::any_of(options_.cuts.begin(), options_.cuts.end(), [&](const Cut& cut) {
        return (cut.from == any_node || cut.from == passage.from) &&
               (cut.to == any_node || cut.to == passage.to) && cut.begin <= passage.sent &&
               passage.sent < std::min(cut.end, options_.heals_at);
    });
}

bool StormyWeather::is_lost(Link& link) {
    const LinkOptions& options = link.options;
    if (happens(link.random, link.bad ? options.burst_end : options.burst_begin))
        link.bad = !link.bad;
    const bool alone = happens(link.random, options.loss);
    const bool in_burst = happens(link.random, options.burst_loss) && link.bad;
    return alone || in_burst;
}

bool StormyWeather::queue_is_full(const Link& link, const Passage& passage) const {
    const LinkOptions& options = link.options;
    if (options.ns_per_kilobyte == 0 || link.free_at <= passage.sent) return false;
    const std::int64_t waiting = (link.free_at - passage.sent).ns * 1024 / options.ns_per_kilobyte;
    return waiting + passage.length > std::int64_t{options.queue_bytes};
}

std::uint32_t StormyWeather::fits(const Link& link, Time now) const {
    const LinkOptions& options = link.options;
    const std::int64_t period = options.fits_period.ns;
    const std::uint64_t epoch =
        period == 0 ? 0 : static_cast<std::uint64_t>(earlier(now, options_.heals_at).ns / period);
    Random random(link.seed + epoch);
    return static_cast<std::uint32_t>(random.between(options.fits_min, options.fits_max));
}

Fate StormyWeather::fate(const Passage& passage) {
    Link& link = link_of(passage.from, passage.to);
    const LinkOptions& options = link.options;
    const bool healed = passage.sent >= options_.heals_at;
    // All is drawn whether it is used or not.
    Fate fate;
    const bool lost = is_lost(link);
    const Duration jitter = draw(link.random, {}, options.jitter_max);
    const bool late = happens(link.random, options.reordering);
    const Duration extra = draw(link.random, {}, options.reordering_max);
    fate.duplicated = happens(link.random, options.duplication) && !healed;
    const Duration second = draw(link.random, {}, options.reordering_max + options.jitter_max);
    const bool corrupted = happens(link.random, options.corruption) && !healed;
    const std::uint64_t corruption = link.random.next() | 1;
    fate.corruption = corrupted ? corruption : 0;
    fate.told_unreachable = happens(link.random, options.forged_unreachable) && !healed;

    const std::uint32_t length_max = fits(link, passage.sent);
    if (passage.length > length_max) {
        fate.lost = true;
        fate.fits = options.tells_length && !is_cut(passage) ? length_max : 0;
        return fate;
    }
    if (queue_is_full(link, passage)) {
        fate.lost = true;
        return fate;
    }
    const Time start = std::max(passage.sent, link.free_at);
    link.free_at = start + nanoseconds(passage.length * options.ns_per_kilobyte / 1024);
    fate.lost = !healed && (lost || is_cut(passage));
    if (late && !healed) {
        fate.delay = link.free_at - passage.sent + link.delay + jitter + extra;
    } else {
        link.last_arrival = std::max(link.last_arrival, link.free_at + (link.delay + jitter));
        fate.delay = link.last_arrival - passage.sent;
    }
    fate.second_delay = fate.delay + second;
    return fate;
}

}  // namespace via::device::sim
