#include "lab/study/measure.hpp"

#include <algorithm>

#include "base/random.hpp"

namespace via::lab::study {
namespace {

Buffer buffer_of(const Trial& trial, const Question& question, std::uint64_t number) {
    const std::int64_t page = trial.machine.costs.page;
    const std::int64_t room = (question.offset + question.size + page - 1) / page * page + page;
    const auto which =
        static_cast<std::int64_t>(number % static_cast<std::uint64_t>(question.buffers));
    return {which * room + question.offset, question.size};
}

ViId vi_of(const Trial& trial, std::uint64_t number) {
    return static_cast<ViId>(number % static_cast<std::uint64_t>(trial.load.vis));
}

void connect(Cluster& cluster, std::int64_t vis) {
    for (ViId vi = 0; vi < static_cast<ViId>(vis); ++vi) {
        cluster.host(0).connect(vi, 1);
        cluster.host(1).connect(vi, 0);
    }
}

/// Without what the receiving NIC and host still do when nobody watches any more.
std::string busiest_of(const Ledger& ledger) { return ledger.name_of(ledger.busiest()); }

struct Pings {
    const Trial& trial;
    const Question& question;
    Cluster& cluster;
    Latency& result;
    bool ended = false;
    bool whole = true;  ///< each breakdown was

    Task<> run() {
        Host& from = cluster.host(0);
        Host& to = cluster.host(1);
        Random random(question.seed);
        result.least_ns = Time::never().ns;
        for (std::uint32_t n = 0; n < question.rounds; ++n) {
            const ViId vi = vi_of(trial, n);
            const MessageId message = n + 1;
            co_await to.post_receive(vi, buffer_of(trial, question, n));
            const auto quiet = static_cast<std::int64_t>(100'000 + random.below(50'000));
            co_await cluster.schedule().sleep(nanoseconds(quiet));
            cluster.ledger().clear_entries();
            const Time begin = cluster.schedule().now();
            co_await from.post_send(vi, buffer_of(trial, question, n), message);
            co_await to.receive(vi, question.queues);
            note(message, begin);
            co_await from.sent(vi, question.queues);
        }
        ended = true;
    }
    void note(MessageId message, Time begin) {
        const Time now = cluster.schedule().now();
        const std::int64_t span = (now - begin).ns;
        const auto parts = cluster.ledger().breakdown(message, begin, now);
        std::int64_t sum = 0;
        for (std::size_t share = 0; share < share_count; ++share) {
            result.parts_ns[share] += static_cast<double>(parts[share].ns) / question.rounds;
            sum += parts[share].ns;
        }
        whole = whole && sum == span;
        result.mean_ns += static_cast<double>(span) / question.rounds;
        result.least_ns = std::min(result.least_ns, span);
        result.most_ns = std::max(result.most_ns, span);
    }
};

struct Stream {
    const Trial& trial;
    const Question& question;
    Cluster& cluster;
    std::uint64_t messages;
    Time begin{};
    Time end{};
    bool ended = false;

    Task<> send() {
        Host& host = cluster.host(0);
        // Receives are there before the first message is.
        co_await cluster.schedule().sleep(milliseconds(1));
        begin = cluster.schedule().now();
        for (std::uint64_t n = 0; n < messages; ++n) {
            if (n >= question.window) co_await host.sent(vi_of(trial, n - question.window), 1);
            co_await host.post_send(vi_of(trial, n), buffer_of(trial, question, n),
                                    static_cast<MessageId>(n + 1));
        }
    }
    Task<> receive() {
        Host& host = cluster.host(1);
        std::uint64_t posted = 0;
        for (; posted < std::min<std::uint64_t>(messages, 2ULL * question.window); ++posted)
            co_await host.post_receive(vi_of(trial, posted), buffer_of(trial, question, posted));
        for (std::uint64_t n = 0; n < messages; ++n) {
            co_await host.receive(vi_of(trial, n), question.queues);
            end = cluster.schedule().now();
            if (posted == messages) continue;
            co_await host.post_receive(vi_of(trial, posted), buffer_of(trial, question, posted));
            ++posted;
        }
        ended = true;
    }
};

}  // namespace

std::expected<Latency, std::string> latency(const Trial& trial, const Question& question) {
    auto made = Cluster::make(trial, 2, question.seed);
    if (!made) return std::unexpected(made.error());
    Cluster& cluster = **made;
    connect(cluster, trial.load.vis);
    cluster.ledger().record(true);
    Latency result;
    Pings pings{trial, question, cluster, result};
    cluster.schedule().spawn(pings.run());
    if (!cluster.schedule().run_until(pings.ended, question.events_max))
        return std::unexpected("a message never arrived");
    VIA_ASSERT(pings.whole);
    result.busiest = busiest_of(cluster.ledger());
    result.sender = cluster.host(0).adapter().counts();
    result.receiver = cluster.host(1).adapter().counts();
    result.translation = cluster.ledger().total(Share::translation);
    result.packets = cluster.network().packets();
    result.events = cluster.schedule().events();
    return result;
}

std::expected<Bandwidth, std::string> bandwidth(const Trial& trial, const Question& question) {
    auto made = Cluster::make(trial, 2, question.seed);
    if (!made) return std::unexpected(made.error());
    Cluster& cluster = **made;
    connect(cluster, trial.load.vis);
    const std::int64_t wanted = question.stream_bytes / std::max<std::int64_t>(question.size, 1);
    const auto messages = static_cast<std::uint64_t>(std::clamp<std::int64_t>(wanted, 64, 400));
    Stream stream{trial, question, cluster, messages};
    cluster.schedule().spawn(stream.receive());
    cluster.schedule().spawn(stream.send());
    if (!cluster.schedule().run_until(stream.ended, question.events_max))
        return std::unexpected("a message never arrived");
    Bandwidth result;
    result.bytes = static_cast<std::int64_t>(messages) * question.size;
    result.messages = messages;
    result.bytes_per_second = static_cast<double>(result.bytes) * 1e9 /
                              static_cast<double>((stream.end - stream.begin).ns);
    result.busiest = busiest_of(cluster.ledger());
    result.sender = cluster.host(0).adapter().counts();
    result.receiver = cluster.host(1).adapter().counts();
    result.packets = cluster.network().packets();
    result.events = cluster.schedule().events();
    return result;
}

}  // namespace via::lab::study
