#pragma once
// One execution of a program: its threads, each stopped before its next operation on shared state
// (a step), and the state itself. Which process takes the next step, and with which of its choices,
// is the caller's decision (search.hpp).

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checker.hpp"
#include "clock.hpp"
#include "fiber.hpp"
#include "memory.hpp"
#include "races.hpp"

namespace via::model {

enum class Kind : std::uint8_t {
    load,
    store,
    update,
    compare,
    fence,
    fence_of,  // of another thread: heavy_fence()
    futex_wait,
    futex_wake,
    event_write,
    event_read,
    event_try,
    event_poll,
    resume,  // after a futex_wake
    relax,
    choose,
};

struct Operation {
    Kind kind = Kind::load;
    unsigned object = 0;  // variable or eventfd
    unsigned queue = 0;   // of a futex
    unsigned thread = 0;  // whose fence it is
    std::memory_order order = std::memory_order_relaxed;
    std::memory_order failure = std::memory_order_relaxed;
    Rmw rmw = Rmw::exchange;
    bool may_fail = false;  // a weak compare-exchange
    std::size_t bytes = 0;
    std::uint64_t operand = 0;
    std::uint64_t expected = 0;
    EventFd* event = nullptr;
};

using ProcessSet = std::uint32_t;  // bit p: process p
constexpr ProcessSet bit(unsigned process) { return 1u << process; }

class World {
public:
    World();
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    void begin(const ErasedProgram& program, const Options& options, bool tracing);
    // Which processes can take a step. None: the execution is over, see ending().
    ProcessSet enabled();
    // The next step of an enabled process: what it touches, and what it depends on already.
    Footprint footprint(unsigned process) const;
    StepClock past(unsigned process) const;
    bool is_relax(unsigned process) const;
    // The atomic variable among what the step touches; 0 if there is none.
    unsigned variable(unsigned process) const;
    // In how many ways the step can go; at least 1. `past`: what it depends on already, other than
    // through its variable.
    unsigned choices(unsigned process, const StepClock& past);
    // Takes it. `clock`: all steps it depends on, itself included.
    void execute(unsigned process, unsigned choice, const StepClock& clock);

    enum class Ending { complete, repeats, stuck };
    // repeats: a thread spun on without noticing anything new, as in a shorter execution.
    Ending ending() const;
    std::string describe_stuck() const;

    const std::string& failure() const { return failure_; }
    // The first failure is kept. A model thread then has to stop: it never runs again, so nothing
    // on its stack may own memory.
    void record(const std::string& failure);
    void stop();
    const std::vector<std::string>& trace() const { return trace_; }
    bool tracing() const { return tracing_; }
    void note(const std::string& text);
    void name(const void* object, const std::string& text);

    // --- from a model thread ---
    Memory memory() const { return options_.memory; }
    bool running() const { return running_ != nullptr; }
    void init(void* at, std::size_t bytes);
    std::uint64_t load(const void* at, std::size_t bytes, std::memory_order order);
    void store(void* at, std::size_t bytes, std::uint64_t value, std::memory_order order);
    std::uint64_t update(void* at, std::size_t bytes, Rmw rmw, std::uint64_t operand,
                         std::memory_order order);
    bool compare(void* at, std::size_t bytes, std::uint64_t& expected, std::uint64_t desired,
                 std::memory_order success, std::memory_order failure, bool weak);
    void fence(std::memory_order order);
    void light_fence();
    void heavy_fence(bool of_process);
    unsigned thread() const { return running_->index; }
    void relax();
    void plain(const void* at, std::size_t bytes, bool write);
    unsigned choose(unsigned count);
    Wake wait(const void* word, std::uint32_t expected);
    unsigned wake(const void* word, unsigned count);
    std::uint64_t event(EventFd* event, Kind kind, std::uint64_t operand);

private:
    // What a thread saw of a variable since its last relax().
    struct Seen {
        unsigned object;
        std::uint64_t value;
        unsigned foreign;  // values of other threads up to the one seen
    };
    enum class State : std::uint8_t { ready, waiting, repeating, ended };
    struct Thread {
        Fiber fiber;
        World* world = nullptr;
        unsigned index = 0;
        const std::function<void()>* body = nullptr;
        State state = State::ended;
        Operation next;
        std::uint64_t result = 0;
        bool success = false;
        std::vector<Seen> seen;
        std::vector<Seen> watched;  // of the loop turn before
        unsigned turns = 0;         // that saw the same
        bool noticed = false;       // something new was there when the last relax() ended
    };

    enum class ObjectKind : std::uint8_t { fences, variable, futex, event };
    struct Object {
        ObjectKind kind;
        const void* at;
        std::size_t bytes;
        bool retired;
        std::vector<unsigned> waiters;  // threads, first come first
    };

    [[noreturn]] static void entry(void* thread);
    void run(Thread& thread);
    std::uint64_t step(const Operation& operation);
    unsigned object(ObjectKind kind, const void* at, std::size_t bytes);
    SharedMemory::Reach reach(unsigned process, const Operation& operation,
                              const StepClock& past) const;
    bool drains(const Operation& operation) const;
    bool ready(const Thread& thread) const;
    bool news(const Thread& thread) const;
    void saw(Thread& thread, unsigned object, std::uint64_t value, unsigned foreign);
    void touch(const Thread& thread, const void* at, std::size_t bytes, Touch touch);
    void touch(const Thread& thread, unsigned variable, Touch how);
    bool surprised(const Thread& thread, unsigned choice);

    bool perform(Thread& thread, unsigned choice, Stamp stamp);  // false: it now waits
    void do_load(Thread& thread, Place place);
    void do_compare(Thread& thread, unsigned choice, Stamp stamp);
    bool do_wait(Thread& thread, unsigned choice);
    void do_wake(Thread& thread);
    bool do_event(Thread& thread, unsigned choice);
    void do_flush(unsigned thread, Stamp stamp);

    void line(unsigned process, const std::string& text);
    std::string label(unsigned object) const;
    std::string label(const void* at) const;
    std::string stale(unsigned object, Place place) const;
    std::string overtakes(unsigned object, Place place) const;

    Options options_;
    unsigned count_ = 0;  // threads
    std::vector<std::unique_ptr<Thread>> threads_;
    std::vector<Object> objects_;
    SharedMemory memory_;
    Races races_;
    std::array<StepClock, max_processes> past_;
    std::vector<Place> places_;  // of the step whose choices were asked last
    Thread* running_ = nullptr;
    unsigned surprises_ = 0;
    bool forcing_ = false;  // all wait; relaxing threads go on for nothing
    unsigned forced_ = 0;   // how often, since anything changed
    std::string failure_;
    bool tracing_ = false;
    unsigned steps_ = 0;
    std::vector<std::string> trace_;
    std::unordered_map<const void*, std::string> names_;
};

// The one that exists, or null; where the operations of model threads lead.
extern World* current;

// The value as an atomic of that many bytes holds it.
inline std::uint64_t cut(std::uint64_t value, std::size_t bytes) {
    return bytes == 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}
// The new value of an atomic of that many bytes.
std::uint64_t apply(Rmw rmw, std::uint64_t old, std::uint64_t operand, std::size_t bytes);

}  // namespace via::model
