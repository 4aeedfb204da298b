// Operations as model threads call them: most end up as a step, for which the thread stops.

#include <algorithm>

#include "trace.hpp"
#include "world.hpp"

namespace via::model {

namespace {

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(a);
    const auto second = reinterpret_cast<std::uintptr_t>(b);
    return first < second + b_bytes && second < first + a_bytes;
}

}  // namespace

// Stops the running thread before the operation; comes back when it has been performed.
std::uint64_t World::step(const Operation& operation) {
    Thread& thread = *running_;
    thread.next = operation;
    thread.fiber.suspend();
    return thread.result;
}

unsigned World::object(ObjectKind kind, const void* at, std::size_t bytes) {
    for (unsigned i = 1; i < objects_.size(); ++i) {
        const Object& known = objects_[i];
        if (known.kind != kind || known.retired) continue;
        if (known.at == at && known.bytes == bytes) return i;
        if (kind == ObjectKind::variable && overlap(at, bytes, known.at, known.bytes)) {
            record("atomic accesses of different sizes or places overlap at " + label(i));
            stop();
        }
    }
    if (objects_.size() == surprise_object) {
        record("more than " + std::to_string(surprise_object - 1) +
               " variables to wait or race on");
        stop();
    }
    const auto number = static_cast<unsigned>(objects_.size());
    objects_.push_back({kind, at, bytes, false, {}});
    static std::uint64_t none = 0;
    const bool variable = kind == ObjectKind::variable;
    memory_.add(number, variable ? const_cast<void*>(at) : &none, variable ? bytes : sizeof none);
    return number;
}

void World::init(void* at, std::size_t bytes) {
    for (unsigned i = 1; i < objects_.size(); ++i) {
        Object& known = objects_[i];
        if (known.retired || known.kind != ObjectKind::variable) continue;
        if (!overlap(at, bytes, known.at, known.bytes)) continue;
        known.retired = true;
        memory_.retire(i);
    }
    plain(at, bytes, true);
}

std::uint64_t World::load(const void* at, std::size_t bytes, std::memory_order order) {
    const unsigned variable = object(ObjectKind::variable, at, bytes);
    return step({.kind = Kind::load, .object = variable, .order = order, .bytes = bytes});
}

void World::store(void* at, std::size_t bytes, std::uint64_t value, std::memory_order order) {
    Thread& thread = *running_;
    const unsigned variable = object(ObjectKind::variable, at, bytes);
    value = cut(value, bytes);
    const Operation operation{
        .kind = Kind::store, .object = variable, .order = order, .bytes = bytes, .operand = value};
    if (options_.memory == Memory::tso && order != std::memory_order_seq_cst) {
        // Of itself no step, but another thread's fence may come before it.
        if (options_.heavy_fences) step({.kind = Kind::resume});
        touch(thread, variable, Touch::atomic_write);
        memory_.buffer(thread.index, variable, value, order, past_[thread.index]);
        memory_.tick(thread.index);
        if (tracing_)
            line(thread.index, "store " + label(variable) + " = " + number(value) + " " +
                                   order_name(order) + " (buffered)");
        return;
    }
    step(operation);
}

std::uint64_t World::update(void* at, std::size_t bytes, Rmw rmw, std::uint64_t operand,
                            std::memory_order order) {
    const unsigned variable = object(ObjectKind::variable, at, bytes);
    return step({.kind = Kind::update,
                 .object = variable,
                 .order = order,
                 .rmw = rmw,
                 .bytes = bytes,
                 .operand = cut(operand, bytes)});
}

bool World::compare(void* at, std::size_t bytes, std::uint64_t& expected, std::uint64_t desired,
                    std::memory_order success, std::memory_order failure, bool weak) {
    Thread& thread = *running_;
    const unsigned variable = object(ObjectKind::variable, at, bytes);
    const std::uint64_t found = step({.kind = Kind::compare,
                                      .object = variable,
                                      .order = success,
                                      .failure = failure,
                                      .may_fail = weak,
                                      .bytes = bytes,
                                      .operand = cut(desired, bytes),
                                      .expected = cut(expected, bytes)});
    if (!thread.success) expected = found;
    return thread.success;
}

