#include "world.hpp"

#include <algorithm>
#include <exception>

namespace via::model {

namespace {

// How many loop turns for nothing all threads together may take before it is called a livelock.
constexpr unsigned forced_turns = 16;

}  // namespace

World* current = nullptr;

World::World() {
    current = this;
    for (unsigned i = 0; i < max_threads; ++i) {
        threads_.push_back(std::make_unique<Thread>());
        threads_.back()->world = this;
        threads_.back()->index = i;
    }
}

World::~World() { current = nullptr; }

void World::entry(void* argument) {
    auto* thread = static_cast<Thread*>(argument);
    try {
        (*thread->body)();
    } catch (const std::exception& error) {
        thread->world->record(std::string("exception: ") + error.what());
    } catch (...) {
        thread->world->record("exception");
    }
    thread->world->memory_.light_fence(thread->index);  // all it did is done
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
        objects_.push_back({ObjectKind::fences, nullptr, 0, false, {}});
        memory_.add(thread_object(i), &none, sizeof none);
    }
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

// --- what a thread may do next ---

// Under TSO these wait until the thread's stores have arrived.
bool World::drains(const Operation& operation) const {
    if (options_.memory != Memory::tso) return false;
    switch (operation.kind) {
        case Kind::load:
        case Kind::resume:
        case Kind::relax:
        case Kind::choose:
            return false;
        default:
            return true;
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
    if (thread.next.kind == Kind::fence_of && memory_.holds_back(thread.next.thread)) return false;
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
        if (ready(thread))
            set |= bit(i);
        else if (thread.state == State::repeating)
            repeating = true;
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
    const bool sc =
        operation.order == std::memory_order_seq_cst || operation.kind == Kind::futex_wait;
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
        case Kind::event_poll:
            return 1 + surprise;
        case Kind::choose:
            return static_cast<unsigned>(next.operand);
        default:
            return 1;
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
    if (process >= max_threads)
        clock.join(memory_.oldest_clock(process - max_threads));
    else if (drains(threads_[process]->next))
        clock.join(past_[max_threads + process]);
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
    // Not of a buffer: that stores arrive before the fence is no choice, that they come from before
    // it is.
    if (options_.heavy_fences) print.reads.set(thread_object(process));
    if (weak && next.order == std::memory_order_seq_cst) print.reads.set(fence_object);
    switch (next.kind) {
        case Kind::load:
            print.reads.set(next.object);
            break;
        case Kind::store:
        case Kind::update:
        case Kind::compare:
            print.writes.set(next.object);
            break;
        case Kind::fence:
            if (weak) print.writes.set(fence_object);
            break;
        case Kind::fence_of:
            print.writes.set(thread_object(next.thread));
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
        case Kind::event_poll:
            print.writes.set(next.object);
            break;
        case Kind::relax:
            if (forcing_) print.writes.set();  // comes after everything
            for (const Seen& seen : thread.watched) print.reads.set(seen.object);
            break;
        case Kind::resume:
        case Kind::choose:
            break;
    }
    // A surprise is taken from all.
    if (options_.surprises > 0 && (next.may_fail || next.kind == Kind::futex_wait ||
                                   next.kind == Kind::event_read || next.kind == Kind::event_poll))
        print.writes.set(surprise_object);
    return print;
}

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

}  // namespace via::model
