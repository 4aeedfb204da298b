#include "world.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>

namespace via::model {

namespace {

// How many loop turns for nothing all threads together may take before it is called a livelock.
constexpr unsigned forced_turns = 16;

const char* order_name(std::memory_order order) {
    switch (order) {
        case std::memory_order_relaxed: return "relaxed";
        case std::memory_order_consume: return "consume";
        case std::memory_order_acquire: return "acquire";
        case std::memory_order_release: return "release";
        case std::memory_order_acq_rel: return "acq_rel";
        case std::memory_order_seq_cst: return "seq_cst";
    }
    return "?";
}

const char* rmw_name(Rmw rmw) {
    switch (rmw) {
        case Rmw::exchange: return "exchange";
        case Rmw::add: return "fetch_add";
        case Rmw::bit_and: return "fetch_and";
        case Rmw::bit_or: return "fetch_or";
    }
    return "?";
}

std::string number(std::uint64_t value) {
    if (value < 100'000) return std::to_string(value);
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

std::uint64_t cut(std::uint64_t value, std::size_t bytes) {
    return bytes == 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(a);
    const auto second = reinterpret_cast<std::uintptr_t>(b);
    return first < second + b_bytes && second < first + a_bytes;
}

}  // namespace

World* current = nullptr;

std::uint64_t apply(Rmw rmw, std::uint64_t old, std::uint64_t operand, std::size_t bytes) {
    switch (rmw) {
        case Rmw::exchange: return cut(operand, bytes);
        case Rmw::add: return cut(old + operand, bytes);
        case Rmw::bit_and: return cut(old & operand, bytes);
        case Rmw::bit_or: return cut(old | operand, bytes);
    }
    return 0;
}

World::World() {
    current = this;
    for (unsigned i = 0; i < max_threads; ++i) {
        threads_.push_back(std::make_unique<Thread>());
        threads_.back()->world = this;
        threads_.back()->index = i;
    }
}

World::~World() { current = nullptr; }

// --- running threads ---

void World::entry(void* argument) {
    auto* thread = static_cast<Thread*>(argument);
    try {
        (*thread->body)();
    } catch (const std::exception& error) {
        thread->world->record(std::string("exception: ") + error.what());
    } catch (...) {
        thread->world->record("exception");
    }
    thread->state = State::ended;
    for (;;) thread->fiber.suspend();
}

void World::run(Thread& thread) {
    running_ = &thread;
    thread.fiber.resume();
    running_ = nullptr;
}

void World::begin(const ErasedProgram& program, const Options& options, bool tracing) {
    options_ = options;
    tracing_ = tracing;
    count_ = static_cast<unsigned>(program.threads.size());
    objects_.clear();
    objects_.push_back({ObjectKind::fences, nullptr, 0, false, {}});
    names_.clear();
    trace_.clear();
    failure_.clear();
    past_ = {};
    surprises_ = options.surprises;
    forcing_ = false;
    forced_ = 0;
    steps_ = 0;
    memory_.reset(options.memory, count_);
    races_.reset();
    running_ = nullptr;
    program.setup();
    // Object 0 has a (never used) variable, so that the numbers agree.
    static std::uint64_t none = 0;
    memory_.add(fence_object, &none, sizeof none);
    for (unsigned i = 0; i < max_threads; ++i) {
        Thread& thread = *threads_[i];
        thread.state = i < count_ ? State::ready : State::ended;
        thread.seen.clear();
        thread.watched.clear();
        thread.turns = 0;
        thread.noticed = false;
        if (i >= count_) continue;
        thread.body = &program.threads[i];
        thread.fiber.start(&World::entry, &thread);
    }
    for (unsigned i = 0; i < count_ && failure_.empty(); ++i) run(*threads_[i]);
}

// Stops the running thread before the operation; comes back when it has been performed.
std::uint64_t World::step(const Operation& operation) {
    Thread& thread = *running_;
    thread.next = operation;
    thread.fiber.suspend();
    return thread.result;
}

void World::record(const std::string& failure) {
    if (!failure_.empty()) return;
    failure_ = failure;
    if (tracing_) trace_.push_back("     FAILURE: " + failure);
}

void World::stop() {
    if (running_ == nullptr) return;
    Thread& thread = *running_;
    thread.state = State::ended;
    for (;;) thread.fiber.suspend();
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
        record("more than " + std::to_string(surprise_object - 1) + " variables to wait or race on");
        stop();
    }
    const auto number = static_cast<unsigned>(objects_.size());
    objects_.push_back({kind, at, bytes, false, {}});
    static std::uint64_t none = 0;
    const bool variable = kind == ObjectKind::variable;
    memory_.add(number, variable ? const_cast<void*>(at) : &none, variable ? bytes : sizeof none);
    return number;
}

// --- what a thread may do next ---

// Under TSO these wait until the thread's stores have arrived.
bool World::drains(const Operation& operation) const {
    if (options_.memory != Memory::tso) return false;
    switch (operation.kind) {
        case Kind::load:
        case Kind::resume:
        case Kind::relax:
        case Kind::choose: return false;
        default: return true;
    }
}

// Has anything that the thread saw in its last turn changed since?
bool World::news(const Thread& thread) const {
    return std::ranges::any_of(thread.watched, [&](const Seen& seen) {
        return memory_.foreign(thread.index, seen.object, memory_.last(seen.object)) > seen.foreign;
    });
}

bool World::ready(const Thread& thread) const {
    if (thread.state != State::ready) return false;
    if (drains(thread.next) && memory_.buffered(thread.index)) return false;
    return thread.next.kind != Kind::relax || news(thread);
}

ProcessSet World::enabled() {
    ProcessSet set = 0;
    bool repeating = false;
    Thread* relaxing = nullptr;
    forcing_ = false;
    for (unsigned i = 0; i < count_; ++i) {
        Thread& thread = *threads_[i];
        if (memory_.buffered(i)) set |= bit(max_threads + i);
        if (ready(thread)) set |= bit(i);
        else if (thread.state == State::repeating) repeating = true;
        else if (thread.state == State::ready && thread.next.kind == Kind::relax &&
                 (relaxing == nullptr || thread.turns < relaxing->turns))
            relaxing = &thread;
    }
    if (set != 0 || relaxing == nullptr || repeating) return set;
    // Everyone waits, but some only as long as they care to: let them care less, in turn.
    if (forced_ >= forced_turns * count_) return 0;
    forcing_ = true;
    return bit(relaxing->index);
}

SharedMemory::Reach World::reach(unsigned process, const Operation& operation,
                                 const StepClock& past) const {
    const bool sc = operation.order == std::memory_order_seq_cst ||
                    operation.kind == Kind::futex_wait;
    return {process, operation.object, sc,
            options_.reduction && options_.preemption_bound < 0 ? &past : nullptr};
}

unsigned World::choices(unsigned process, const StepClock& reach_past) {
    if (process >= max_threads) return 1;
    const Thread& thread = *threads_[process];
    const Operation& next = thread.next;
    const unsigned surprise = surprises_ > 0 ? 1 : 0;
    switch (next.kind) {
        case Kind::load:
            if (memory_.forwarded(process, next.object) != nullptr) return 1;
            memory_.loads(reach(process, next, reach_past), places_);
            return static_cast<unsigned>(places_.size());
        case Kind::store:
            memory_.stores(reach(process, next, reach_past), places_);
            return static_cast<unsigned>(places_.size());
        case Kind::update:
            memory_.updates(reach(process, next, reach_past), places_);
            return static_cast<unsigned>(places_.size());
        case Kind::compare:
            memory_.compares(reach(process, next, reach_past), next.expected, places_);
            return static_cast<unsigned>(places_.size()) + (next.may_fail ? surprise : 0);
        case Kind::futex_wait:
            memory_.loads(reach(process, next, reach_past), places_);
            return static_cast<unsigned>(places_.size()) + surprise;
        case Kind::event_read:
        case Kind::event_poll: return 1 + surprise;
        case Kind::choose: return static_cast<unsigned>(next.operand);
        default: return 1;
    }
}

unsigned World::variable(unsigned process) const {
    if (process >= max_threads) return memory_.oldest_buffered(process - max_threads);
    const Operation& next = threads_[process]->next;
    return next.event == nullptr ? next.object : 0;
}

bool World::is_relax(unsigned process) const {
    return process < max_threads && threads_[process]->next.kind == Kind::relax;
}

StepClock World::past(unsigned process) const {
    StepClock clock = past_[process];
    if (process >= max_threads) clock.join(memory_.oldest_clock(process - max_threads));
    else if (drains(threads_[process]->next)) clock.join(past_[max_threads + process]);
    return clock;
}

Footprint World::footprint(unsigned process) const {
    Footprint print;
    if (process >= max_threads) {
        print.writes.set(memory_.oldest_buffered(process - max_threads));
        return print;
    }
    const Thread& thread = *threads_[process];
    const Operation& next = thread.next;
    const bool weak = options_.memory == Memory::weak;
    if (weak && next.order == std::memory_order_seq_cst) print.reads.set(fence_object);
    switch (next.kind) {
        case Kind::load: print.reads.set(next.object); break;
        case Kind::store:
        case Kind::update:
        case Kind::compare: print.writes.set(next.object); break;
        case Kind::fence:
            if (weak) print.writes.set(fence_object);
            break;
        case Kind::futex_wait:
            print.reads.set(next.object);
            print.writes.set(next.queue);
            if (weak) print.writes.set(fence_object);
            break;
        case Kind::futex_wake:
            print.writes.set(next.queue);
            if (weak) print.writes.set(fence_object);
            break;
        case Kind::event_write:
        case Kind::event_read:
        case Kind::event_try:
        case Kind::event_poll: print.writes.set(next.object); break;
        case Kind::relax:
            if (forcing_) print.writes.set();  // comes after everything
            for (const Seen& seen : thread.watched) print.reads.set(seen.object);
            break;
        case Kind::resume:
        case Kind::choose: break;
    }
    // A surprise is taken from all.
    if (options_.surprises > 0 && (next.may_fail || next.kind == Kind::futex_wait ||
                                   next.kind == Kind::event_read || next.kind == Kind::event_poll))
        print.writes.set(surprise_object);
    return print;
}

// --- steps ---

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
    const bool with_places = thread.next.kind == Kind::futex_wait ||
                             thread.next.kind == Kind::compare;
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
                if (tracing_) line(index, "load " + label(next.object) + " -> " + number(*own) +
                                " (own store, still buffered)");
            } else {
                do_load(thread, places_[choice]);
                if (tracing_) line(index, "load " + label(next.object) + " -> " + number(thread.result) + " " +
                                order_name(next.order) + stale(next.object, places_[choice]));
            }
            return true;
        case Kind::store: {
            const Place place = places_[choice];
            if (tracing_) line(index, "store " + label(next.object) + " = " + number(next.operand) + " " +
                            order_name(next.order) +
                            (place == memory_.last(next.object) ? "" : " (lands before a later one)"));
            touch(thread, next.object, Touch::atomic_write);
            memory_.store(index, next.object, place, next.operand, next.order, stamp);
            forced_ = 0;
            return true;
        }
        case Kind::update: {
            const Place place = places_[choice];
            if (tracing_) line(index, std::string(rmw_name(next.rmw)) + " " + label(next.object) + ", " +
                            number(next.operand) + " -> " + number(memory_.value(next.object, place)) +
                            " " + order_name(next.order) + stale(next.object, place));
            do_load(thread, place);
            touch(thread, next.object, Touch::atomic_write);
            memory_.update(index, next.object, place,
                           apply(next.rmw, thread.result, next.operand, next.bytes), next.order,
                           stamp);
            forced_ = 0;
            return true;
        }
        case Kind::compare: do_compare(thread, choice, stamp); return true;
        case Kind::fence:
            memory_.fence(index, next.order);
            if (tracing_) line(index, std::string("fence ") + order_name(next.order));
            return true;
        case Kind::futex_wait: return do_wait(thread, choice);
        case Kind::futex_wake: do_wake(thread); return true;
        case Kind::event_write:
        case Kind::event_read:
        case Kind::event_try:
        case Kind::event_poll: return do_event(thread, choice);
        case Kind::resume:
            if (tracing_) line(index, "runs again");
            return true;
        case Kind::relax:
            if (forcing_) {
                ++forced_;
                ++thread.turns;
            }
            thread.noticed = !forcing_;
            if (tracing_) line(index, forcing_ ? "spins on, nothing changes" : "spins on, something changed");
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
    if (tracing_) line(thread.index, "compare_exchange " + label(next.object) + ", " + number(next.expected) +
                           " by " + number(next.operand) + " -> " +
                           (thread.success ? "done " : "found ") +
                           (thread.success ? "" : number(memory_.value(next.object, place)) + " ") +
                           order_name(thread.success ? next.order : next.failure) +
                           (surprise ? " (fails for no reason)" : stale(next.object, place)));
    const std::uint64_t value = memory_.read(thread.index, next.object, place,
                                             thread.success ? next.order : next.failure);
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
    if (tracing_) line(thread.index, "futex_wake " + label(next.queue) + " -> wakes" +
                           (whom.empty() ? " nobody" : whom));
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
    if (tracing_) line(thread.index, std::string("eventfd ") + verb + what + " -> " + number(thread.result));
    return true;
}

