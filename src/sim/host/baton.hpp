// Threads under virtual time: exactly one runs, the one that has the baton. It passes the baton on
// when it waits, pauses, leaves or ends; so a run with several threads repeats like one with one,
// and debuggers and sanitizers see ordinary threads.
//
// A thread that calls a simulated NIC takes part from its first call on. To make the order
// certain, a test enlists its threads before it starts them:
//     const auto place = sim::enlist("server");
//     std::thread thread([place] { sim::join(place); ...; sim::leave(); });
// A thread that takes part must not block outside of VIPL and these calls, unless it is away().
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <string>
#include <string_view>

#include "agent/agent.hpp"
#include "base/time.hpp"

namespace via::sim {

/// A place in the order of threads, once.
using Place = unsigned;

/// Gives a thread that will come a place behind all that were given. Others wait for it: a place
/// must be taken. Any thread.
Place enlist(std::string_view name);
/// The calling thread takes its place and returns when it has the baton.
void join(Place place);
/// The calling thread takes no part any more; nothing happens if it did not. The end of a thread
/// does the same.
void leave();
/// Lets the others run, and a little virtual time pass. For loops that wait for plain memory.
void pause();
/// Virtual time of the process's world.
Time now();

/// While it lives the calling thread takes no part, so that it may wait for others by means of the
/// system (std::thread::join). When it ends the thread gets the baton again.
class Away {
public:
    Away();
    ~Away();
    Away(const Away&) = delete;
    Away& operator=(const Away&) = delete;

private:
    std::string name_;
    bool was_member_;
};

/// What goes on while no thread runs.
class Clockwork {
public:
    virtual ~Clockwork() = default;
    virtual Time now() const = 0;
    /// Lets everything happen that is due by now.
    virtual void settle() = 0;
    /// When something happens next that is known now; never() if nothing will.
    virtual Time next() = 0;
    /// Moves time on to `moment`, or to what happens before. False: it is never(), and nothing
    /// will.
    virtual bool advance(Time moment) = 0;
};

/// The baton itself; one per process. The calls above go to it; agents use the rest.
class Baton {
public:
    explicit Baton(Clockwork& clockwork) : clockwork_(clockwork) {}

    Place enlist(std::string_view name, bool service = false);
    void join(Place place);
    /// Nobody will take that place.
    void dismiss(Place place);
    /// The calling thread takes part if it did not yet.
    void join_unless_member();
    bool is_member() const;
    void leave(bool comes_back);
    void come_back(std::string_view name);
    std::string my_name() const;
    /// No other thread takes part.
    bool is_alone();

    /// Passes the baton on until the condition holds (true), or until `deadline`, or `closed` says
    /// so (false). `what` says for whom the thread waits.
    bool wait(const agent::Condition& condition, Time deadline, const bool* closed,
              const std::string& what);
    /// True in the thread that is letting the clockwork run.
    static bool is_settling();

private:
    enum class Stage : std::uint8_t { enlisted, running, waiting };
    struct Member {
        Place place;
        std::string name;
        bool service;  ///< a thread of the library, which waits for ever by right
        Stage stage = Stage::enlisted;
        agent::Condition condition{};
        Time deadline{};
        const bool* closed = nullptr;
        std::string what;
        bool result = false;
        std::condition_variable changed;
    };

    void pass_on();
    Member* choose();
    bool can_run(Member& member);
    bool somebody_matters() const;
    [[noreturn]] void deadlock() const;
    void run_as(Member& member, std::unique_lock<std::mutex>& lock);

    Clockwork& clockwork_;
    std::mutex mutex_;
    std::list<Member> members_;
    Member* current_ = nullptr;
    Place next_place_ = 0;
    Place last_ = ~Place{0};  ///< place of the thread that ran last
    unsigned away_ = 0;       ///< threads that will come back
};

}  // namespace via::sim
