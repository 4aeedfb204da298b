#include "lab/study/bench.hpp"

namespace via::lab::study {
namespace {

Task<> write_words(Host& host, std::int64_t words, bool& ended) {
    co_await host.write_words(words, "words", no_message);
    ended = true;
}

}  // namespace

Trial Bench::trial(std::string_view words, std::int64_t vis) {
    Trial made{machine_, machine_.design, {vis, 1 << 20}, without_};
    const auto added = design::add(made.design, words);
    if (!added) fail(added.error());
    return made;
}

Latency Bench::one_way(const Trial& of, const Question& question) {
    const auto found = latency(of, question);
    if (!found) fail(found.error());
    return found.value_or(Latency{});
}

double Bench::one_way_us(const Trial& of, std::int64_t size, std::int64_t queues) {
    Question question;
    question.size = size;
    question.queues = queues;
    question.rounds = 256;
    return one_way(of, question).mean_ns / 1e3;
}

Latency Bench::write(const Trial& of, std::int64_t size) {
    Question question;
    question.size = size;
    question.rdma = true;
    return one_way(of, question);
}

double Bench::rate_mb(const Trial& of, std::int64_t size) {
    Question question;
    question.size = size;
    const auto found = bandwidth(of, question);
    if (!found) fail(found.error());
    return found.value_or(Bandwidth{}).bytes_per_second / 1e6;
}

Explanation Bench::one_message(const Trial& of, std::int64_t size, std::uint64_t seed) {
    Question question;
    question.size = size;
    question.seed = seed;
    const auto found = explain(of, question);
    if (!found) fail(found.error());
    return found.value_or(Explanation{});
}

std::int64_t Bench::pio_ns(std::int64_t words) {
    const Trial of = trial();
    const auto made = Cluster::make(of, 1, 1);
    if (!made) {
        fail(made.error());
        return 0;
    }
    Cluster& cluster = **made;
    bool ended = false;
    cluster.schedule().spawn(write_words(cluster.host(0), words, ended));
    cluster.schedule().run_until(ended, 1'000'000);
    return cluster.schedule().now().ns;
}

std::int64_t Bench::fetch_ns(std::int64_t bytes) {
    Schedule schedule;
    Ledger ledger;
    Resource bus(schedule, ledger, "bus");
    DmaEngine engine(schedule, ledger, machine_.costs, bus, "engine");
    bool ended = false;
    const auto finished = [&ended] { ended = true; };
    engine.push({false, bytes, Share::bus, "fetch", no_message, nullptr, finished});
    schedule.run_until(ended, 1'000'000);
    return schedule.now().ns;
}

double Bench::overhead_ns(std::string_view words, std::int64_t size) {
    constexpr std::uint64_t messages = 16;
    std::int64_t sum = 0;
    for (std::uint64_t seed = 1; seed <= messages && !error_; ++seed) {
        std::int64_t begin = 0;
        for (const Happening& happening : one_message(trial(words), size, seed).happenings) {
            const std::string_view what = happening.what;
            if (what == "read the descriptor" && begin == 0) begin = happening.start_ns;
            if (what == "start the packet") sum += happening.end_ns - begin;
        }
    }
    return static_cast<double>(sum) / messages;
}

}  // namespace via::lab::study
