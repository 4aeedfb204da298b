// Answers about load: who waits by polling or asleep, and many senders to one receiver.
#include <cmath>
#include <cstdio>
#include <deque>

#include "base/random.hpp"
#include "lab/study/inquiry.hpp"

namespace via::lab::study {
namespace {

constexpr std::uint64_t events_most = 50'000'000;

bool has_bare_adapter(const Machine& machine) {
    return machine.has(Has::adapter) && !machine.has(Has::kernel);
}

struct Loaded {
    double us = 0;         ///< one way, mean
    double reached = 0;    ///< messages a second
    double processor = 0;  ///< of the receiver, a part of 1
    double wakes = 0;      ///< for each message
};

/// Messages of 4 B at drawn moments, whoever is ready for them or not.
struct OpenLoad {
    Cluster& cluster;
    std::int64_t gap_ns;  ///< mean
    bool sleeps;
    std::uint32_t messages;
    std::deque<Time> posted{};
    Time begin{};
    double sum_ns = 0;
    std::uint32_t wakes = 0;
    bool ended = false;

    static constexpr std::uint32_t receives = 512;
    static constexpr Buffer buffer{0, 4};

    Task<> send() {
        Random random(1);
        co_await cluster.schedule().sleep(milliseconds(1));
        begin = cluster.schedule().now();
        Time due = begin;
        for (std::uint32_t n = 0; n < messages; ++n) {
            due = due + Duration{static_cast<std::int64_t>(
                            random.below(static_cast<std::uint64_t>(2 * gap_ns + 1)))};
            if (due > cluster.schedule().now())
                co_await cluster.schedule().sleep(due - cluster.schedule().now());
            posted.push_back(due);
            co_await cluster.station(0).post_send(0, buffer, n + 1);
        }
    }
    Task<> receive() {
        Station& host = cluster.station(1);
        for (std::uint32_t n = 0; n < receives; ++n) co_await host.post_receive(0, buffer);
        for (std::uint32_t n = 0; n < messages; ++n) {
            const bool waits = !host.holds(0);
            const Time before = cluster.schedule().now();
            co_await host.receive(0, 1);
            if (waits && sleeps) {
                const Time came = cluster.schedule().now();
                co_await cluster.bearer(1).wake(came - before);
                wakes += cluster.schedule().now() > came ? 1 : 0;
            }
            sum_ns += static_cast<double>((cluster.schedule().now() - posted.front()).ns);
            posted.pop_front();
            co_await host.post_receive(0, buffer);
        }
        ended = true;
    }
};

class Waits : Asking {
public:
    Waits(const Machine& machine, std::uint32_t rounds) : machine_(machine), rounds_(rounds) {}

    std::expected<Answer, std::string> all() {
        answer_ = {machine_.name + ": 4 B one way, to who polls and to who sleeps",
                   "thousand messages a second",
                   "us",
                   true,
                   {},
                   {}};
        Curve polling{"polling: a whole processor", {}, {}};
        Curve sleeping{"asleep until an interrupt", {}, {}};
        for (const std::int64_t thousands : {1, 4, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}) {
            const auto polls = at(thousands, false), sleeps = at(thousands, true);
            if (!polls || !sleeps) return std::unexpected(refusal_);
            if (polls->reached < 0.95e3 * static_cast<double>(thousands)) {
                saturated(*polls);
                break;
            }
            polling.x.push_back(thousands);
            polling.y.push_back(polls->us);
            sleeping.x.push_back(thousands);
            sleeping.y.push_back(sleeps->us);
            if (thousands == 1) note("At a thousand", *polls, *sleeps);
            last_ = thousands;
        }
        add(polling);
        add(sleeping);
        rarely_woken();
        return take();
    }

private:
    std::optional<Loaded> at(std::int64_t thousands, bool sleeps) {
        const Trial trial = trial_of(machine_, "", 1);
        auto made = Cluster::make(trial, 2, 1);
        if (!made) {
            refusal_ = made.error();
            return std::nullopt;
        }
        Cluster& cluster = **made;
        cluster.connect(1);
        OpenLoad load{cluster, 1'000'000 / thousands, sleeps, 32 * rounds_};
        cluster.schedule().spawn(load.receive());
        cluster.schedule().spawn(load.send());
        if (!cluster.schedule().run_until(load.ended, events_most)) {
            refusal_ = "a message never arrived";
            return std::nullopt;
        }
        const auto span = static_cast<double>((cluster.schedule().now() - load.begin).ns);
        const auto busy =
            static_cast<double>(cluster.ledger().busy(cluster.station(1).processor()).ns);
        return Loaded{load.sum_ns / 1e3 / load.messages, load.messages * 1e9 / span, busy / span,
                      static_cast<double>(load.wakes) / load.messages};
    }
    void note(const char* where, const Loaded& polls, const Loaded& sleeps) {
        char text[160];
        std::snprintf(text, sizeof text,
                      "%s messages a second who polls has one after %.2f us, who sleeps after %.2f "
                      "us, with %.1f %% of a processor.",
                      where, polls.us, sleeps.us, sleeps.processor * 100);
        find(text);
    }
    void saturated(const Loaded& polls) {
        char text[96];
        std::snprintf(text, sizeof text, "More than %.0f thousand messages a second do not pass.",
                      polls.reached / 1e3);
        find(text);
    }
    void rarely_woken() {
        const auto rarely = [&](std::int64_t thousands) {
            const auto found = at(thousands, true);
            return found && found->wakes < 0.1;
        };
        if (last_ == 0 || !rarely(last_))
            return find("At every load that passes it is woken for more than a tenth of them.");
        const std::int64_t from = first_where(1, last_, rarely);
        const auto there = at(from, true), polls = at(from, false);
        find("From " + std::to_string(from) +
             " thousand messages a second on it is woken for less than a tenth of them.");
        if (there && polls) note("There, at so many", *polls, *there);
    }

