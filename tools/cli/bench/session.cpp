#include "bench/session.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include "bench/clock.hpp"
#include "bench/cpus.hpp"

namespace via::bench {

namespace {

constexpr int ask_timeout_ms = 30'000;
constexpr std::uint64_t small_bytes = 4096;

// From the readings of both sides: first post by the one that has it, last receive likewise; both
// ways, from the first of all to the last of all.
double elapsed_ns(const Question& question, const RawSample& raw) {
    const auto& [first, second] = raw.readings;
    if (question.both_ways) {
        return static_cast<double>(std::max(first.last_ns, second.last_ns) -
                                   std::min(first.first_ns, second.first_ns));
    }
    const std::int64_t last_ns = second.last_ns != 0 ? second.last_ns : first.last_ns;
    return static_cast<double>(last_ns - first.first_ns);
}

std::string why_not(const Channel& channel, const Question& asked) {
    if (!channel.goes_many_ways() && asked.both_ways) return "goes one way at a time";
    if (!channel.goes_many_ways() && asked.senders > 1) return "has one sender";
    return channel.refuses(asked);
}

class Session {
public:
    explicit Session(Plan plan) : plan_(std::move(plan)) {}

    Result<Outcome> run() {
        outcome_.questions = plan_.questions;
        outcome_.remote = plan_.peer != nullptr;
        for (const auto& channel : plan_.channels) outcome_.channels.push_back(channel->name());
        deadline_ns_ = now_ns() + std::int64_t{plan_.max_seconds} * 1'000'000'000;
        if (auto started = start_pairs(); !started) return std::unexpected(started.error());
        tell_versions();
        if (auto fits = line_up(); !fits) return std::unexpected(fits.error());
        if (auto measured = measure_rounds(); !measured) return std::unexpected(measured.error());
        std::erase_if(outcome_.series,
                      [&](const Series& series) { return left_out_[series.channel]; });
        return std::move(outcome_);
    }

private:
    void tell(const std::string& what) const {
        if (plan_.progress) plan_.progress(what);
    }

    bool out_of_time() {
        outcome_.out_of_time = outcome_.out_of_time || now_ns() > deadline_ns_;
        return outcome_.out_of_time;
    }

    Status start_pairs() {
        PairSetup setup;
        setup.cpus = plan_.cpus;
        setup.limits = plan_.limits;
        setup.places = plan_.places;
        setup.processors = online_processors();
        std::uint32_t vis = 0;
        for (const Question& question : plan_.questions) {
            setup.arena_bytes = std::max(setup.arena_bytes, arena_bytes_for(question));
            setup.max_size = std::max(setup.max_size, question.size);
            vis = std::max(vis, question.vis);
        }
        setup.open_timeout_ms += static_cast<int>(vis) * 50;
        for (auto& channel : plan_.channels) {
            tell(fmt::format("starting two processes for {}", channel->name()));
            auto started = start_pair(std::move(channel), setup);
            if (!started) return started;
        }
        return {};
    }

    void tell_versions() {
        for (const auto& pair : pairs_) {
            const std::string version = pair->channel().version();
            outcome_.versions.push_back(version);
            if (version.empty()) continue;
            outcome_.notes.push_back(fmt::format("{} is {}", pair->channel().name(), version));
        }
    }

    Status start_pair(std::unique_ptr<Channel> channel, const PairSetup& setup) {
        const auto keep = [&](auto pair) -> Status {
            if (!pair) return std::unexpected(pair.error());
            pairs_.push_back(std::move(*pair));
            return {};
        };
        if (!plan_.peer) return keep(Pair::start(std::move(channel), setup));
        return keep(RemotePair::start(std::move(channel), setup, plan_.like, plan_.peer));
    }

    // One series for each channel and question that fit together; ours has to fit always.
    Status line_up() {
        for (std::size_t q = 0; q < plan_.questions.size(); ++q) {
            for (std::size_t c = 0; c < pairs_.size(); ++c) {
                const Channel& channel = pairs_[c]->channel();
                const Question asked = channel.adapt(plan_.questions[q]);
                const std::string why = why_not(channel, asked);
                if (!why.empty() && c == 0) {
                    return fail("{}: {} at {} bytes {}", channel.name(), name_of(asked.bench),
                                asked.size, why);
                }
                if (why.empty()) {
                    outcome_.series.push_back({q, c, asked, {}});
                } else {
                    outcome_.notes.push_back(fmt::format("{} is left out of {} at {} bytes: it {}",
                                                         channel.name(), name_of(asked.bench),
                                                         asked.size, why));
                }
            }
        }
        efforts_.resize(outcome_.series.size());
        left_out_.resize(pairs_.size());
        return {};
    }

