// Half of a message and its answer, on each VI in turn: what the first use of a VI costs.
#include "base/random.hpp"
#include "lab/study/measure.hpp"

namespace via::lab::study {
namespace {

constexpr std::int64_t beside = 64;  // a descriptor in front of its buffer, in the same page

struct RoundTrips {
    const Trial& trial;
    const Question& question;
    Cluster& cluster;
    double mean_ns = 0;
    bool ended = false;

    Task<> run() {
        Random random(question.seed);
        for (std::uint32_t n = 0; n < question.rounds; ++n) {
            const auto vi = static_cast<ViId>(n % static_cast<std::uint64_t>(trial.load.vis));
            const auto quiet = static_cast<std::int64_t>(100'000 + random.below(50'000));
            co_await post(cluster.host(0), vi);
            co_await post(cluster.host(1), vi);
            co_await cluster.schedule().sleep(nanoseconds(quiet));
            const Time begin = cluster.schedule().now();
            co_await pass(0, 1, vi, 2 * n + 1);
            co_await pass(1, 0, vi, 2 * n + 2);
            const Duration span = cluster.schedule().now() - begin;
            mean_ns += static_cast<double>(span.ns) / 2 / question.rounds;
            co_await cluster.host(0).sent(vi, question.queues);
            co_await cluster.host(1).sent(vi, question.queues);
        }
        ended = true;
    }
    Buffer buffer_of(ViId vi) const {
        const std::int64_t page = trial.machine.costs.page;
        return {vi * ((question.size + page - 1) / page + 1) * page + beside, question.size};
    }
    Task<> post(Host& host, ViId vi) {
        const Buffer buffer = buffer_of(vi);
        co_await host.post_receive(vi, buffer, buffer.address - beside);
    }
    Task<> pass(NodeId from, NodeId to, ViId vi, MessageId message) {
        const Buffer buffer = buffer_of(vi);
        co_await cluster.host(from).post_send(vi, buffer, message, buffer.address - beside);
        co_await cluster.host(to).receive(vi, question.queues);
    }
};

}  // namespace

std::expected<double, std::string> half_round_trip_ns(const Trial& trial,
                                                      const Question& question) {
    auto made = Cluster::make(trial, 2, question.seed);
    if (!made) return std::unexpected(made.error());
    Cluster& cluster = **made;
    cluster.connect(trial.load.vis);
    RoundTrips trips{trial, question, cluster};
    cluster.schedule().spawn(trips.run());
    if (!cluster.schedule().run_until(trips.ended, question.events_max))
        return std::unexpected("a message never arrived");
    return trips.mean_ns;
}

}  // namespace via::lab::study