void World::fence(std::memory_order order) {
    Thread& thread = *running_;
    const bool full = order == std::memory_order_seq_cst;
    const bool waits = options_.memory == Memory::tso && memory_.buffered(thread.index);
    if (full && (options_.memory == Memory::weak || waits)) {
        step({.kind = Kind::fence, .order = order});
        return;
    }
    // Nobody else can tell when it happens: no step.
    memory_.fence(thread.index, order);
    memory_.tick(thread.index);
    if (full) past_[thread.index].join(past_[max_threads + thread.index]);
    if (tracing_) line(thread.index, std::string("fence ") + order_name(order));
}

// Nobody else can tell when it happens: no step.
void World::light_fence() {
    memory_.light_fence(running_->index);
    if (tracing_) line(running_->index, "light fence");
}

// Each thread has its own at some moment of the call.
void World::heavy_fence(bool of_process) {
    if (!options_.heavy_fences) {
        record("heavy_fence() without Options::heavy_fences");
        stop();
    }
    const unsigned own = running_->index;
    fence(std::memory_order_seq_cst);
    for (unsigned thread = 0; thread < count_; ++thread) {
        if (thread == own) continue;
        if (of_process && options_.processes[thread] != options_.processes[own]) continue;
        step({.kind = Kind::fence_of, .thread = thread, .order = std::memory_order_seq_cst});
    }
    fence(std::memory_order_seq_cst);
}

void World::relax() {
    Thread& thread = *running_;
    const auto same_value = [](const Seen& a, const Seen& b) {
        return a.object == b.object && a.value == b.value;
    };
    const auto same_place = [](const Seen& a, const Seen& b) { return a.foreign == b.foreign; };
    const bool same = std::ranges::equal(thread.seen, thread.watched, same_value);
    const bool behind =
        same && thread.noticed && std::ranges::equal(thread.seen, thread.watched, same_place);
    thread.turns = same ? thread.turns + 1 : 0;
    thread.watched.swap(thread.seen);
    thread.seen.clear();
    thread.noticed = false;
    if (thread.turns < options_.free_spins) {
        if (tracing_) line(thread.index, "spins on");
        return;
    }
    if (behind && news(thread)) {
        // Something new was there and this turn read the old values once more: an execution
        // without this turn does the same.
        thread.state = State::repeating;
        if (tracing_) line(thread.index, "spins on old values for ever");
    }
    step({.kind = Kind::relax});
}

void World::plain(const void* at, std::size_t bytes, bool write) {
    if (bytes == 0) return;
    touch(*running_, at, bytes, write ? Touch::plain_write : Touch::plain_read);
    if (tracing_)
        line(running_->index, std::string(write ? "writes " : "reads ") + std::to_string(bytes) +
                                  " bytes at " + label(at));
}

unsigned World::choose(unsigned count) {
    if (count == 0) {
        record("choose(0)");
        stop();
    }
    return static_cast<unsigned>(step({.kind = Kind::choose, .operand = count}));
}

Wake World::wait(const void* word, std::uint32_t expected) {
    const unsigned variable = object(ObjectKind::variable, word, sizeof expected);
    const unsigned queue = object(ObjectKind::futex, word, sizeof expected);
    return static_cast<Wake>(step({.kind = Kind::futex_wait,
                                   .object = variable,
                                   .queue = queue,
                                   .bytes = sizeof expected,
                                   .expected = expected}));
}

unsigned World::wake(const void* word, unsigned count) {
    const unsigned queue = object(ObjectKind::futex, word, sizeof(std::uint32_t));
    return static_cast<unsigned>(
        step({.kind = Kind::futex_wake, .queue = queue, .operand = count}));
}

std::uint64_t World::event(EventFd* event, Kind kind, std::uint64_t operand) {
    const unsigned number = object(ObjectKind::event, event, sizeof *event);
    return step({.kind = kind, .object = number, .operand = operand, .event = event});
}

}  // namespace via::model
