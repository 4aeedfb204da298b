// A child process: this program again, in a role. Parent and child talk by short messages, and
// share a page that outlives a kill.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "support/must.hpp"
#include "support/wait.hpp"

namespace system_test {

/// What both ends of the line can do.
class Line {
public:
    explicit Line(int socket) : socket_(socket) {}
    ~Line();
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    void say(const std::string& message, Where where = Where::current());
    /// The next message; fails when the other side is gone or says nothing for too long.
    std::string hear(Where where = Where::current());
    /// Hears exactly this.
    void expect(const std::string& message, Where where = Where::current());
    /// True when there is a message, or the other side is gone.
    bool ready() const;

private:
    int socket_;
};

/// Memory that a child shares with its parent; zeros at first.
constexpr std::size_t shared_bytes = 65536;

class Child : public Line {
public:
    struct Options {
        std::vector<std::string> arguments = {};
        std::vector<std::string> environment = {};  ///< "NAME=value", besides ours
        const Child* shares_with = nullptr;         ///< whose memory it shares, too
    };
    explicit Child(const std::string& role) : Child(role, Options{}) {}
    Child(const std::string& role, const Options& options);
    /// Kills it, whatever it does.
    ~Child();

    pid_t pid() const { return pid_; }
    template <class T>
    T& shared() const {
        static_assert(sizeof(T) <= shared_bytes);
        return *static_cast<T*>(shared_);
    }
    /// Sends a signal; returns at once.
    void signal(int number) const;
    /// Stops it and returns when it stands still.
    void stop() const;
    void go_on() const { signal(SIGCONT); }
    /// SIGKILL; returns when it is dead and reaped.
    void kill();
    /// Lets it end by itself; fails unless it does so without error.
    void join(Where where = Where::current());

private:
    struct Start;
    Child(const std::string& role, const Options& options, Start start);

    pid_t pid_ = -1;
    int memory_ = -1;
    void* shared_ = nullptr;
};

/// The child's view of its parent.
class Parent : public Line {
public:
    Parent(std::vector<std::string> arguments, void* shared);
    const std::string& argument(std::size_t index) const { return arguments_.at(index); }
    std::size_t arguments() const { return arguments_.size(); }
    template <class T>
    T& shared() const {
        return *static_cast<T*>(shared_);
    }

private:
    std::vector<std::string> arguments_;
    void* shared_;
};

/// What a child does: the role's function returns, or throws, and the process ends.
using RoleFunction = void (*)(Parent& parent);

/// Makes a role known; at namespace scope.
struct Role {
    Role(const char* name, RoleFunction function);
};

/// Runs a role if the command line says so; -1: it does not.
int run_role(int argc, char** argv);

/// What waitpid says of process `pid`; fails when the watchdog bites.
int reap(pid_t pid);

}  // namespace system_test
