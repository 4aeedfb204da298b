#include "bench/link.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "bench/clock.hpp"
#include "bench/stats.hpp"

namespace via::bench {

namespace {

constexpr int probe_batches = 9;
constexpr std::size_t trips_per_batch = 4 * Lines::count;
constexpr std::size_t page_bytes = 4096;

Pool pool_of(const Question& question) {
    return {nullptr, stride_for(question), buffers_for(question), buffers_to_reuse(question),
            question.reuse.value_or(0)};
}

std::size_t whole_pages(std::size_t bytes) {
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace

const char* name_of(Step step) {
    switch (step) {
        case Step::starting:
            return "setting up the channel";
        case Step::idle:
            return "idle";
        case Step::probing:
            return "probing the distance of the processors";
        case Step::measuring:
            return "measuring";
        case Step::closing:
            return "closing the channel";
    }
    return "?";
}

std::size_t descriptor_stride(std::uint32_t segments) {
    return std::bit_ceil(std::max<std::size_t>(32 + 16 * (std::size_t{segments} + 1), 64));
}

std::size_t arena_bytes_for(const Question& question) {
    const Pool pool = pool_of(question);
    const std::size_t descriptors =
        2 * std::size_t{pool.window()} * descriptor_stride(question.segments) +
        (control_sends + control_receives + question.vis) * descriptor_stride(1);
    // The receiver of many senders has as much for each of them.
    return question.senders * (2 * whole_pages(pool.bytes()) + whole_pages(descriptors));
}

Pools pools_of(const Arena& arena, const Question& question) {
    Pools pools;
    pools.send = pool_of(question);
    const std::size_t bytes = whole_pages(pools.send.bytes());
    pools.send.base = arena.base;
    pools.receive = pools.send;
    pools.receive.base += bytes;
    pools.rest = pools.receive.base + bytes;
    return pools;
}

bool Link::meet() {
    ++meetings_;
    if (is_remote()) return meet_over_wire();
    shared_.arrived[own()].value.store(meetings_, std::memory_order_release);
    const auto& theirs = shared_.arrived[other()].value;
    while (theirs.load(std::memory_order_acquire) < meetings_) {
        if (shared_.abort.value.load(std::memory_order_relaxed) != 0) return false;
    }
    return true;
}

std::optional<double> Link::probe() {
    Lines& lines = *shared_.probe;
    lines.clear(own());  // of the pair that probed before
    if (!meet()) return std::nullopt;
    std::vector<double> one_way_ns;
    one_way_ns.reserve(probe_batches);
    std::uint64_t trips = 0;
    for (int batch = 0; batch < probe_batches; ++batch) {
        const std::int64_t start_ns = now_ns();
        for (std::size_t trip = 0; trip < trips_per_batch; ++trip) {
            ++trips;
            auto& mine = lines.word(own(), trips);
            const auto& theirs = lines.word(other(), trips);
            if (is_first()) mine.store(trips, std::memory_order_release);
            while (theirs.load(std::memory_order_acquire) != trips) {
            }
            if (!is_first()) mine.store(trips, std::memory_order_release);
        }
        const std::int64_t took_ns = now_ns() - start_ns;
        one_way_ns.push_back(static_cast<double>(took_ns) / (2.0 * trips_per_batch));
    }
    return is_first() ? median(one_way_ns) : 0;
}

}  // namespace via::bench
