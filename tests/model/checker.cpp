#include "checker.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "search.hpp"
#include "world.hpp"

// VIA_ASSERT in the code under test ends the exploration with a trace.
void via::assert_failed(const char* condition, const char* file, int line) {
    using via::model::current;
    if (current == nullptr) std::abort();
    current->record(std::string(file) + ":" + std::to_string(line) + ": VIA_ASSERT(" + condition +
                    ")");
    current->stop();
    std::abort();
}

namespace via::model {

namespace {

bool in_thread() { return current != nullptr && current->running(); }

// Outside of model threads an atomic is its bytes.
std::uint64_t peek(const void* at, std::size_t bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, at, bytes);
    return value;
}

void poke(void* at, std::size_t bytes, std::uint64_t value) { std::memcpy(at, &value, bytes); }

std::string title(const std::string& name, Memory memory) {
    return name + " [" + memory_name(memory) + "]";
}

// VIA_MODEL_REPLAY="name [memory]: schedule" replays one execution of one program.
std::string replay_from_environment(const std::string& name, Memory memory) {
    const char* text = std::getenv("VIA_MODEL_REPLAY");
    const std::string prefix = title(name, memory) + ": ";
    if (text == nullptr || std::strncmp(text, prefix.c_str(), prefix.size()) != 0) return {};
    return text + prefix.size();
}

}  // namespace

std::string Result::report() const {
    std::string text = "model " + title(name, memory) + ": " + std::to_string(executions) +
                       " executions, " + std::to_string(cut) + " cut short, " +
                       std::to_string(steps) + " steps";
    if (failure.empty()) {
        if (!exhaustive) text += "; NOT EXHAUSTIVE";
        text += "\n";
        if (!trace.empty()) text += trace;
        return text;
    }
    text += "\n  FAILURE: " + failure + "\n" + trace;
    if (schedule.empty()) return text;
    text += "  replay with VIA_MODEL_REPLAY=\"" + title(name, memory) + ": " + schedule + "\"\n";
    return text;
}

Result explore_erased(const ErasedProgram& program, const Options& options) {
    Result result;
    if (current != nullptr) {
        result.failure = "explore() within explore()";
        return result;
    }
    Options used = options;
    if (used.replay.empty()) used.replay = replay_from_environment(program.name, used.memory);
    Search search(program, used);
    result = search.run();
    if (used.print) std::fputs(result.report().c_str(), stdout);
    return result;
}

void fail(std::string_view message) {
    if (current == nullptr) std::abort();
    current->record(std::string(message));
    current->stop();
}

unsigned choose(unsigned count) { return in_thread() ? current->choose(count) : 0; }

void name(const void* object, const std::string& text) {
    if (current != nullptr) current->name(object, text);
}

void note(const std::string& text) {
    if (current != nullptr) current->note(text);
}

bool running() { return in_thread(); }

Wake futex_wait(const Atomic<std::uint32_t>& word, std::uint32_t expected) {
    if (!in_thread()) std::abort();
    return current->wait(&word, expected);
}

unsigned futex_wake(const Atomic<std::uint32_t>& word, unsigned count) {
    return in_thread() ? current->wake(&word, count) : 0;
}

void EventFd::write(std::uint64_t by) {
    if (in_thread())
        current->event(this, Kind::event_write, by);
    else
        count_ += by;
}

std::uint64_t EventFd::read() {
    if (!in_thread()) std::abort();
    return current->event(this, Kind::event_read, 0);
}

std::uint64_t EventFd::try_read() {
    if (in_thread()) return current->event(this, Kind::event_try, 0);
    return std::exchange(count_, 0);
}

bool EventFd::poll() {
    if (!in_thread()) std::abort();
    return current->event(this, Kind::event_poll, 0) != 0;
}

// --- the hooks of base/atomic.hpp ---

void atomic_init(void* at, std::size_t bytes) {
    if (in_thread()) current->init(at, bytes);
}

std::uint64_t atomic_load(const void* at, std::size_t bytes, std::memory_order order) {
    return in_thread() ? current->load(at, bytes, order) : peek(at, bytes);
}

void atomic_store(void* at, std::size_t bytes, std::uint64_t value, std::memory_order order) {
    if (in_thread())
        current->store(at, bytes, value, order);
    else
        poke(at, bytes, value);
}

std::uint64_t atomic_rmw(void* at, std::size_t bytes, Rmw kind, std::uint64_t operand,
                         std::memory_order order) {
    if (in_thread()) return current->update(at, bytes, kind, operand, order);
    const std::uint64_t old = peek(at, bytes);
    poke(at, bytes, apply(kind, old, operand, bytes));
    return old;
}

bool atomic_compare_exchange(void* at, std::size_t bytes, std::uint64_t& expected,
                             std::uint64_t desired, std::memory_order success,
                             std::memory_order failure, bool weak) {
    if (in_thread()) return current->compare(at, bytes, expected, desired, success, failure, weak);
    std::uint64_t wanted = 0;
    std::memcpy(&wanted, &expected, bytes);
    const std::uint64_t found = peek(at, bytes);
    if (found == wanted)
        poke(at, bytes, desired);
    else
        expected = found;
    return found == wanted;
}

void fence(std::memory_order order) {
    if (in_thread()) current->fence(order);
}

// Under tso (x86) it is left to the read-modify-write.
void fence_after_rmw() {
    if (in_thread() && current->memory() == Memory::weak) current->fence(std::memory_order_seq_cst);
}

void light_fence() {
    if (in_thread()) current->light_fence();
}

void heavy_fence(bool of_process) {
    if (in_thread()) current->heavy_fence(of_process);
}

std::uintptr_t thread_mark(unsigned thread) { return 16 + thread; }

std::uintptr_t this_thread() { return thread_mark(in_thread() ? current->thread() : max_threads); }

void relax() {
    if (in_thread()) current->relax();
}

void plain_read(const void* at, std::size_t bytes) {
    if (in_thread()) current->plain(at, bytes, false);
}

void plain_write(const void* at, std::size_t bytes) {
    if (in_thread()) current->plain(at, bytes, true);
}

}  // namespace via::model
