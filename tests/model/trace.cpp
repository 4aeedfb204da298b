#include "trace.hpp"

#include <cstdio>

#include "world.hpp"

namespace via::model {

const char* order_name(std::memory_order order) {
    switch (order) {
        case std::memory_order_relaxed:
            return "relaxed";
        case std::memory_order_consume:
            return "consume";
        case std::memory_order_acquire:
            return "acquire";
        case std::memory_order_release:
            return "release";
        case std::memory_order_acq_rel:
            return "acq_rel";
        case std::memory_order_seq_cst:
            return "seq_cst";
    }
    return "?";
}

const char* rmw_name(Rmw rmw) {
    switch (rmw) {
        case Rmw::exchange:
            return "exchange";
        case Rmw::add:
            return "fetch_add";
        case Rmw::bit_and:
            return "fetch_and";
        case Rmw::bit_or:
            return "fetch_or";
    }
    return "?";
}

std::string number(std::uint64_t value) {
    if (value < 100'000) return std::to_string(value);
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

std::string World::describe_stuck() const {
    bool spins = false;
    std::string who;
    for (unsigned i = 0; i < count_; ++i) {
        const Thread& thread = *threads_[i];
        if (thread.state == State::ended) continue;
        who += who.empty() ? " T" : ", T";
        who += std::to_string(i);
        if (thread.next.kind == Kind::relax) {
            spins = true;
            who += " spins";
            for (const Seen& seen : thread.watched)
                who += " on " + label(seen.object) + " = " + number(seen.value);
        } else {
            const bool event = thread.next.event != nullptr;
            who += " sleeps on " + label(event ? thread.next.object : thread.next.queue);
        }
    }
    return (spins ? "livelock:" : "deadlock (a lost wake-up?):") + who;
}

void World::note(const std::string& text) {
    if (!tracing_) return;
    if (running_ != nullptr)
        line(running_->index, text);
    else
        trace_.push_back("     " + text);
}

void World::name(const void* object, const std::string& text) {
    if (tracing_) names_[object] = text;
}

void World::line(unsigned process, const std::string& text) {
    char head[32];
    const bool thread = process < max_threads;
    std::snprintf(head, sizeof head, "%4u  T%u%s ", steps_,
                  thread ? process : process - max_threads, thread ? " " : "'");
    trace_.push_back(head + std::string(thread ? 12 * process : 12 * (process - max_threads), ' ') +
                     text);
}

std::string World::label(unsigned object) const {
    if (!tracing_) return {};
    return label(objects_[object].at);
}

std::string World::label(const void* at) const {
    if (const auto found = names_.find(at); found != names_.end()) return found->second;
    // A named object that it is part of, or the address.
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    std::string best;
    std::uintptr_t distance = 4096;
    for (const auto& [start, text] : names_) {
        const auto from = reinterpret_cast<std::uintptr_t>(start);
        if (from > address || address - from >= distance) continue;
        distance = address - from;
        best = text + "+" + std::to_string(distance);
    }
    if (!best.empty()) return best;
    for (unsigned i = 1; i < objects_.size(); ++i)
        if (objects_[i].at == at) return "#" + std::to_string(i);
    return "memory " + number(address);
}

std::string World::overtakes(unsigned object, Place place) const {
    if (!tracing_ || place == memory_.last(object)) return {};
    return " (lands before the store of " + number(memory_.value(object, place + 1)) + ")";
}

std::string World::stale(unsigned object, Place place) const {
    if (!tracing_ || place == memory_.last(object)) return {};
    return " (old; newest is " + number(memory_.newest(object)) + ")";
}

}  // namespace via::model