    const Machine& machine_;
    std::uint32_t rounds_;
    std::int64_t last_ = 0;
};

/// A link for each of `senders`, and one from the switch: packets alone, each passed on as soon as
/// its header is there and the port is free. Nanoseconds until the last byte is at the receiver.
double packet_level_ns(const Costs& costs, std::int64_t packet, std::int64_t bytes, int senders) {
    const std::int64_t headers = costs.message_header + costs.switch_header;
    const auto rate = static_cast<double>(costs.link) / 1e9;
    const double through =
        static_cast<double>(costs.switch_header) / rate + static_cast<double>(costs.switch_delay);
    double sent = 0, free = 0;
    for (std::int64_t done = 0; done < bytes; done += packet) {
        const std::int64_t wire = std::min(packet, bytes - done) + headers;
        const double span = static_cast<double>(wire) / rate;
        for (int n = 0; n < senders; ++n) free = std::max(free, sent + through) + span;
        sent += span;
    }
    return free;
}

/// Each of many hosts sends one message to the same one.
struct ManyToOne {
    Cluster& cluster;
    std::int64_t bytes;
    std::uint32_t senders;
    Time begin{};
    bool ended = false;

    Task<> send(NodeId from) {
        co_await cluster.schedule().sleep(milliseconds(1));
        begin = cluster.schedule().now();
        co_await cluster.host(from).post_send(from - 1, {0, bytes}, from);
    }
    Task<> receive() {
        Host& host = cluster.host(0);
        for (ViId vi = 0; vi < senders; ++vi)
            co_await host.post_receive(vi, {static_cast<std::int64_t>(vi) << 24, bytes});
        for (ViId vi = 0; vi < senders; ++vi) co_await host.receive(vi, 1);
        ended = true;
    }
};

class Incast : Asking {
public:
    explicit Incast(const Machine& machine) : machine_(machine) {}

    std::expected<Answer, std::string> all() {
        answer_ = {machine_.name + ": 256 KB from each of many hosts to one, until all are there",
                   "senders",
                   "us",
                   false,
                   {},
                   {}};
        Curve ours{"here", {}, {}}, packets{"packets and links alone", {}, {}},
            formula{"a formula: one latency, one gap a byte", {}, {}};
        const auto small = at(1, 1), one = at(1, bytes);
        if (!small || !one) return std::unexpected(refusal_);
        const double one_alone = *small - packet_level(1, 1);
        double apart = 0;
        for (const int senders : {1, 2, 3, 4, 6, 8}) {
            const auto found = at(senders, bytes);
            if (!found) return std::unexpected(refusal_);
            const double bound = one_alone + packet_level(senders, bytes);
            for (Curve* curve : {&ours, &packets, &formula}) curve->x.push_back(senders);
            ours.y.push_back(*found);
            packets.y.push_back(bound);
            formula.y.push_back(*one);
            apart = std::max(apart, std::abs(*found / bound - 1) * 100);
        }
        char text[128];
        std::snprintf(text, sizeof text, "Never more than %.1f %% from packets and links alone.",
                      apart);
        find(text);
        std::snprintf(text, sizeof text, "The formula is %.1f times too fast for 8 senders.",
                      ours.y.back() / formula.y.back());
        find(text);
        for (Curve* curve : {&ours, &packets, &formula}) add(std::move(*curve));
        return take();
    }

private:
    static constexpr std::int64_t bytes = 256 << 10;

    double packet_level(int senders, std::int64_t size) const {
        const std::int64_t packet = design::number_of(machine_.design, "packet");
        return packet_level_ns(machine_.costs, packet, size, senders) / 1e3;
    }
    std::optional<double> at(int senders, std::int64_t size) {
        const auto count = static_cast<std::uint32_t>(senders);
        const Trial trial = trial_of(machine_, "at=2", senders);  // none misses
        auto made = Cluster::make(trial, count + 1, 1);
        if (!made) {
            refusal_ = made.error();
            return std::nullopt;
        }
        Cluster& cluster = **made;
        ManyToOne run{cluster, size, count};
        for (ViId vi = 0; vi < count; ++vi) {
            cluster.host(0).connect(vi, vi + 1);
            cluster.host(vi + 1).connect(vi, 0);
            cluster.schedule().spawn(run.send(vi + 1));
        }
        cluster.schedule().spawn(run.receive());
        if (!cluster.schedule().run_until(run.ended, events_most)) {
            refusal_ = "a message never arrived";
            return std::nullopt;
        }
        return static_cast<double>((cluster.schedule().now() - run.begin).ns) / 1e3;
    }

    const Machine& machine_;
};

std::unexpected<std::string> no_adapter(const Machine& machine) {
    return std::unexpected(machine.name + " has no adapter of its own that this could be asked of");
}

}  // namespace

std::expected<Answer, std::string> ask_interrupt(const Machine& machine, std::uint32_t rounds) {
    if (!has_bare_adapter(machine) && !machine.has(Has::software)) return no_adapter(machine);
    return Waits(machine, rounds).all();
}
std::expected<Answer, std::string> ask_incast(const Machine& machine, std::uint32_t) {
    if (!has_bare_adapter(machine)) return no_adapter(machine);
    return Incast(machine).all();
}

}  // namespace via::lab::study
