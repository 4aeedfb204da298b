#include "lab/study/storing.hpp"

#include <algorithm>

namespace via::lab::study {
namespace {

constexpr std::uint64_t storing_events_max = 20'000'000;
constexpr std::int64_t quiet_us = 100;  // until NICs have nothing left to do
constexpr std::int64_t of_a_series = 1 << 18;

/// What each of these runs is: some work of the first host, which sees when it is over.
struct Run {
    Cluster& cluster;
    Moved moved{};
    bool ended = false;

    Time begin{};
    Duration busy_before{};

    Task<> start() {
        co_await cluster.schedule().sleep(microseconds(quiet_us));
        begin = cluster.schedule().now();
        busy_before = cluster.ledger().busy(cluster.host(0).processor_id());
    }
    Duration since() { return cluster.schedule().now() - begin; }
    std::int64_t busy_ns() {
        return cluster.ledger().busy(cluster.host(0).processor_id()).ns - busy_before.ns;
    }
    Task<> stores(std::int64_t size) {
        co_await start();
        Signal landed(cluster.schedule());
        bool there = false;
        co_await cluster.window(0).store(1, {0, size}, 1, [&] {
            there = true;
            landed.notify();
        });
        moved.processor_ns = since().ns;
        while (!there) co_await landed.wait();
        Host& other = cluster.host(1);
        co_await other.spend(Duration{other.costs().user_poll}, {Share::user, "poll a word", 1});
        moved.one_way_ns = since().ns;
        ended = true;
    }
    Task<> dma(std::int64_t size) {
        co_await start();
        PhysicalDescriptor descriptor;
        descriptor.message = 1;
        descriptor.buffer = {0, size};
        descriptor.target = Target{cluster.bearer(1).node(), 0, {false, true, false, 0}};
        co_await cluster.bearer(0).send(descriptor, false);
        co_await cluster.host(1).receive(0, 1);
        moved.one_way_ns = since().ns;
        co_await cluster.host(0).sent(0, 1);
        moved.processor_ns = busy_ns();
        ended = true;
    }
    Task<> series(std::int64_t size) {
        co_await start();
        for (std::int64_t done = 0; done < of_a_series; done += size)
            co_await cluster.window(0).store(1, {done, size}, 1);
        co_await cluster.window(0).barrier(1);
        moved.one_way_ns = since().ns;
        ended = true;
    }
    Task<> load() {
        co_await start();
        co_await cluster.window(0).load(1, 4, 1);
        moved.one_way_ns = since().ns;
        ended = true;
    }
};

template <class Work>
std::expected<Moved, std::string> run_one(const Trial& trial, Work work) {
    if (!trial.machine.has(Has::window))
        return std::unexpected(trial.machine.name + " imports no memory: its parts have no window");
    auto made = Cluster::make(trial, 2, 1);
    if (!made) return std::unexpected(made.error());
    Cluster& cluster = **made;
    cluster.connect(1);
    Run one{cluster};
    cluster.schedule().spawn(work(one));
    if (!cluster.schedule().run_until(one.ended, storing_events_max))
        return std::unexpected("a store or message never arrived");
    return one.moved;
}

Left left_of(const Trial& trial, const Moved& dma, double dma_busy_ns, double stores_ns) {
    const auto span_ns = static_cast<double>(dma.one_way_ns);
    const double part = 1 - static_cast<double>(trial.machine.costs.dma_slows) / 100;
    return {std::max(0.0, part * (span_ns - dma_busy_ns)), std::max(0.0, span_ns - stores_ns)};
}

}  // namespace

std::expected<Moved, std::string> by_stores(const Trial& trial, std::int64_t size) {
    return run_one(trial, [size](Run& one) { return one.stores(size); });
}

std::expected<Moved, std::string> by_dma(const Trial& trial, std::int64_t size) {
    return run_one(trial, [size](Run& one) { return one.dma(size); });
}

std::expected<double, std::string> store_bytes_per_second(const Trial& trial, std::int64_t size) {
    const auto found = run_one(trial, [size](Run& one) { return one.series(size); });
    if (!found) return std::unexpected(found.error());
    const std::int64_t stores = (of_a_series + size - 1) / size;
    return static_cast<double>(stores * size) * 1e9 / static_cast<double>(found->one_way_ns);
}

std::expected<std::int64_t, std::string> load_ns(const Trial& trial) {
    const auto found = run_one(trial, [](Run& one) { return one.load(); });
    if (!found) return std::unexpected(found.error());
    return found->one_way_ns;
}

std::expected<Left, std::string> left_as_reckoned(const Trial& trial, std::int64_t size) {
    const auto dma = by_dma(trial, size);
    if (!dma) return std::unexpected(dma.error());
    const auto rate = store_bytes_per_second(trial, size);
    if (!rate) return std::unexpected(rate.error());
    return left_of(trial, *dma, 0, static_cast<double>(size) * 1e9 / *rate);
}

std::expected<Left, std::string> left(const Trial& trial, std::int64_t size) {
    const auto dma = by_dma(trial, size);
    if (!dma) return std::unexpected(dma.error());
    const auto stores = by_stores(trial, size);
    if (!stores) return std::unexpected(stores.error());
    return left_of(trial, *dma, static_cast<double>(dma->processor_ns),
                   static_cast<double>(stores->processor_ns));
}

}  // namespace via::lab::study
