#include "lab/dma.hpp"

#include <algorithm>
#include <utility>

namespace via::lab {

DmaEngine::DmaEngine(Schedule& schedule, Ledger& ledger, const Costs& costs, Resource& bus,
                     const std::string& name)
    : schedule_(schedule),
      ledger_(ledger),
      costs_(costs),
      bus_(bus),
      engine_(schedule, ledger, name),
      pushed_(schedule) {
    schedule_.spawn(run());
}

void DmaEngine::push(Command command) {
    queue_.push_back({std::move(command), {}});
    ++commands_;
    ask();
    pushed_.notify();
}

/// As many as may be under way, with the one that moves.
void DmaEngine::ask() {
    const auto most = static_cast<std::size_t>(costs_.dma_under_way) - (busy_ ? 1U : 0U);
    for (; asked_ < std::min(most, queue_.size()); ++asked_) queue_[asked_].asked = schedule_.now();
}

Task<> DmaEngine::run() {
    for (;;) {
        while (queue_.empty()) co_await pushed_.wait();
        busy_ = true;
        const Waiting next = std::move(queue_.front());
        const Command& command = next.command;
        queue_.pop_front();
        --asked_;
        const Share share = command.share == Share::bus ? Share::dma_start : command.share;
        const Duration start{command.to_host ? costs_.dma_start_to_host : costs_.dma_start_to_nic};
        const Duration left = next.asked + start - schedule_.now();
        co_await engine_.use(std::max(left, Duration{}), {share, command.what, command.message});
        const Time begin = schedule_.now();
        co_await move(command);
        // The engine is held, too, but of a message's path the bus is the part that counts.
        ledger_.add(engine_.id(), {Share::bus, "moves bytes"}, begin, schedule_.now());
        busy_ = false;
        ask();
        if (command.finished) command.finished();
    }
}

Task<> DmaEngine::move(const Command& command) {
    Transfer* const source = command.source.get();
    while (source != nullptr && !source->begun) co_await source->changed.wait();
    const std::int64_t rate = command.to_host ? costs_.bus_to_host : costs_.bus_to_nic;
    for (std::int64_t done = 0; done < command.bytes;) {
        const std::int64_t until = std::min(done + costs_.bus_burst, command.bytes);
        const bool last = until == command.bytes;
        while (last && source != nullptr && !source->done) co_await source->changed.wait();
        const Duration span{time_of(until, rate).ns - time_of(done, rate).ns};
        co_await bus_.use(span, {command.share, command.what, command.message});
        done = until;
    }
}

}  // namespace via::lab