void World::do_flush(unsigned thread, Stamp stamp) {
    const unsigned object = memory_.oldest_buffered(thread);
    memory_.flush(thread, stamp);
    forced_ = 0;
    if (tracing_) line(max_threads + thread,
         "store of " + label(object) + " = " + number(memory_.newest(object)) + " arrives");
}

// --- operations, as the thread calls them ---

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
    const Operation operation{.kind = Kind::store,
                              .object = variable,
                              .order = order,
                              .bytes = bytes,
                              .operand = value};
    if (options_.memory == Memory::tso && order != std::memory_order_seq_cst) {
        touch(thread, variable, Touch::atomic_write);
        memory_.buffer(thread.index, variable, value, order, past_[thread.index]);
        memory_.tick(thread.index);
        if (tracing_) line(thread.index, "store " + label(variable) + " = " + number(value) + " " +
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
    if (tracing_) line(running_->index, std::string(write ? "writes " : "reads ") + std::to_string(bytes) +
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

// --- endings and traces ---

World::Ending World::ending() const {
    bool ended = true;
    bool repeats = false;
    for (unsigned i = 0; i < count_; ++i) {
        ended = ended && threads_[i]->state == State::ended;
        repeats = repeats || threads_[i]->state == State::repeating;
    }
    if (ended) return Ending::complete;
    return repeats ? Ending::repeats : Ending::stuck;
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
    if (running_ != nullptr) line(running_->index, text);
    else trace_.push_back("     " + text);
}

void World::name(const void* object, const std::string& text) {
    if (tracing_) names_[object] = text;
}

void World::line(unsigned process, const std::string& text) {
    char head[32];
    const bool thread = process < max_threads;
    std::snprintf(head, sizeof head, "%4u  T%u%s ", steps_, thread ? process : process - max_threads,
                  thread ? " " : "'");
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

std::string World::stale(unsigned object, Place place) const {
    if (!tracing_ || place == memory_.last(object)) return {};
    return " (old: newest is " + number(memory_.newest(object)) + ")";
}

}  // namespace via::model
