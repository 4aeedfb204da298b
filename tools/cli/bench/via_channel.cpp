// Our own device as a channel.
#include <unistd.h>

#include <new>

#include "bench/loops.hpp"
#include "bench/via_end.hpp"
#include "bench/via_many.hpp"
#include "bench/via_port.hpp"

namespace via::bench {

namespace {

class ViaEndpoint final : public Endpoint {
public:
    ViaEndpoint(Link& link, const DeviceOptions& options, const std::string& discriminator)
        : link_(link), port_(link, options, discriminator), end_(link, port_) {}

    Status open() override { return port_.open(); }

    Result<Reading> measure(const Question& question, const Effort& effort) override {
        if (is_answered(question.op)) return run_reads(question, effort);
        return run_messages(end_, link_, question, effort);
    }

private:
    Result<Reading> run_reads(const Question& question, const Effort& effort) {
        Reading reading;
        const bool good = link_.meet() && end_.begin(question, effort.total()) && link_.meet() &&
                          read_all(question, effort, reading) && finish(effort, reading) &&
                          link_.meet();
        if (good) return reading;
        if (!end_.failure().empty()) return fail("{}", end_.failure());
        return fail("{}", called_off);
    }

    // The target's processor time is of all reads together: it does not know which are timed.
    bool finish(const Effort& effort, Reading& reading) {
        const std::int64_t cpu_start_ns = cpu_ns();
        if (!end_.finish()) return false;
        if (link_.is_first()) return true;
        reading.messages = effort.messages;
        reading.cpu_ns = static_cast<std::int64_t>(static_cast<double>(cpu_ns() - cpu_start_ns) *
                                                   static_cast<double>(effort.messages) /
                                                   static_cast<double>(effort.total()));
        return true;
    }

    // The target only lends its processor, in finish(), until it hears goodbye.
    bool read_all(const Question& question, const Effort& effort, Reading& reading) {
        if (!link_.is_first()) return true;
        if (!is_stream(question)) {
            return timed_exchanges(link_, effort, reading, [&](std::uint64_t i) {
                return end_.begin_read(i) && end_.end_read(i);
            });
        }
        return read_ahead(0, effort.warmup, question.depth) &&
               timed_reads(effort, question.depth, reading);
    }

    bool timed_reads(const Effort& effort, std::uint64_t depth, Reading& reading) {
        const std::int64_t cpu_start_ns = cpu_ns();
        reading.first_ns = now_ns();
        if (!read_ahead(effort.warmup, effort.messages, depth)) return false;
        reading.last_ns = now_ns();
        reading.cpu_ns = cpu_ns() - cpu_start_ns;
        reading.messages = effort.messages;
        return true;
    }

    // Messages [from, from + messages), at most `depth` under way.
    bool read_ahead(std::uint64_t from, std::uint64_t messages, std::uint64_t depth) {
        std::uint64_t done = from;
        for (std::uint64_t i = from; i < from + messages; ++i) {
            if (i - done >= depth) {
                if (!end_.end_read(done)) return false;
                ++done;
            }
            if (!end_.begin_read(i)) return false;
        }
        for (; done < from + messages; ++done) {
            if (!end_.end_read(done)) return false;
        }
        return true;
    }

    Link& link_;
    ViaPort port_;
    ViaEnd end_;
};

class ViaChannel final : public Channel {
public:
    explicit ViaChannel(const DeviceOptions& options)
        : Channel(options.name.empty() ? options.device : options.name), options_(options) {}

    Question adapt(const Question& asked) const override {
        return options_.name.empty() ? asked : without_vis(asked);
    }

    std::string refuses(const Question& question) const override {
        const bool polls_memory = question.op == Op::write && question.wait == Wait::poll &&
                                  question.bench != Bench::verify;
        if (polls_memory && question.size == 0) {
            return "leaves nothing in memory to poll for; try --wait block";
        }
        return {};
    }

    bool goes_many_ways() const override { return true; }

    Status prepare(std::uint64_t) override {
        if (options_.like.senders > 1) {
            if (auto made = board_.create(sizeof(SendersBoard)); !made) return made;
            auto* board = new (board_.base()) SendersBoard;
            ::sched_getaffinity(0, sizeof board->allowed, &board->allowed);
        }
        static int number = 0;
        discriminator_ = fmt::format("via-bench-{}-{}", ::getpid(), ++number);
        return {};
    }

    std::unique_ptr<Endpoint> endpoint(Link& link) override {
        // Between machines the pair has a name that nobody guesses.
        if (link.is_remote()) discriminator_ = fmt::format("via-bench-{:016x}", link.word);
        if (options_.like.senders > 1) {
            return make_many_to_one(link, options_, discriminator_,
                                    *reinterpret_cast<SendersBoard*>(board_.base()));
        }
        return std::make_unique<ViaEndpoint>(link, options_, discriminator_);
    }

private:
    DeviceOptions options_;
    std::string discriminator_;
    SharedMap board_;  // of many senders
};

}  // namespace

std::unique_ptr<Channel> make_via_device(const DeviceOptions& options) {
    return std::make_unique<ViaChannel>(options);
}

}  // namespace via::bench