    // As many messages as fill the time of a sample.
    Status find_effort(std::size_t s) {
        const Series& series = outcome_.series[s];
        tell(fmt::format("tuning {} for {} bytes", outcome_.channels[series.channel],
                         series.asked.size));
        // Many on few processors get their turn by time slices.
        const std::int64_t longer = series.asked.wait == Wait::block ? 2
                                    : series.asked.senders > 1       ? 4 * series.asked.senders
                                    : series.asked.spinners > 0      ? 20
                                                                     : 1;
        const std::int64_t wanted_ns = plan_.sample_ns * longer;
        const auto took = [&](std::uint64_t messages) -> Result<double> {
            const auto raw = ask(series, {2, messages, 0});
            if (!raw) return std::unexpected(raw.error());
            return elapsed_ns(series.asked, *raw);
        };
        const auto message_ns =
            tuned_message_ns(wanted_ns, series.asked.size <= small_bytes ? 64 : 4, took);
        if (!message_ns) return std::unexpected(message_ns.error());
        efforts_[s] = effort_for(series.asked, *message_ns, wanted_ns);
        return {};
    }

    static Effort effort_for(const Question& question, double message_ns, std::int64_t wanted_ns) {
        Effort effort;
        effort.messages = static_cast<std::uint64_t>(
            std::clamp(static_cast<double>(wanted_ns) / message_ns, 8.0, 4e6));
        effort.warmup = std::clamp<std::uint64_t>(effort.messages / 8, 2, 2000);
        if (question.bench == Bench::latency) {
            effort.timed = std::clamp<std::uint64_t>(effort.messages / 4, 8, 10'000);
        }
        return effort;
    }

    // Again while the channel only tunes itself, which a change of mode can cause once more.
    Result<RawSample> ask(const Series& series, const Effort& effort) {
        AnyPair& pair = *pairs_[series.channel];
        for (int turn = 0; turn < tuning_turns; ++turn) {
            auto raw = pair.ask(series.asked, effort, ask_timeout_ms);
            if (!raw && series.asked.reliability == Reliability::unreliable) {
                return fail("{} (an unreliable VI may lose messages, and a lost one ends a run)",
                            raw.error().what);
            }
            if (!raw || !raw->readings[0].retry) return raw;
        }
        return fail("{}: did not come to an end with tuning itself", pair.channel().name());
    }

    Status measure_rounds() {
        const std::uint32_t tries = plan_.rounds * tries_per_round;
        for (std::uint32_t round = 0; round < tries; ++round) {
            const std::vector<std::size_t> open = still_open();
            if (open.empty()) return {};
            tell(fmt::format("round {} of {}{}", std::min(round + 1, plan_.rounds), plan_.rounds,
                             round < plan_.rounds ? "" : ", repeating what was dropped"));
            for (std::size_t k = 0; k < open.size(); ++k) {
                if (out_of_time()) return {};
                // There and back again, so that nobody always comes after the same neighbour.
                const std::size_t s = open[round % 2 == 0 ? k : open.size() - 1 - k];
                const std::size_t channel = outcome_.series[s].channel;
                if (left_out_[channel]) continue;
                const std::int64_t began_ns = now_ns();
                const auto sampled = add_sample(s);
                if (sampled) continue;
                if (channel == 0) return sampled;
                leave_out(channel, sampled.error().what);
                deadline_ns_ += now_ns() - began_ns;  // the others do not pay for it
            }
        }
        return {};
    }

    Status add_sample(std::size_t s) {
        if (efforts_[s].messages == 0) {
            if (auto found = find_effort(s); !found) return found;
        }
        auto raw = ask(outcome_.series[s], efforts_[s]);
        if (!raw) return std::unexpected(raw.error());
        Series& series = outcome_.series[s];
        series.samples.push_back(to_sample(series.asked, *raw, plan_.limits));
        return {};
    }

    // A comparison that fails takes no answer away from the others.
    void leave_out(std::size_t channel, const std::string& why) {
        left_out_[channel] = true;
        tell(fmt::format("{} is left out", outcome_.channels[channel]));
        outcome_.left_out.push_back({outcome_.channels[channel], why});
    }

    // The series of questions that do not have their rounds yet.
    std::vector<std::size_t> still_open() const {
        std::vector<std::size_t> open;
        for (std::size_t q = 0; q < outcome_.questions.size(); ++q) {
            std::vector<const Series*> together;
            std::vector<std::size_t> indices;
            for (std::size_t s = 0; s < outcome_.series.size(); ++s) {
                const Series& series = outcome_.series[s];
                if (series.question != q || left_out_[series.channel]) continue;
                together.push_back(&series);
                indices.push_back(s);
            }
            if (!is_complete(together, plan_.rounds, plan_.wanted)) {
                open.insert(open.end(), indices.begin(), indices.end());
            }
        }
        return open;
    }

    Plan plan_;
    Outcome outcome_;
    std::vector<std::unique_ptr<AnyPair>> pairs_;
    std::vector<Effort> efforts_;  // by series; no messages: not found yet
    std::vector<bool> left_out_;   // by channel
    std::int64_t deadline_ns_ = 0;
};

}  // namespace

Result<double> tuned_message_ns(std::int64_t wanted_ns, std::uint64_t first,
                                const std::function<Result<double>(std::uint64_t)>& took) {
    std::uint64_t messages = first;
    double message_ns = 0;
    bool filled = false;  // the time was, about, the turn before
    for (int turn = 0; turn < tuning_turns; ++turn) {
        const auto answer = took(messages);
        if (!answer) return answer;
        const double took_ns = std::max(*answer, 1.0);
        message_ns = took_ns / static_cast<double>(messages);
        const double short_by = static_cast<double>(wanted_ns) / took_ns;
        if (std::exchange(filled, short_by < 4) && filled) break;
        const double next = static_cast<double>(messages) * std::clamp(short_by, 0.1, 32.0);
        messages = static_cast<std::uint64_t>(std::max(next, 1.0));
    }
    return message_ns;
}

std::size_t kept_in(const Series& series, Mode mode) {
    return static_cast<std::size_t>(
        std::count_if(series.samples.begin(), series.samples.end(),
                      [&](const Sample& sample) { return sample.verdict.mode == mode; }));
}

bool is_complete(const std::vector<const Series*>& of_one_question, std::uint32_t rounds,
                 Wanted wanted) {
    const auto full = [&](Mode mode) {
        return std::all_of(of_one_question.begin(), of_one_question.end(),
                           [&](const Series* series) { return kept_in(*series, mode) >= rounds; });
    };
    switch (wanted) {
        case Wanted::near:
            return full(Mode::near);
        case Wanted::far:
            return full(Mode::far);
        case Wanted::both:
            return full(Mode::near) && full(Mode::far);
        case Wanted::any:
            break;
    }
    return full(Mode::near) || full(Mode::between) || full(Mode::far) || full(Mode::remote);
}

Sample to_sample(const Question& question, const RawSample& raw, const ModeLimits& limits) {
    Sample sample;
    sample.verdict = raw.remote ? judge_remote(raw.disturbances, question.wait, limits)
                                : judge(raw.disturbances, raw.probe_before_ns, raw.probe_after_ns,
                                        question.wait, limits);
    sample.probe_ns = (raw.probe_before_ns + raw.probe_after_ns) / 2;
    const Reading& first = raw.readings[0];
    const auto messages = static_cast<double>(std::max<std::uint64_t>(first.messages, 1));
    const double took_ns = std::max(elapsed_ns(question, raw), 1.0);
    const double ways = question.both_ways ? 2 : 1;
    const double legs = messages * first.legs * ways;
    const auto in_unit = [&](double count, double ns) {
        if (question.bench == Bench::rate) return count * 1000 / ns;
        return count * static_cast<double>(question.size) * 1000 / ns;
    };
    sample.value = is_stream(question) ? in_unit(messages * ways, took_ns) : took_ns / legs / 1000;
    if (question.both_ways) {
        for (std::size_t from = 0; from < 2; ++from) {
            const std::int64_t took = raw.readings[1 - from].last_ns - raw.readings[from].first_ns;
            sample.each[from] = in_unit(messages, std::max(static_cast<double>(took), 1.0));
        }
    }
    sample.fairness = raw.readings[1].fairness;
    sample.p50_us = first.p50_ns / 1000;
    sample.p99_us = first.p99_ns / 1000;
    sample.p999_us = first.p999_ns / 1000;
    // A spinner's time would be counted as well.
    for (std::size_t side = 0; side < 2 && question.spinners == 0; ++side) {
        sample.cpu_us[side] = static_cast<double>(raw.readings[side].cpu_ns) / legs / 1000;
    }
    return sample;
}

Result<Outcome> run_session(Plan plan) { return Session(std::move(plan)).run(); }

}  // namespace via::bench
