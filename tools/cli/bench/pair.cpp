#include "bench/pair.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "bench/clock.hpp"
#include "bench/pair_child.hpp"
#include "console/output.hpp"

namespace via::bench {

namespace {

// One for all pairs that this process ever starts.
Result<Lines*> lines_to_probe() {
    static SharedMap map;
    if (map.base() == nullptr) {
        if (auto mapped = map.create(sizeof(Lines)); !mapped)
            return std::unexpected(mapped.error());
    }
    return reinterpret_cast<Lines*>(map.base());
}

}  // namespace

Shared& Pair::shared_view() const { return *reinterpret_cast<Shared*>(shared_.base()); }

Result<std::unique_ptr<Pair>> Pair::start(std::unique_ptr<Channel> channel,
                                          const PairSetup& setup) {
    std::unique_ptr<Pair> pair(new Pair(std::move(channel)));
    const std::string& name = pair->channel_->name();
    const auto prepared = [&]() -> Status {
        if (auto mapped = pair->shared_.create(sizeof(Shared)); !mapped) return mapped;
        new (pair->shared_.base()) Shared;
        const auto lines = lines_to_probe();
        if (!lines) return std::unexpected(lines.error());
        pair->shared_view().probe = *lines;
        if (auto made = pair->channel_->prepare(setup.max_size); !made) return made;
        Shared& shared = pair->shared_view();
        auto& [one, other] = pair->sides_;
        auto first = one.start(*pair->channel_, shared, Side::first, setup);
        if (!first) return first;
        auto second = other.start(*pair->channel_, shared, Side::second, setup);
        // What the two inherited is theirs alone, or neither would see the other's end.
        pair->channel_->drop_files();
        return second;
    }();
    if (!prepared) pair->end_children(false);
    if (!prepared) return fail("{}: {}", name, prepared.error().what);
    if (auto opened = pair->collect(setup.open_timeout_ms); !opened) {
        return std::unexpected(opened.error());
    }
    return pair;
}

Pair::~Pair() { end_children(!broken_); }

Result<RawSample> Pair::ask(const Question& question, const Effort& effort, int timeout_ms) {
    if (broken_) return fail("{}: this channel failed before", channel_->name());
    const Order order{false, question, effort};
    // The second side first: the first side starts the clock and should not wait for it.
    for (std::size_t side : {1u, 0u}) {
        if (!sides_[side].send(order)) {
            const std::string what = failure_of(side, sides_[side].how_it_ended(end_patience_ms));
            end_children(false);
            return fail("{}", what);
        }
    }
    auto answers = collect(timeout_ms);
    if (!answers) return std::unexpected(answers.error());
    RawSample sample;
    for (std::size_t side = 0; side < 2; ++side) {
        sample.readings[side] = (*answers)[side].reading;
        sample.disturbances[side] = (*answers)[side].disturbance;
    }
    sample.probe_before_ns = (*answers)[0].probe_before_ns;
    sample.probe_after_ns = (*answers)[0].probe_after_ns;
    return sample;
}

// Waits for one answer of each side. Any failure ends both processes.
Result<std::array<Answer, 2>> Pair::collect(int timeout_ms) {
    std::array<Answer, 2> answers;
    std::array<bool, 2> got{};
    const std::int64_t deadline_ns = now_ns() + std::int64_t{timeout_ms} * 1'000'000;
    std::string failure;
    while (failure.empty() && !(got[0] && got[1])) {
        std::array<pollfd, 2> polled{};
        for (std::size_t side = 0; side < 2; ++side) {
            polled[side] = {got[side] ? -1 : sides_[side].control(), POLLIN, 0};
        }
        const std::int64_t left_ms = (deadline_ns - now_ns()) / 1'000'000;
        const int ready =
            ::poll(polled.data(), 2, static_cast<int>(std::max<std::int64_t>(left_ms, 0)));
        if (ready < 0 && errno == EINTR) continue;
        if (ready < 0) {
            failure = fmt::format("{}: poll: {}", channel_->name(), std::strerror(errno));
            break;
        }
        if (ready == 0) {
            // A process that somebody stopped keeps its partner waiting: name that one.
            const bool second = got[0] || (!got[1] && sides_[1].is_stopped());
            const std::size_t late = second ? 1 : 0;
            const bool stopped = sides_[late].is_stopped();
            failure = failure_of(late, fmt::format("no answer within {} s{}", timeout_ms / 1000,
                                                   stopped ? ", it is stopped" : ""));
            break;
        }
        for (std::size_t side = 0; side < 2 && failure.empty(); ++side) {
            if (polled[side].revents == 0) continue;
            if (!sides_[side].receive(answers[side])) {
                failure = failure_of(side, sides_[side].how_it_ended(end_patience_ms));
            } else if (!answers[side].good) {
                failure = complaint_of(side, answers[side].failure.data());
            }
            got[side] = true;
        }
    }
    if (failure.empty()) return answers;
    end_children(false);
    return fail("{}", failure);
}

std::string Pair::failure_of(std::size_t side, const std::string& what) {
    const Shared& shared = shared_view();
    const std::uint64_t step = shared.step[side].value.load(std::memory_order_relaxed);
    return fmt::format("{}: process {} of the pair (pid {}), while {}: {}", channel_->name(),
                       side + 1, sides_[side].pid(), name_of(static_cast<Step>(step)), what);
}

// A side complains. When the other one was killed, that is the cause and the complaint its effect.
std::string Pair::complaint_of(std::size_t side, const std::string& what) {
    const std::size_t other = 1 - side;
    const std::string end = sides_[other].how_it_ended(20);
    if (end.find("signal") != std::string::npos) return failure_of(other, end);
    return fmt::format("{}: {}", channel_->name(), what);
}

void Pair::end_children(bool politely) {
    broken_ = true;
    if (shared_.base() != nullptr && !politely) {
        shared_view().abort.value.store(1, std::memory_order_relaxed);
    }
    for (ChildProcess& child : sides_) {
        if (politely) child.say_quit();
    }
    const std::int64_t deadline_ns = politely ? now_ns() + polite_ms * std::int64_t{1'000'000} : 0;
    for (ChildProcess& child : sides_) {
        if (!child.end(deadline_ns) && politely) {
            console::complain("via: {}: pid {} did not close within {} s and was ended",
                              channel_->name(), child.pid(), polite_ms / 1000);
        }
    }
}

}  // namespace via::bench
