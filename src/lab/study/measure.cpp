#include "lab/study/measure.hpp"

#include <algorithm>

#include "base/random.hpp"

namespace via::lab::study {
namespace {

Buffer buffer_of(const Trial& trial, const Question& question, std::uint64_t number) {
    const std::int64_t page = trial.machine.costs.page;
    if (question.spread > 0) {
        Random random(question.seed ^ (number * 0x9e3779b97f4a7c15));
        const auto pages = static_cast<std::uint64_t>(question.spread / page);
        return {static_cast<std::int64_t>(random.below(pages)) * page, question.size};
    }
    const std::int64_t room = (question.offset + question.size + page - 1) / page * page + page;
    const auto which =
        static_cast<std::int64_t>(number % static_cast<std::uint64_t>(question.buffers));
    return {which * room + question.offset, question.size};
}

ViId vi_of(const Trial& trial, std::uint64_t number) {
    return static_cast<ViId>(number % static_cast<std::uint64_t>(trial.load.vis));
}

/// Without what the receiving NIC and host still do when nobody watches any more.
std::string busiest_of(const Ledger& ledger) { return ledger.name_of(ledger.busiest()); }

Spent spent_on(const Ledger& ledger, ResourceId resource, std::uint64_t messages) {
    Spent spent{};
    for (std::size_t share = 0; share < share_count; ++share) {
        const Duration all = ledger.busy(resource, static_cast<Share>(share));
        spent[share] = static_cast<double>(all.ns) / static_cast<double>(messages);
    }
    return spent;
}

struct Pings {
    const Trial& trial;
    const Question& question;
    Cluster& cluster;
    Latency& result;
    bool ended = false;
    bool whole = true;  ///< each breakdown was

    Task<> run() {
        Station& from = cluster.station(0);
        Station& to = cluster.station(1);
        Random random(question.seed);
        result.least_ns = Time::never().ns;
        co_await warm_up();
        for (std::uint32_t n = question.warm; n < question.warm + question.rounds; ++n) {
            const ViId vi = vi_of(trial, n);
            const MessageId message = n + 1;
            if (!question.rdma) co_await to.post_receive(vi, buffer_of(trial, question, n));
            const auto quiet = static_cast<std::int64_t>(100'000 + random.below(50'000));
            co_await cluster.schedule().sleep(nanoseconds(quiet));
            cluster.ledger().clear_entries();
            const Time begin = cluster.schedule().now();
            if (question.rdma)
                co_await cluster.bearer(0).send(write_of(vi, n, message), false);
            else
                co_await from.post_send(vi, buffer_of(trial, question, n), message);
            co_await to.receive(vi, question.queues);
            note(message, begin);
            co_await from.sent(vi, question.queues);
        }
        ended = true;
    }
    Task<> warm_up() {
        cluster.ledger().record(false);
        for (std::uint32_t n = 0; n < question.warm; ++n) {
            const ViId vi = vi_of(trial, n);
            co_await cluster.station(1).post_receive(vi, buffer_of(trial, question, n));
            co_await cluster.station(0).post_send(vi, buffer_of(trial, question, n), n + 1);
            co_await cluster.station(1).receive(vi, question.queues);
            co_await cluster.station(0).sent(vi, question.queues);
        }
        cluster.ledger().record(true);
    }
    /// To the same place at the receiver, whose program sees the last byte there.
    PhysicalDescriptor write_of(ViId vi, std::uint64_t n, MessageId message) const {
        PhysicalDescriptor descriptor;
        descriptor.vi = vi;
        descriptor.message = message;
        descriptor.buffer = buffer_of(trial, question, n);
        descriptor.target =
            Target{cluster.bearer(1).node(), vi, {false, true, false, descriptor.buffer.address}};
        return descriptor;
    }
    void note(MessageId message, Time begin) {
        const Time now = cluster.schedule().now();
        const std::int64_t span = (now - begin).ns;
        std::int64_t sum = 0;
        for (const Entry& entry : cluster.ledger().path(message, begin, now)) {
            const std::int64_t part = (entry.end - entry.start).ns;
            const double mean = static_cast<double>(part) / question.rounds;
            result.parts_ns[static_cast<std::size_t>(entry.work.share)] += mean;
            if (entry.work.share == Share::waiting)
                result.waits_ns[cluster.ledger().name_of(entry.resource)] += mean;
            sum += part;
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
        Station& host = cluster.station(0);
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
        Station& host = cluster.station(1);
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
    cluster.connect(trial.load.vis);
    cluster.ledger().record(true);
    Latency result;
    Pings pings{trial, question, cluster, result};
    cluster.schedule().spawn(pings.run());
    if (!cluster.schedule().run_until(pings.ended, question.events_max))
        return std::unexpected("a message never arrived");
    VIA_ASSERT(pings.whole);
    result.busiest = busiest_of(cluster.ledger());
    result.sender = cluster.station(0).counts();
    result.receiver = cluster.station(1).counts();
    result.translation = cluster.ledger().total(Share::translation);
    result.packets = cluster.packets();
    result.events = cluster.schedule().events();
    return result;
}

std::expected<Bandwidth, std::string> bandwidth(const Trial& trial, const Question& question) {
    auto made = Cluster::make(trial, 2, question.seed);
    if (!made) return std::unexpected(made.error());
    Cluster& cluster = **made;
    cluster.connect(trial.load.vis);
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
    for (ResourceId id = 0; id < cluster.ledger().resource_count(); ++id)
        result.spent_ns[cluster.ledger().name_of(id)] = spent_on(cluster.ledger(), id, messages);
    result.sender = cluster.station(0).counts();
    result.receiver = cluster.station(1).counts();
    result.packets = cluster.packets();
    result.events = cluster.schedule().events();
    return result;
}

}  // namespace via::lab::study
