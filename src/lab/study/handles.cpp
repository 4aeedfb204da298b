#include "lab/study/handles.hpp"

#include <algorithm>

namespace via::lab::study {
namespace {

/// Buffers that are always in the cache, and ones that never are: these lie in lines of one set, of
/// which there is one more than ways.
class Places {
public:
    Places(const Trial& trial, const MissQuestion& question)
        : page_(trial.machine.costs.page),
          line_(design::number_of(trial.design, "line")),
          ways_(design::number_of(trial.design, "ways")),
          stride_(design::number_of(trial.design, "cache") / ways_),
          question_(question) {}

    /// Cold ones are spread evenly over all messages.
    Buffer of(std::uint64_t number) const {
        const auto n = static_cast<std::int64_t>(number);
        const std::int64_t colds = n * question_.percent / 100;
        const bool is_cold = (n + 1) * question_.percent / 100 > colds;
        return is_cold ? cold(colds) : Buffer{0, question_.size};
    }
    Buffer cold(std::int64_t number) const {
        const std::int64_t page = line_ * lines() + number % (ways_ + 1) * stride_;
        return {page * page_, question_.size};
    }
    std::int64_t colds() const { return ways_ + 1; }

private:
    /// Of a message, at most.
    std::int64_t lines() const { return question_.size / (page_ * line_) + 1; }

    std::int64_t page_;
    std::int64_t line_;
    std::int64_t ways_;
    std::int64_t stride_;  ///< pages between two lines of a set
    MissQuestion question_;
};

struct MissingPings {
    const MissQuestion& question;
    Places places;
    Cluster& cluster;
    Time begin{};
    bool ended = false;

    Task<> run() {
        for (std::int64_t n = 0; n < places.colds(); ++n) co_await round_trip(places.cold(n));
        for (int n = 0; n < 2; ++n) co_await round_trip({0, question.size});
        begin = cluster.schedule().now();
        for (std::uint32_t n = 0; n < question.rounds; ++n) co_await round_trip(places.of(n));
        ended = true;
    }
    Task<> round_trip(Buffer at_second) {
        const Buffer here{0, question.size};
        co_await cluster.host(1).post_receive(0, at_second);
        co_await cluster.host(0).post_receive(0, here);
        co_await cluster.host(0).post_send(0, here, ++message_);
        co_await cluster.host(1).receive(0, 1);
        co_await cluster.host(1).post_send(0, here, ++message_);
        co_await cluster.host(0).receive(0, 1);
    }
    MessageId message_ = 0;
};

struct MissingStream {
    const MissQuestion& question;
    Places places;
    Cluster& cluster;
    std::uint32_t warm = 0;  ///< messages before the stream, one at a time
    std::uint32_t seen = 0;
    Time begin{};
    Time end{};
    bool ended = false;

    Buffer buffer_of(std::uint32_t n) const {
        return n < warm ? places.cold(n) : places.of(n - warm);
    }
    Task<> send() {
        co_await cluster.schedule().sleep(milliseconds(1));
        for (std::uint32_t n = 0; n < warm + question.rounds; ++n) {
            const std::uint32_t window = n < warm ? 1 : question.window;
            if (n == warm) begin = cluster.schedule().now();
            while (n - sent_ >= window) {
                co_await cluster.host(0).sent(0, 1);
                ++sent_;
            }
            co_await cluster.host(0).post_send(0, {0, question.size}, n + 1);
        }
    }
    Task<> receive() {
        const std::uint32_t all = warm + question.rounds;
        std::uint32_t posted = 0;
        while (posted < std::min(all, 2 * question.window))
            co_await cluster.host(1).post_receive(0, buffer_of(posted++));
        for (; seen < all; ++seen) {
            co_await cluster.host(1).receive(0, 1);
            end = cluster.schedule().now();
            if (posted < all) co_await cluster.host(1).post_receive(0, buffer_of(posted++));
        }
        ended = true;
    }
    std::uint32_t sent_ = 0;
};

}  // namespace

std::expected<MissAnswer, std::string> misses(const Trial& trial, const MissQuestion& question) {
    MissAnswer answer;
    const Places places(trial, question);
    for (const bool of_latency : {true, false}) {
        if (!of_latency && !question.stream) break;
        auto made = Cluster::make(trial, 2, question.seed);
        if (!made) return std::unexpected(made.error());
        Cluster& cluster = **made;
        cluster.connect(1);
        MissingPings pings{question, places, cluster};
        MissingStream stream{question, places, cluster, static_cast<std::uint32_t>(places.colds())};
        if (of_latency) {
            cluster.schedule().spawn(pings.run());
        } else {
            cluster.schedule().spawn(stream.receive());
            cluster.schedule().spawn(stream.send());
        }
        const bool& ended = of_latency ? pings.ended : stream.ended;
        if (!cluster.schedule().run_until(ended, question.events_max))
            return std::unexpected("a message never arrived");
        const Time now = cluster.schedule().now();
        if (of_latency) {
            answer.latency_us = static_cast<double>((now - pings.begin).ns) / 2e3 / question.rounds;
            answer.counts = cluster.host(1).adapter().counts();
        } else {
            const double bytes =
                static_cast<double>(question.rounds) * static_cast<double>(question.size);
            answer.rate_mb = bytes * 1e3 / static_cast<double>((stream.end - stream.begin).ns);
        }
    }
    return answer;
}

}  // namespace via::lab::study
