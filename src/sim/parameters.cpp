#include "sim/parameters.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "base/random.hpp"
#include "sim/draws.hpp"

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
    weights.share = 0;
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

/// What else a world of datagrams decides, from a stream of its own.
void draw_datagram_world(Parameters& p) {
    Random random(Random(p.seed ^ 0xDA7A'0000'0001ULL).next());
    DatagramWorld& world = p.datagram;
    p.nics = static_cast<std::uint32_t>(random.between(2, random.chance(60)   ? 3
                                                          : random.chance(60) ? 6
                                                                              : 16));
    world.hosts =
        random.chance(70) ? p.nics : static_cast<std::uint32_t>(random.between(2, p.nics));
    constexpr std::int64_t ways_ns[] = {2'000, 20'000, 200'000, 2'000'000, 20'000'000};
    const Duration way = nanoseconds(ways_ns[random.below(std::size(ways_ns))] *
                                     static_cast<std::int64_t>(random.between(1, 10)) / 4);
    // Programs do something several times per way, or seldom.
    p.step_max = nanoseconds(way.ns / static_cast<std::int64_t>(random.between(1, 20)) + 200);
    p.turn_delay_max = nanoseconds(std::min(p.turn_delay_max.ns, p.step_max.ns));
    p.listen_max = nanoseconds(way.ns * 100);
    p.request_max = nanoseconds(way.ns * 200);
    world.silence = nanoseconds(std::max<std::int64_t>(30'000'000, way.ns * 50) *
                                static_cast<std::int64_t>(random.between(1, 10)));
    world.weather.link = draw_link(random, way);
    world.weather.links_differ = random.chance(60);
    const Duration all = working_time(p);
    const Duration longest =
        random.chance(50) ? nanoseconds(20 * way.ns) : nanoseconds(world.silence.ns * 3 / 2);
    if (random.chance(50)) world.weather.cuts = draw_cuts(random, world.hosts, all, longest);
    constexpr std::uint32_t lengths[] = {548, 1'232, 1'472, 8'972, 65'507};
    world.port.datagram_max = lengths[random.below(std::size(lengths))];
    world.datagram_min = random.chance(80) ? world.port.datagram_max : 548;
    if (random.chance(20)) world.length_changes_permille = 5;
    world.port.receive_room =
        random.chance(50) ? 212'992
                          : static_cast<std::uint32_t>(random.between(
                                4ULL * world.port.datagram_max, 40ULL * world.port.datagram_max));
    world.port.kept_max = draw_scaled(random, 1, 1'024);
    if (random.chance(40)) world.port.refuse_percent = 1 + draw_scaled(random, 0, 50);
    if (random.chance(50)) {
        world.pauses_permille = static_cast<std::uint32_t>(random.between(1, 5));
        world.pause_max = random.chance(30) ? nanoseconds(world.silence.ns * 3 / 2)
                                            : nanoseconds(world.silence.ns / 8);
    }
    p.weights.close = random.chance(40) ? static_cast<std::uint32_t>(random.between(1, 4)) : 0;
    world.crash_percent = random.chance(60) ? 50 : 0;
    if (random.chance(50)) {
        world.strangers_permille = static_cast<std::uint32_t>(random.between(5, 100));
        world.strangers_see = random.chance(70) ? 2'000 : 0;
    }
}

/// Worlds of seeds below stay what they were when their seeds were kept.
constexpr std::uint64_t first_seed_with_peers = 10'000'000;

void draw_peers(Parameters& p) {
    Random random(Random(p.seed ^ 0xDA7A'0000'0004ULL).next());
    p.peer_percent = random.chance(70) ? static_cast<std::uint32_t>(random.between(5, 90)) : 0;
}

constexpr std::uint64_t first_seed_with_fast_paths = 20'000'000;

/// Many small messages, and all that is made for them.
void draw_fast_paths(Parameters& p) {
    Random random(Random(p.seed ^ 0xDA7A'0000'0006ULL).next());
    p.fast_paths = true;
    p.together_max = random.chance(70) ? draw_scaled(random, 2, 32) : 1;
    p.credit_percent = random.chance(50) ? static_cast<std::uint32_t>(random.between(20, 100)) : 0;
    p.fabric.small_max = random.chance(75) ? draw_scaled(random, 16, p.fabric.payload_max) : 0;
    if (random.chance(50)) p.segments_max = static_cast<std::uint32_t>(random.between(1, 2));
    for (Profile& profile : p.profiles)
        if (random.chance(50))
            profile.transfer_length_max = static_cast<std::uint32_t>(random.between(1, 64));
    // Mostly there is room for them, and bytes go where programs say.
    if (p.fabric.small_max != 0) p.fabric.small_max = std::max(p.fabric.small_max, 64U);
    if (random.chance(75)) p.fabric.frames_max += 8;
    if (random.chance(75)) p.table.entries = 0;
    if (random.chance(50)) p.profiles.front().reliability = engine::Reliability::delivery;
    if (p.credit_percent != 0) p.credit_percent = std::max(p.credit_percent, 60U);
}

constexpr std::uint64_t first_seed_with_segments = 30'000'000;

/// RDMA that goes straight to memory that two share; much of it, next to what goes by frames.
void draw_segments(Parameters& p) {
    Random random(Random(p.seed ^ 0xDA7A'0000'0007ULL).next());
    if (!random.chance(70)) return;
    p.share_percent = static_cast<std::uint32_t>(random.between(20, 100));
    p.weights.share = draw_weight(random, 20);
    if (random.chance(50)) p.weights.memory = 1;
}

constexpr std::uint64_t first_seed_with_pulls = 40'000'000;

/// Messages that are pulled from their senders' memory, which takes long ones, and one at a time.
void draw_pulls(Parameters& p) {
    Random random(Random(p.seed ^ 0xDA7A'0000'0008ULL).next());
    p.fabric.pulls = true;
    if (random.chance(60))
        p.fabric.pull_fails_every = static_cast<std::uint32_t>(random.between(2, 20));
    // In frames they shall not take a world's time.
    p.fabric.payload_max = static_cast<std::uint32_t>(random.between(2'048, 8'192));
    p.limits.turn_bytes_max = static_cast<std::uint32_t>(random.between(16, 128)) * 1'024;
    p.table.entries = 0;
    p.segments_max = std::min(p.segments_max, 8U);
    p.together_max = std::min(p.together_max, 2U);
    p.steps = std::min(p.steps, 2'000U);
    const auto length_max = static_cast<std::uint32_t>(random.between(80'000, 200'000));
    p.arena_length = 4'096 * (32ULL * length_max / 4'096 + 1);
    p.region_kib_max = 512;
    for (Profile& profile : p.profiles)
        if (profile.reliability != engine::Reliability::unreliable || random.chance(20))
            profile.transfer_length_max = length_max;
    if (p.profiles.front().reliability == engine::Reliability::unreliable)
        p.profiles.front() = {engine::Reliability::reception, length_max};
}

constexpr std::uint64_t first_seed_with_atomics = 50'000'000;

/// Many that change few words, of reliable VIs.
void draw_atomics(Parameters& p) {
    Random random(Random(p.seed ^ 0xDA7A'0000'0009ULL).next());
    p.atomic_percent = static_cast<std::uint32_t>(random.between(5, 60));
    for (Profile& profile : p.profiles) {
        if (profile.reliability == engine::Reliability::unreliable && random.chance(80))
            profile.reliability = engine::Reliability::delivery;
        profile.transfer_length_max = std::max(profile.transfer_length_max, 8U);
    }
}

constexpr std::uint64_t first_seed_with_shared_receives = 60'000'000;

/// VIs that take from one queue, many of them with credits.
void draw_shared_receives(Parameters& p) {
    Random random(Random(p.seed ^ 0xDA7A'0000'000AULL).next());
    p.shared_percent = static_cast<std::uint32_t>(random.between(30, 100));
    p.credit_percent = static_cast<std::uint32_t>(random.between(20, 100));
    p.vis_max = std::max(p.vis_max, static_cast<std::uint32_t>(random.between(3, 10)));
}

constexpr std::uint64_t first_seed_with_windows = 70'000'000;

/// Few, so that their handles come and go.
void draw_windows(Parameters& p) {
    Random random(Random(p.seed ^ 0xDA7A'0000'000BULL).next());
    p.window_percent = static_cast<std::uint32_t>(random.between(20, 100));
    p.limits.windows_max = static_cast<std::uint32_t>(random.between(2, 40));
    p.weights.memory += static_cast<std::uint32_t>(random.between(2, 12));
}

void make_calm(Parameters& parameters) {
    Random random(Random(parameters.seed ^ 0xDA7A'0000'0003ULL).next());
    DatagramWorld& world = parameters.datagram;
    const Duration way = world.weather.link.delay_max;
    world.weather = {};
    world.weather.link.delay_min = world.weather.link.delay_max = way;
    world.port.datagram_max = world.datagram_min = random.chance(50) ? 548 : 1'472;
    world.port.receive_room =
        world.port.datagram_max * static_cast<std::uint32_t>(random.between(4, 12));
    world.port.refuse_percent = world.length_changes_permille = 0;
    world.pauses_permille = world.strangers_permille = world.strangers_see = 0;
    parameters.weights.close = 0;
    world.calm = true;
}

void make_narrow(Parameters& parameters) {
    Random random(Random(parameters.seed ^ 0xDA7A'0000'0005ULL).next());
    DatagramWorld& world = parameters.datagram;
    device::sim::LinkOptions& link = world.weather.link;
    world.port.datagram_max = world.datagram_min = random.chance(70) ? 8'972 : 65'507;
    world.port.receive_room = 212'992;
    link.fits_min = 548;
    link.fits_max = static_cast<std::uint32_t>(random.between(3'000, 12'000));
    link.fits_period = link.delay_max * static_cast<std::int64_t>(random.between(20, 200));
    link.tells_length = random.chance(50);
    const std::uint64_t longest = parameters.arena_length / 32;
    for (auto& profile : parameters.profiles)
        profile.transfer_length_max =
            static_cast<std::uint32_t>(random.between(longest / 2, longest));
}

/// Keys change as often as can be; what goes through is a sealed packet of the least length.
void make_sealed(Parameters& parameters) {
    Random random(Random(parameters.seed ^ 0xDA7A'0000'000AULL).next());
    if (random.chance(70)) make_hostile(parameters);
    DatagramWorld& world = parameters.datagram;
    world.strangers_permille = std::max(world.strangers_permille, 100U);
    world.strangers_see = std::max(world.strangers_see, 100U);
    draw_keys(random, world);
    leave_room_for(sealed_more, world);
}

/// A NIC of the laboratory takes tens of microseconds for a message.
void make_lab(Parameters& parameters) {
    Random random(Random(parameters.seed ^ 0x1AB0'0000'0001ULL).next());
    parameters.steps = static_cast<std::uint32_t>(random.between(200, 1'500));
    parameters.step_max = microseconds(static_cast<std::int64_t>(random.between(2, 200)));
    parameters.listen_max = milliseconds(10);
    parameters.request_max = milliseconds(20);
    if (random.chance(50))
        parameters.fabric.payload_max = static_cast<std::uint32_t>(random.between(4'096, 16'384));
}

}  // namespace

std::optional<WorldKind> world_kind_of(std::string_view name) {
    for (std::size_t n = 0; n < std::size(world_kind_names); ++n)
        if (name == world_kind_names[n]) return static_cast<WorldKind>(n);
    return std::nullopt;
}

Parameters draw_parameters(std::uint64_t seed, WorldKind kind) {
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
    const bool lossless = kind == WorldKind::lossless || kind == WorldKind::lab;
    p.medium = lossless ? MediumKind::lossless : MediumKind::datagram;
    if (p.medium == MediumKind::datagram) draw_datagram_world(p);
    p.fabric.small_max = 0;
    if (seed >= first_seed_with_peers) draw_peers(p);
    if (seed >= first_seed_with_fast_paths) draw_fast_paths(p);
    if (seed >= first_seed_with_segments && kind == WorldKind::lossless) draw_segments(p);
    if (seed >= first_seed_with_pulls && kind == WorldKind::lossless) draw_pulls(p);
    if (seed >= first_seed_with_atomics) draw_atomics(p);
    if (seed >= first_seed_with_shared_receives && kind != WorldKind::lab) draw_shared_receives(p);
    if (seed >= first_seed_with_windows) draw_windows(p);
    if (kind == WorldKind::hostile) make_hostile(p);
    if (kind == WorldKind::calm) make_calm(p);
    if (kind == WorldKind::narrow) make_narrow(p);
    if (kind == WorldKind::lab) make_lab(p);
    if (kind == WorldKind::sealed) make_sealed(p);
    if (kind == WorldKind::relays) make_relays(p);
    if (kind == WorldKind::rails) make_rails(p);
    return p;
}

namespace {

std::string to_text(const RailedWorld& rails) {
    std::string text = "networks=" + std::to_string(1 + rails.others.size()) + " interfaces=";
    for (const auto& interfaces : rails.interfaces) {
        if (&interfaces != &rails.interfaces.front()) text += '/';
        for (const std::uint32_t network : interfaces) text += std::to_string(network);
    }
    for (const OtherNetwork& other : rails.others) {
        const device::sim::LinkOptions& link = other.weather.link;
        text += " way=" + std::to_string(link.delay_max.ns) +
                "ns wire=" + std::to_string(link.ns_per_kilobyte) +
                "ns/KiB loss=" + std::to_string(link.loss) +
                " longest=" + std::to_string(other.datagram_max) +
                " cuts=" + std::to_string(other.weather.cuts.size());
    }
    return text + (rails.steady ? " steady" : "") + (rails.routed ? " routed" : "") +
           (rails.keys_everywhere ? " " : " few keys ");
}

std::string to_text(const DatagramWorld& world) {
    const device::sim::LinkOptions& link = world.weather.link;
    char text[600];
    std::snprintf(
        text, sizeof text,
        "hosts=%u way=%lld..%lld+%lldns wire=%lldns/KiB queue=%u loss=%u burst=%u/%u "
        "duplication=%u "
        "reordering=%u/%lldns corruption=%u forged_unreachable=%u fits=%u..%u/%lldns%s%s cuts=%zu "
        "longest=%u..%u/%u "
        "room=%u kept=%u full=%u%% silence=%lldns pauses=%u/%lldns crash=%u%% strangers=%u/%u%s%s ",
        world.hosts, static_cast<long long>(link.delay_min.ns),
        static_cast<long long>(link.delay_max.ns), static_cast<long long>(link.jitter_max.ns),
        static_cast<long long>(link.ns_per_kilobyte), link.queue_bytes, link.loss, link.burst_begin,
        link.burst_end, link.duplication, link.reordering,
        static_cast<long long>(link.reordering_max.ns), link.corruption, link.forged_unreachable,
        link.fits_min, link.fits_max, static_cast<long long>(link.fits_period.ns),
        link.tells_length ? "" : " silently", world.weather.links_differ ? " differ" : "",
        world.weather.cuts.size(), world.datagram_min, world.port.datagram_max,
        world.length_changes_permille, world.port.receive_room, world.port.kept_max,
        world.port.refuse_percent, static_cast<long long>(world.silence.ns), world.pauses_permille,
        static_cast<long long>(world.pause_max.ns), world.crash_percent, world.strangers_permille,
        world.strangers_see, world.strangers_forge ? " forge" : "", world.calm ? " calm" : "");
    std::string result = text;
    if (const RelayedWorld& relays = world.relays; relays.count != 0)
        result += "relays=" + std::to_string(relays.count) + (relays.in_a_row ? " in a row" : "") +
                  (relays.steady ? " steady" : "") +
                  " deaths=" + std::to_string(relays.deaths.size()) + " ";
    if (const RailedWorld& rails = world.rails; !rails.interfaces.empty()) result += to_text(rails);
    if (world.keys == KeysOf::nobody) return result;
    return result + std::string(world.keys == KeysOf::cluster ? "keys=cluster/" : "keys=hosts/") +
           std::to_string(world.packets_per_key) + "/" + std::to_string(world.key_age.ns) + "ns ";
}

}  // namespace

std::string to_text(const Parameters& p) {
    char text[400];
    std::snprintf(
        text, sizeof text,
        "nics=%u steps=%u vis=%u arena=%llu refuse=%u%% short=%u%% fault=%u%% segments=%u "
        "peers=%u%% queue=%u step=%lldns turn=%lldns depth=%u burst=%u payload=%u frames=%u "
        "delay=%lld..%lld+%lldns wire=%lldns/KiB close=%u table=%u/%u/%u profiles=",
        p.nics, p.steps, p.vis_max, static_cast<unsigned long long>(p.arena_length),
        p.refuse_percent, p.short_percent, p.fault_percent, p.segments_max, p.peer_percent,
        p.queue_entries_max, static_cast<long long>(p.step_max.ns),
        static_cast<long long>(p.turn_delay_max.ns), p.limits.descriptors_per_queue_max,
        p.limits.turn_frames_max, p.fabric.payload_max, p.fabric.frames_max,
        static_cast<long long>(p.weather.delay_min.ns),
        static_cast<long long>(p.weather.delay_max.ns),
        static_cast<long long>(p.weather.jitter_max.ns),
        static_cast<long long>(p.weather.ns_per_kilobyte), p.weights.close, p.table.entries,
        p.table.line, p.table.ways);
    std::string result = text;
    if (p.fast_paths)
        result.insert(result.rfind("profiles="),
                      "together=" + std::to_string(p.together_max) +
                          " credits=" + std::to_string(p.credit_percent) +
                          "% small=" + std::to_string(p.fabric.small_max) + " ");
    if (p.share_percent != 0)
        result.insert(result.rfind("profiles="), "share=" + std::to_string(p.share_percent) + "% ");
    if (p.fabric.pulls)
        result.insert(result.rfind("profiles="),
                      "pull fails=1/" + std::to_string(p.fabric.pull_fails_every) + " ");
    if (p.atomic_percent != 0)
        result.insert(result.rfind("profiles="),
                      "atomics=" + std::to_string(p.atomic_percent) + "% ");
    if (p.shared_percent != 0)
        result.insert(result.rfind("profiles="),
                      "shared receives=" + std::to_string(p.shared_percent) + "% ");
    if (p.window_percent != 0)
        result.insert(result.rfind("profiles="), "windows=" + std::to_string(p.window_percent) +
                                                     "%/" + std::to_string(p.limits.windows_max) +
                                                     " ");
    if (p.medium == MediumKind::datagram)
        result.insert(result.rfind("profiles="), to_text(p.datagram));
    for (const Profile& profile : p.profiles) {
        if (&profile != &p.profiles.front()) result += ',';
        result += level_name(profile.reliability);
        result += '/' + std::to_string(profile.transfer_length_max);
    }
    return result;
}

}  // namespace via::sim
