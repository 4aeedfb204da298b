// A conformance test is a list of roles. It is written once and runs on every stage (stage.hpp)
// that has what the test needs, as test "<stage>.<name>".
//
//     VIPL_TEST(Vipl_4_11_length_says_what_arrived, nothing) {
//         test.role("server", [](Role& me) { ... me.tell("client", value); ... });
//         test.role("client", [](Role& me) { ... me.hear<int>("server") ... });
//     }
//
// Roles share nothing but what they tell each other and what VIPL carries.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "harness/check.hpp"

namespace conformance {

class Nic;
class Role;
class Stage;
class Lines;

/// What a test may ask of a stage; a test is not instantiated where its needs are not met.
enum Need : unsigned {
    nothing = 0,
    own_nics = 1,      ///< each role has its own NIC handle; loopback joins one to itself
    real_threads = 2,  ///< threads run when they like and may block outside of VIPL
    processes = 4,     ///< roles may fork, exit and be killed
    polls_memory = 8,  ///< plain memory may be read while a NIC writes it: not under tsan
    configured = 16,   ///< names come from files and variables: a real host
    shares = 32,       ///< segments of one role's memory can be mapped by another
};

/// Patience of the helpers with calls that must come to an end, milliseconds. No test is right or
/// wrong by it: when it runs out, the library has failed.
constexpr VIP_ULONG patience_ms = 20000;

using RoleFunction = std::function<void(Role&)>;

/// How a role ends. All but returning needs a stage of processes.
struct Ending {
    enum class Kind { returns, exits, killed } kind = Kind::returns;
    int code = 0;  ///< exit status or signal
};
constexpr Ending returns{};
constexpr Ending exits_with(int status) { return {Ending::Kind::exits, status}; }
constexpr Ending killed_by(int signal) { return {Ending::Kind::killed, signal}; }

struct RolePlan {
    std::string name;
    RoleFunction act;
    Ending ending;
};

/// One run of a test: collects its roles.
class Test {
public:
    void role(std::string name, RoleFunction act, Ending ending = returns) {
        plans_.push_back({std::move(name), std::move(act), ending});
    }
    const std::vector<RolePlan>& plans() const { return plans_; }

private:
    std::vector<RolePlan> plans_;
};

/// A thread of a role beside its main one; a failure in it is thrown on by join().
class Thread {
public:
    Thread(Role& role, std::function<void()> act);
    Thread(Thread&&) = delete;
    ~Thread();
    bool ended() const;
    void join(Where where = Where::current());

private:
    struct State {
        std::atomic<bool> ended{false};
        std::exception_ptr failure;
    };
    Role& role_;
    std::shared_ptr<State> state_ = std::make_shared<State>();
    std::thread thread_;
};

/// What a role's function sees of the harness. One thread at a time may tell, hear and meet.
class Role {
public:
    Role(Stage& stage, Lines& lines, std::size_t index);
    ~Role();

    const std::string& name() const;
    Stage& stage() { return stage_; }
    /// This role's NIC, opened by the first call, closed when the role ends. On a stage without
    /// own_nics it is one for all roles.
    Nic& nic();
    /// What the role gives to VipOpenNic.
    std::string device_name() const;
    /// From now on that is a NIC on a host of the role's own, where there can be several.
    void move_to_own_host() { on_own_host_ = true; }
    /// From now on that is a NIC with these options; for stages with own_nics.
    void take_options(std::string options) { options_ = "," + std::move(options); }
    /// The name under which this role's host is found.
    std::string host_name() const;
    /// A discriminator that no other test run on this machine has.
    std::string discriminator(std::string_view word) const;

    /// Sends a value to another role; never blocks.
    template <class T>
    void tell(std::string_view role, const T& value, Where where = Where::current()) {
        static_assert(std::is_trivially_copyable_v<T>);
        send_bytes(role, &value, sizeof value, where);
    }
    /// The next value that another role told us; waits for it.
    template <class T>
    T hear(std::string_view role, Where where = Where::current()) {
        static_assert(std::is_trivially_copyable_v<T>);
        T value;
        receive_bytes(role, &value, sizeof value, where);
        return value;
    }
    /// Is there something to hear (or has that role ended)? Never waits.
    bool was_told_by(std::string_view role, Where where = Where::current()) const;
    /// Waits until all roles are here.
    void meet(Where where = Where::current());
    /// The same with one other role.
    void meet_with(std::string_view role, Where where = Where::current());
    /// Waits until that role has ended, however; in a stage of processes until it is dead.
    void wait_for_end_of(std::string_view role, Where where = Where::current());

    /// Waits until `holds` does, asking again and again. Calls nothing of the library, so that the
    /// condition may be about plain memory.
    template <class Condition>
    void until(Condition holds, const char* what, Where where = Where::current()) {
        Patience patience(*this, what, where);
        while (!holds()) patience.pause();
    }

    /// Lets others run for a moment, without a call of the library.
    void pause();

private:
    /// Bounds until().
    class Patience {
    public:
        Patience(Role& role, const char* what, Where where);
        void pause();

    private:
        Role& role_;
        const char* what_;
        Where where_;
        unsigned long pauses_ = 0;
        long started_ms_;
    };

    void send_bytes(std::string_view role, const void* bytes, std::size_t length, Where where);
    void receive_bytes(std::string_view role, void* bytes, std::size_t length, Where where);
    int line_to(std::string_view role, Where where) const;
    void pass_turn();

    Stage& stage_;
    Lines& lines_;
    std::size_t index_;
    std::shared_ptr<Nic> nic_;
    bool on_own_host_ = false;
    std::string options_;
};

/// Puts a test on the list of every stage that the program has.
class Registered {
public:
    Registered(const char* name, void (*plan)(Test&), unsigned needs, Where where);
};

}  // namespace conformance

#define VIPL_TEST(name, needs)                                                                 \
    static void name(::conformance::Test& test);                                               \
    static const ::conformance::Registered registered_##name(#name, name, (needs),             \
                                                             std::source_location::current()); \
    static void name(::conformance::Test& test)
