// What the steps of threads and store buffers do.

#include "trace.hpp"
#include "world.hpp"

namespace via::model {

std::uint64_t apply(Rmw rmw, std::uint64_t old, std::uint64_t operand, std::size_t bytes) {
    switch (rmw) {
        case Rmw::exchange:
            return cut(operand, bytes);
        case Rmw::add:
            return cut(old + operand, bytes);
        case Rmw::bit_and:
            return cut(old & operand, bytes);
        case Rmw::bit_or:
            return cut(old | operand, bytes);
    }
    return 0;
}

void World::execute(unsigned process, unsigned choice, const StepClock& clock) {
    past_[process] = clock;
    const Stamp stamp{process, clock.at[process]};
    ++steps_;
    if (process >= max_threads) {
        do_flush(process - max_threads, stamp);
        return;
    }
    Thread& thread = *threads_[process];
    const bool goes_on = perform(thread, choice, stamp);
    memory_.tick(process);
    if (goes_on && failure_.empty()) run(thread);
}

bool World::surprised(const Thread& thread, unsigned choice) {
    const bool with_places =
        thread.next.kind == Kind::futex_wait || thread.next.kind == Kind::compare;
    if (choice < (with_places ? places_.size() : 1)) return false;
    --surprises_;
    return true;
}

void World::saw(Thread& thread, unsigned object, std::uint64_t value, unsigned foreign) {
    for (Seen& seen : thread.seen) {
        if (seen.object != object) continue;
        seen.value = value;
        seen.foreign = foreign;
        return;
    }
    thread.seen.push_back({object, value, foreign});
}

void World::touch(const Thread& thread, const void* at, std::size_t bytes, Touch touch) {
    if (!races_.touch(thread.index, at, bytes, touch, memory_.clock(thread.index))) return;
    record(races_.describe() + ", at " + label(at));
    stop();
}

void World::touch(const Thread& thread, unsigned variable, Touch how) {
    touch(thread, objects_[variable].at, objects_[variable].bytes, how);
}

bool World::perform(Thread& thread, unsigned choice, Stamp stamp) {
    const Operation& next = thread.next;
    const unsigned index = thread.index;
    switch (next.kind) {
        case Kind::load:
            if (const std::uint64_t* own = memory_.forwarded(index, next.object)) {
                thread.result = *own;
                touch(thread, next.object, Touch::atomic_read);
                saw(thread, next.object, *own,
                    memory_.foreign(index, next.object, memory_.last(next.object)));
                if (tracing_)
                    line(index, "load " + label(next.object) + " -> " + number(*own) +
                                    " (own store, still buffered)");
            } else {
                do_load(thread, places_[choice]);
                if (tracing_)
                    line(index, "load " + label(next.object) + " -> " + number(thread.result) +
                                    " " + order_name(next.order) +
                                    stale(next.object, places_[choice]));
            }
            return true;
        case Kind::store: {
            const Place place = places_[choice];
            if (tracing_)
                line(index, "store " + label(next.object) + " = " + number(next.operand) + " " +
                                order_name(next.order) + overtakes(next.object, place));
            touch(thread, next.object, Touch::atomic_write);
            memory_.store(index, next.object, place, next.operand, next.order, stamp);
            forced_ = 0;
            return true;
        }
        case Kind::update: {
            const Place place = places_[choice];
            if (tracing_)
                line(index, std::string(rmw_name(next.rmw)) + " " + label(next.object) + ", " +
                                number(next.operand) + " -> " +
                                number(memory_.value(next.object, place)) + " " +
                                order_name(next.order) + overtakes(next.object, place));
            do_load(thread, place);
            touch(thread, next.object, Touch::atomic_write);
            memory_.update(index, next.object, place,
                           apply(next.rmw, thread.result, next.operand, next.bytes), next.order,
                           stamp);
            forced_ = 0;
            return true;
        }
        case Kind::compare:
            do_compare(thread, choice, stamp);
            return true;
        case Kind::fence:
            memory_.fence(index, next.order);
            if (tracing_) line(index, std::string("fence ") + order_name(next.order));
            return true;
        case Kind::fence_of:
            memory_.heavy_fence(next.thread);
            if (tracing_) line(index, "heavy fence reaches T" + number(next.thread));
            return true;
        case Kind::futex_wait:
            return do_wait(thread, choice);
        case Kind::futex_wake:
            do_wake(thread);
            return true;
        case Kind::event_write:
        case Kind::event_read:
        case Kind::event_try:
        case Kind::event_poll:
            return do_event(thread, choice);
        case Kind::resume:
            if (tracing_) line(index, "runs again");
            return true;
        case Kind::relax:
            if (forcing_) {
                ++forced_;
                ++thread.turns;
            }
            thread.noticed = !forcing_;
            if (tracing_)
                line(index, forcing_ ? "spins on, nothing changes" : "spins on, something changed");
            return true;
        case Kind::choose:
            thread.result = choice;
            if (tracing_) line(index, "choose -> " + number(choice));
            return true;
    }
    return true;
}

void World::do_load(Thread& thread, Place place) {
    const Operation& next = thread.next;
    thread.result = memory_.read(thread.index, next.object, place, next.order);
    touch(thread, next.object, Touch::atomic_read);
    saw(thread, next.object, thread.result, memory_.foreign(thread.index, next.object, place));
}

void World::do_compare(Thread& thread, unsigned choice, Stamp stamp) {
    const Operation& next = thread.next;
    const bool surprise = surprised(thread, choice);
    const Place place = surprise ? memory_.last(next.object) : places_[choice];
    thread.success = !surprise && memory_.value(next.object, place) == next.expected;
    if (tracing_)
        line(thread.index,
             "compare_exchange " + label(next.object) + ", " + number(next.expected) + " by " +
                 number(next.operand) + " -> " + (thread.success ? "done " : "found ") +
                 (thread.success ? "" : number(memory_.value(next.object, place)) + " ") +
                 order_name(thread.success ? next.order : next.failure) +
                 (surprise         ? " (fails for no reason)"
                  : thread.success ? overtakes(next.object, place)
                                   : stale(next.object, place)));
    const std::uint64_t value =
        memory_.read(thread.index, next.object, place, thread.success ? next.order : next.failure);
    thread.result = value;
    touch(thread, next.object, thread.success ? Touch::atomic_write : Touch::atomic_read);
    saw(thread, next.object, value, memory_.foreign(thread.index, next.object, place));
    if (!thread.success) return;
    memory_.update(thread.index, next.object, place, next.operand, next.order, stamp);
    forced_ = 0;
}

bool World::do_wait(Thread& thread, unsigned choice) {
    const Operation& next = thread.next;
    const bool surprise = surprised(thread, choice);
    memory_.fence(thread.index, std::memory_order_seq_cst);
    std::string what;
    if (tracing_) what = "futex_wait " + label(next.object) + ", " + number(next.expected);
    if (surprise) {
        thread.result = static_cast<std::uint64_t>(Wake::interrupted);
        if (tracing_) line(thread.index, what + " -> interrupted");
        return true;
    }
    do_load(thread, places_[choice]);
    if (thread.result != next.expected) {
        if (tracing_) line(thread.index, what + " -> finds " + number(thread.result) + ", goes on");
        thread.result = static_cast<std::uint64_t>(Wake::changed);
        return true;
    }
    if (tracing_) line(thread.index, what + " -> sleeps" + stale(next.object, places_[choice]));
    objects_[next.queue].waiters.push_back(thread.index);
    thread.state = State::waiting;
    return false;
}

void World::do_wake(Thread& thread) {
    const Operation& next = thread.next;
    memory_.fence(thread.index, std::memory_order_seq_cst);
    std::vector<unsigned>& waiters = objects_[next.queue].waiters;
    std::string whom;
    thread.result = 0;
    while (!waiters.empty() && thread.result < next.operand) {
        Thread& sleeper = *threads_[waiters.front()];
        waiters.erase(waiters.begin());
        sleeper.state = State::ready;
        sleeper.next = Operation{.kind = Kind::resume};
        sleeper.result = static_cast<std::uint64_t>(Wake::woken);
        past_[sleeper.index].join(past_[thread.index]);
        memory_.show(thread.index, sleeper.index);
        whom += " T" + std::to_string(sleeper.index);
        ++thread.result;
        forced_ = 0;
    }
    if (tracing_)
        line(thread.index,
             "futex_wake " + label(next.queue) + " -> wakes" + (whom.empty() ? " nobody" : whom));
}

bool World::do_event(Thread& thread, unsigned choice) {
    const Operation& next = thread.next;
    Object& object = objects_[next.object];
    EventFd& event = *next.event;
    const std::string what = label(next.object);
    if (next.kind == Kind::event_write) {
        event.count_ += next.operand;
        memory_.give(thread.index, next.object);
        for (const unsigned waiter : object.waiters) threads_[waiter]->state = State::ready;
        object.waiters.clear();
        forced_ = 0;
        if (tracing_) line(thread.index, "eventfd write " + what + ", " + number(next.operand));
        return true;
    }
    if (next.kind != Kind::event_try && surprised(thread, choice)) {
        thread.result = 0;
        if (tracing_) line(thread.index, "eventfd " + what + " -> interrupted");
        return true;
    }
    const char* verb = next.kind == Kind::event_poll ? "poll " : "read ";
    if (event.count_ == 0 && next.kind != Kind::event_try) {
        object.waiters.push_back(thread.index);
        thread.state = State::waiting;
        if (tracing_) line(thread.index, std::string("eventfd ") + verb + what + " -> sleeps");
        return false;
    }
    thread.result = event.count_;
    if (event.count_ != 0) memory_.take(thread.index, next.object);
    if (next.kind != Kind::event_poll) event.count_ = 0;
    if (tracing_)
        line(thread.index, std::string("eventfd ") + verb + what + " -> " + number(thread.result));
    return true;
}

void World::do_flush(unsigned thread, Stamp stamp) {
    const unsigned object = memory_.oldest_buffered(thread);
    memory_.flush(thread, stamp);
    forced_ = 0;
    if (tracing_)
        line(max_threads + thread,
             "store of " + label(object) + " = " + number(memory_.newest(object)) + " arrives");
}

}  // namespace via::model
