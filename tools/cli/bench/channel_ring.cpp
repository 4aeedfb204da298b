// The best that two copies through shared memory can do: a ring of chunks, the sender a chunk ahead
// of the receiver. Ring size, chunk size and kind of copy are swept for each size and each mode,
// because what is best near is not best far.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <tuple>

#include "bench/end.hpp"
#include "bench/limit_channel.hpp"
#include "bench/stream_copy.hpp"

namespace via::bench {

namespace {

constexpr std::size_t largest_ring = 8u << 20;
constexpr std::size_t smallest_ring = 256u << 10;
constexpr std::size_t largest_chunk = 64u << 10;
constexpr std::size_t smallest_chunk = 4u << 10;
// A sweep takes a quarter of a second; on a machine full of other work it ends early.
constexpr std::int64_t sweep_allowed_ns = 5'000'000'000;

struct Tuning {
    std::size_t ring_bytes = smallest_ring;
    std::size_t chunk_bytes = smallest_chunk;
    Copy copy = Copy::plain;
};

class RingEnd : public End {
public:
    static constexpr Wait wait = Wait::poll;
    static constexpr Op op = Op::send;
    static std::string refuses(const Question& question) {
        return question.size > 0 ? "" : "copies nothing at 0 bytes";
    }
    static std::size_t area_bytes(std::uint64_t) { return 2 * sizeof(Ring); }

    RingEnd(Link& link, std::byte* area)
        : End(link),
          out_(reinterpret_cast<Ring*>(area)[link.own()]),
          in_(reinterpret_cast<Ring*>(area)[link.other()]) {}

    void tune(const Tuning& tuning) {
        tuning_ = tuning;
        copy_ = function_of(tuning.copy);
        slots_ = tuning.ring_bytes / tuning.chunk_bytes;
    }

    bool begin(const Question& question, std::uint64_t messages) {
        for (auto& flag : in_.full) flag.value.store(0, std::memory_order_relaxed);
        in_.taken.value.store(0, std::memory_order_relaxed);
        put_ = got_ = taken_seen_ = 0;
        return End::begin(question, messages);
    }

    bool send(std::uint64_t i) {
        const std::byte* from = stamped(i);
        for (std::uint64_t done = 0; done < question_.size; ++put_) {
            const std::uint64_t bytes = std::min(tuning_.chunk_bytes, question_.size - done);
            while (put_ - taken_seen_ >= slots_) {
                taken_seen_ = out_.taken.value.load(std::memory_order_acquire);
            }
            const std::uint64_t slot = put_ % slots_;
            copy_(out_.bytes + slot * tuning_.chunk_bytes, from + done, bytes);
            out_.full[slot].value.store(put_ + 1, std::memory_order_release);
            done += bytes;
        }
        return true;
    }

    bool receive(std::uint64_t i) {
        std::byte* to = pools_.receive.at(i);
        for (std::uint64_t done = 0; done < question_.size; ++got_) {
            const std::uint64_t bytes = std::min(tuning_.chunk_bytes, question_.size - done);
            const std::uint64_t slot = got_ % slots_;
            while (in_.full[slot].value.load(std::memory_order_acquire) != got_ + 1) {
            }
            std::memcpy(to + done, in_.bytes + slot * tuning_.chunk_bytes, bytes);
            in_.taken.value.store(got_ + 1, std::memory_order_release);
            done += bytes;
        }
        return check(i);
    }

private:
    struct Ring {
        alignas(4096) std::byte bytes[largest_ring];
        Line full[largest_ring / smallest_chunk];
        Line taken;
    };
    Ring& out_;
    Ring& in_;
    Tuning tuning_;
    CopyFunction copy_ = function_of(Copy::plain);
    std::uint64_t slots_ = smallest_ring / smallest_chunk;
    std::uint64_t put_ = 0;
    std::uint64_t got_ = 0;
    std::uint64_t taken_seen_ = 0;
};

std::vector<Tuning> all_tunings() {
    std::vector<Tuning> tunings;
    for (std::size_t ring = smallest_ring; ring <= largest_ring; ring *= 2) {
        for (std::size_t chunk = smallest_chunk; chunk <= largest_chunk; chunk *= 2) {
            for (const Copy copy : available_copies()) tunings.push_back({ring, chunk, copy});
        }
    }
    return tunings;
}

// Runs the sweep by itself when it meets a bench, size and mode for the first time.
class RingEndpoint final : public Endpoint {
public:
    RingEndpoint(Link& link, std::byte* area) : link_(link), end_(link, area) {}

