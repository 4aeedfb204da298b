#include "sim/parameters.hpp"

#include <algorithm>
#include <cstdio>

#include "base/random.hpp"

namespace via::sim {

namespace {

/// Small numbers as often as large ones.
std::uint32_t draw_scaled(Random& random, std::uint32_t low, std::uint32_t high) {
    std::uint64_t top = low;
    while (top < high && random.chance(60)) top = top * 2 + 1;
    return static_cast<std::uint32_t>(random.between(low, top < high ? top : high));
}

/// Sometimes nothing at all: worlds differ in what they do, not only in how much of it.
std::uint32_t draw_weight(Random& random, std::uint32_t usual) {
    return static_cast<std::uint32_t>(random.between(1, 2ULL * usual));
}

Weights draw_weights(Random& random) {
    Weights weights;
    weights.make_vi = draw_weight(random, 6);
    weights.destroy_vi = random.chance(70) ? draw_weight(random, 2) : 0;
    weights.listen = draw_weight(random, 6);
    weights.answer = draw_weight(random, 20);
    weights.connect = draw_weight(random, 12);
    weights.disconnect = random.chance(80) ? 1 : 0;
    weights.post_receive = draw_weight(random, 30);
    weights.post_send = draw_weight(random, 30);
    weights.take = draw_weight(random, 30);
    weights.memory = random.chance(80) ? draw_weight(random, 4) : 1;
    weights.queues = random.chance(50) ? draw_weight(random, 2) : 0;
    weights.close = random.chance(20) ? 1 : 0;
    return weights;
}

/// Far smaller than a program's memory.
memory::CacheShape draw_table(Random& random) {
    memory::CacheShape table;
    table.line = 1U << random.below(4);
    table.ways = static_cast<std::uint32_t>(random.between(1, 4));
    table.entries = static_cast<std::uint32_t>(table.line * table.ways * random.between(1, 4));
    table.replacement = static_cast<memory::Replacement>(random.below(3));
    table.seed = random.next();
    return table;
}

const char* level_name(engine::Reliability reliability) {
    switch (reliability) {
        case engine::Reliability::unreliable:
            return "unreliable";
        case engine::Reliability::delivery:
            return "delivery";
        case engine::Reliability::reception:
            return "reception";
    }
    return "?";
}

}  // namespace

Parameters draw_parameters(std::uint64_t seed) {
    Random random(Random(seed).next());  // neighbouring seeds shall have nothing in common
    Parameters p;
    p.seed = seed;
    p.nics = static_cast<std::uint32_t>(random.between(2, random.chance(50) ? 3 : 8));
    p.steps = static_cast<std::uint32_t>(random.between(500, 4000));
    p.vis_max = static_cast<std::uint32_t>(random.between(1, 6));
    p.arena_length = 4096 * random.between(32, 128);
    if (random.chance(50)) {
        p.refuse_percent = static_cast<std::uint32_t>(random.between(1, 70));
        p.short_percent = static_cast<std::uint32_t>(random.between(1, 70));
    }
    p.fault_percent = random.chance(60) ? static_cast<std::uint32_t>(random.between(1, 8)) : 0;
    p.segments_max = draw_scaled(random, 1, 30);
    p.queue_entries_max = draw_scaled(random, 1, 64);
    p.step_max = nanoseconds(static_cast<std::int64_t>(random.between(200, 20'000)));
    p.turn_delay_max = nanoseconds(static_cast<std::int64_t>(random.between(50, 5'000)));
    p.weights = draw_weights(random);
    p.limits.descriptors_per_queue_max = random.chance(50) ? draw_scaled(random, 2, 64) : 1024;
    p.limits.turn_frames_max = draw_scaled(random, 1, 64);
    p.limits.regions_max = 1024;
    p.limits.vis_max = 1024;
    p.limits.completion_queues_max = 64;
    p.limits.paths_max = 64;
    p.fabric.payload_max = static_cast<std::uint32_t>(
        random.chance(50) ? random.between(engine::connect_payload_max, 600)
                          : random.between(engine::connect_payload_max, 4096));
    p.fabric.frames_max = draw_scaled(random, 1, 64);
    const auto profiles = random.between(1, 3);
    for (std::uint64_t n = 0; n < profiles; ++n) {
        // Few bytes, or up to 16 frames; some dozens of them fit into the memory.
        const std::uint64_t long_max =
            std::min<std::uint64_t>(16ULL * p.fabric.payload_max, p.arena_length / 32);
        const auto length_max = static_cast<std::uint32_t>(
            random.chance(30) ? random.between(1, 64) : random.between(64, long_max));
        p.profiles.push_back({static_cast<engine::Reliability>(1U << random.below(3)), length_max});
    }
    p.weather.delay_min = nanoseconds(static_cast<std::int64_t>(random.between(1, 2'000)));
    p.weather.delay_max =
        p.weather.delay_min + nanoseconds(static_cast<std::int64_t>(random.below(50'000)));
    p.weather.jitter_max = nanoseconds(static_cast<std::int64_t>(random.below(2'000)));
    p.weather.ns_per_kilobyte = static_cast<std::int64_t>(random.between(10, 2'000));
    if (random.chance(30)) p.table = draw_table(random);
    return p;
}

std::string to_text(const Parameters& p) {
    char text[400];
    std::snprintf(
        text, sizeof text,
        "nics=%u steps=%u vis=%u arena=%llu refuse=%u%% short=%u%% fault=%u%% segments=%u "
        "queue=%u step=%lldns turn=%lldns depth=%u burst=%u payload=%u frames=%u "
        "delay=%lld..%lld+%lldns wire=%lldns/KiB close=%u table=%u/%u/%u profiles=",
        p.nics, p.steps, p.vis_max, static_cast<unsigned long long>(p.arena_length),
        p.refuse_percent, p.short_percent, p.fault_percent, p.segments_max, p.queue_entries_max,
        static_cast<long long>(p.step_max.ns), static_cast<long long>(p.turn_delay_max.ns),
        p.limits.descriptors_per_queue_max, p.limits.turn_frames_max, p.fabric.payload_max,
        p.fabric.frames_max, static_cast<long long>(p.weather.delay_min.ns),
        static_cast<long long>(p.weather.delay_max.ns),
        static_cast<long long>(p.weather.jitter_max.ns),
        static_cast<long long>(p.weather.ns_per_kilobyte), p.weights.close, p.table.entries,
        p.table.line, p.table.ways);
    std::string result = text;
    for (const Profile& profile : p.profiles) {
        if (&profile != &p.profiles.front()) result += ',';
        result += level_name(profile.reliability);
        result += '/' + std::to_string(profile.transfer_length_max);
    }
    return result;
}

}  // namespace via::sim
