#include "bench/link.hpp"

#include <algorithm>
#include <vector>

#include "bench/clock.hpp"
#include "bench/stats.hpp"

namespace via::bench {

namespace {

constexpr int probe_batches = 9;
constexpr int trips_per_batch = 200;
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t descriptor_size = 64;  // of one for each idle VI

std::size_t pool_bytes(const Question& question) {
    const std::size_t bytes = stride_for(question) * buffers_for(question);
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

std::size_t arena_bytes_for(const Question& question) {
    const std::size_t idle = (question.vis * descriptor_size + page_bytes - 1) / page_bytes;
    return 2 * pool_bytes(question) + descriptor_bytes + idle * page_bytes;
}

Pools pools_of(const Arena& arena, const Question& question) {
    Pools pools;
    pools.send = {arena.base, stride_for(question), buffers_for(question)};
    pools.receive = pools.send;
    pools.receive.base += pool_bytes(question);
    pools.rest = pools.receive.base + pool_bytes(question);
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

double Link::probe() {
    auto& mine = shared_.probe[own()].value;
    auto& theirs = shared_.probe[other()].value;
    std::vector<double> one_way_ns;
    one_way_ns.reserve(probe_batches);
    for (int batch = 0; batch < probe_batches; ++batch) {
        const std::int64_t start_ns = now_ns();
        for (int trip = 0; trip < trips_per_batch; ++trip) {
            ++probes_;
            if (is_first()) mine.store(probes_, std::memory_order_release);
            while (theirs.load(std::memory_order_acquire) != probes_) {
            }
            if (!is_first()) mine.store(probes_, std::memory_order_release);
        }
        const std::int64_t took_ns = now_ns() - start_ns;
        one_way_ns.push_back(static_cast<double>(took_ns) / (2.0 * trips_per_batch));
    }
    return is_first() ? median(one_way_ns) : 0;
}

}  // namespace via::bench