    Result<Reading> measure(const Question& question, const Effort& effort) override {
        const std::uint64_t mode = link_.shared().mode.value.load(std::memory_order_acquire);
        const Key key{question.bench, question.size, mode};
        const auto known = best_.find(key);
        if (known == best_.end()) {
            auto best = sweep(question);
            if (!best) return std::unexpected(best.error());
            best_[key] = *best;
            Reading reading;
            reading.retry = true;  // the sweep took long: probe again before measuring
            return reading;
        }
        end_.tune(known->second);
        return run_messages(end_, link_, question, effort);
    }

private:
    using Key = std::tuple<Bench, std::uint64_t, std::uint64_t>;
    struct Trial {
        double took_ns;
        Tuning tuning;
    };

    // All tunings once with little effort, then the best few with more, each taken at its best.
    Result<Tuning> sweep(const Question& question) {
        constexpr std::uint64_t short_bytes = 2u << 20;
        constexpr std::uint64_t long_bytes = 8u << 20;
        constexpr std::size_t finalists = 6;
        std::vector<Trial> trials;
        deadline_ns_ = now_ns() + sweep_allowed_ns;
        time_is_up_ = false;
        for (const Tuning& tuning : all_tunings()) {
            if (time_is_up_) break;
            auto took = time_of(question, tuning, short_bytes, 2);
            if (!took) return std::unexpected(took.error());
            trials.push_back({*took, tuning});
        }
        const auto faster = [](const Trial& a, const Trial& b) { return a.took_ns < b.took_ns; };
        std::sort(trials.begin(), trials.end(), faster);
        trials.resize(std::min(trials.size(), finalists));
        for (Trial& trial : trials) {
            if (time_is_up_) break;
            auto took = time_of(question, trial.tuning, long_bytes, 3);
            if (!took) return std::unexpected(took.error());
            trial.took_ns = *took;
        }
        return std::min_element(trials.begin(), trials.end(), faster)->tuning;
    }

    // Time of a message, the best of `times` runs of about `bytes`. Both sides see both sides'
    // readings and so come to the same figure.
    Result<double> time_of(const Question& question, const Tuning& tuning, std::uint64_t bytes,
                           int times) {
        const std::uint64_t messages =
            std::clamp<std::uint64_t>(bytes / std::max<std::uint64_t>(question.size, 64), 2, 2000);
        end_.tune(tuning);
        double best_ns = 0;
        for (int run = 0; run < times; ++run) {
            auto reading = run_messages(end_, link_, question, {2, messages, 0});
            if (!reading) return std::unexpected(reading.error());
            link_.mine().reading = *reading;
            link_.mine().reading.retry = now_ns() > deadline_ns_;
            if (!link_.meet()) return fail("{}", called_off);
            const auto& both = link_.shared().published;
            const std::int64_t first_ns = both[0].reading.first_ns;
            const std::int64_t last_ns = std::max(both[0].reading.last_ns, both[1].reading.last_ns);
            const double took_ns =
                static_cast<double>(last_ns - first_ns) / static_cast<double>(messages);
            if (run == 0 || took_ns < best_ns) best_ns = took_ns;
            time_is_up_ = both[0].reading.retry;  // the first side's word, for both alike
            if (!link_.meet()) return fail("{}", called_off);
        }
        return best_ns;
    }

    Link& link_;
    RingEnd end_;
    std::map<Key, Tuning> best_;
    std::int64_t deadline_ns_ = 0;
    bool time_is_up_ = false;
};

}  // namespace

std::unique_ptr<Channel> make_ring() {
    return std::make_unique<LimitChannel<RingEnd, RingEndpoint>>("ring");
}

}  // namespace via::bench
