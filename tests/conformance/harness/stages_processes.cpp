// Roles as processes, on every medium between processes. A child's failures come back over a pipe,
// with file and line.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "harness/media.hpp"
#include "harness/stage.hpp"

namespace conformance {

namespace {

using Clock = std::chrono::steady_clock;
/// What the others have left once something has failed.
constexpr std::chrono::seconds grace{15};

/// Exit status of a role that has reported failures.
constexpr int failed_status = 1;

/// In a child: sends every failed assertion to the parent, as "file\0line\0text\0"; without a
/// file it says that the role has come to its end.
class Reporter : public testing::EmptyTestEventListener {
public:
    explicit Reporter(int pipe) : pipe_(pipe) {}
    void report(std::string file, int line, const std::string& text) {
        std::string record = std::move(file);
        record += '\0' + std::to_string(line) + '\0' + text + '\0';
        for (std::size_t sent = 0; sent < record.size();) {
            const ssize_t got = write(pipe_, record.data() + sent, record.size() - sent);
            if (got < 0 && errno != EINTR) return;  // the parent is gone
            if (got > 0) sent += static_cast<std::size_t>(got);
        }
    }

private:
    void OnTestPartResult(const testing::TestPartResult& result) override {
        if (!result.failed()) return;
        report(result.file_name() == nullptr ? "(unknown)" : result.file_name(),
               result.line_number(), result.message());
    }

    int pipe_;
};

/// In the parent: a role's process.
class Child {
public:
    Child(const RolePlan& plan, pid_t pid, int pipe)
        : plan_(plan),
          pid_(pid),
          pipe_(pipe),
          pidfd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
    ~Child() {
        close(pipe_);
        if (pidfd_ >= 0) close(pidfd_);
    }
    Child(const Child&) = delete;

    const RolePlan& plan() const { return plan_; }
    int pidfd() const { return pidfd_; }
    int pipe() const { return ended_ ? -1 : pipe_; }
    bool ended() const { return ended_; }
    void kill_now() const { kill(pid_, SIGKILL); }

    /// Turns what was reported into failures of ours; the number of them.
    int read_reports() {
        char bytes[4096];
        ssize_t got = 0;
        while ((got = read(pipe_, bytes, sizeof bytes)) > 0)
            reports_.append(bytes, static_cast<std::size_t>(got));
        int failures = 0;
        for (std::string file, line, text; take_record(file, line, text);) {
            if (file.empty()) {
                came_to_its_end_ = true;
                continue;
            }
            ++failures;
            ADD_FAILURE_AT(file.c_str(), std::atoi(line.c_str())) << text;
        }
        failures_ += failures;
        return failures;
    }

    /// Takes the dead process in; false: it ended otherwise than planned.
    bool reap() {
        ended_ = true;
        int status = 0;
        pid_t got = 0;
        do got = waitpid(pid_, &status, 0);
        while (got < 0 && errno == EINTR);
        const Ending& planned = plan_.ending;
        const bool killed = planned.kind == Ending::Kind::killed;
        if (killed && WIFSIGNALED(status) && WTERMSIG(status) == planned.code) return true;
        const int code = planned.kind == Ending::Kind::exits ? planned.code : 0;
        const bool whole = planned.kind != Ending::Kind::returns || came_to_its_end_;
        if (!killed && whole && WIFEXITED(status) && WEXITSTATUS(status) == code) return true;
        if (failures_ > 0 && WIFEXITED(status) && WEXITSTATUS(status) == failed_status)
            return false;
        ADD_FAILURE() << "role " << plan_.name
                      << (WIFSIGNALED(status) ? " was killed by signal " : " exited with status ")
                      << (WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        return false;
    }

private:
    bool take_record(std::string& file, std::string& line, std::string& text) {
        std::size_t from = 0;
        for (std::string* field : {&file, &line, &text}) {
            const std::size_t end = reports_.find('\0', from);
            if (end == std::string::npos) return false;
            *field = reports_.substr(from, end - from);
            from = end + 1;
        }
        reports_.erase(0, from);
        return true;
    }

    const RolePlan& plan_;
    pid_t pid_;
    int pipe_;
    int pidfd_;
    std::string reports_;
    int failures_ = 0;
    bool came_to_its_end_ = false;
    bool ended_ = false;
};

/// With VIA_TEST_NETWORKS="a b" roles of udp are in these network namespaces by turns.
void enter_network(std::size_t role) {
    const char* networks = std::getenv("VIA_TEST_NETWORKS");
    if (networks == nullptr) return;
    const std::string names = networks;
    const std::size_t blank = names.find(' ');
    const std::string name = role % 2 == 0 ? names.substr(0, blank) : names.substr(blank + 1);
    const int network = open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
    require(network >= 0 && setns(network, CLONE_NEWNET) == 0, "the role's network can be entered");
    close(network);
}

class Processes : public Stage {
public:
    explicit Processes(std::string medium) : medium_(std::move(medium)) {}
    std::string name() const override { return medium_; }
    unsigned has() const override {
        const unsigned of_medium = shares_memory(medium_) ? shares : nothing;
        return own_nics | real_threads | processes | polling | configured | of_medium;
    }
    std::string device_name(const std::string&) const override { return nic_name(medium_); }
    std::string device_on_own_host(const std::string& role) const override {
        return nic_name(medium_, role);
    }

    void run(const std::vector<RolePlan>& plans) override {
        Lines lines(plans);
        std::vector<std::unique_ptr<Child>> children;
        for (std::size_t index = 0; index < plans.size(); ++index)
            children.push_back(start(plans, lines, index));
        lines.keep_only(plans.size());
        attend(children);
    }

private:
    std::unique_ptr<Child> start(const std::vector<RolePlan>& plans, Lines& lines,
                                 std::size_t index) {
        int pipe[2];
        require(pipe2(pipe, O_CLOEXEC | O_NONBLOCK) == 0, "a pipe for reports can be made");
        std::fflush(nullptr);
        const pid_t parent = getpid();
        const pid_t pid = fork();
        require(pid >= 0, "a process can be made");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) _exit(1);
            close(pipe[0]);
            lines.keep_only(index);
            fcntl(pipe[1], F_SETFL, 0);
            if (medium_ == "udp") enter_network(index);
            be(plans[index], lines, index, pipe[1]);
        }
        close(pipe[1]);
        return std::make_unique<Child>(plans[index], pid, pipe[0]);
    }

    [[noreturn]] void be(const RolePlan& plan, Lines& lines, std::size_t index, int pipe) {
        testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
        delete listeners.Release(listeners.default_result_printer());
        auto* reporter = new Reporter(pipe);
        listeners.Append(reporter);
        if (act_out(plan, *this, lines, index) && plan.ending.kind != Ending::Kind::returns)
            ADD_FAILURE() << "role " << plan.name << " returned, which it should not";
        reporter->report("", 0, "");
        // The whole way out, so that what the library does at exit is seen, too.
        std::exit(testing::Test::HasFailure() ? failed_status : 0);
    }

    static void attend(std::vector<std::unique_ptr<Child>>& children) {
        Clock::time_point deadline = Clock::now() + watchdog();
        std::size_t left = children.size();
        while (left > 0) {
            if (!wait_for_news(children, deadline)) {
                for (const auto& child : children) {
                    if (child->ended()) continue;
                    ADD_FAILURE() << "role " << child->plan().name << " does not end";
                    child->kill_now();
                }
                deadline = Clock::now() + watchdog();
            }
            bool failed = false;
            for (const auto& child : children) {
                if (child->ended()) continue;
                pollfd entry{child->pidfd(), POLLIN, 0};
                const bool dead = poll(&entry, 1, 0) > 0;
                const int failures = child->read_reports();  // all, once the process is dead
                failed = failed || failures > 0;
                if (!dead) continue;
                --left;
                if (!child->reap()) failed = true;
            }
            if (failed) deadline = std::min(deadline, Clock::now() + grace);
        }
    }

    /// Waits until a child reports or ends; false: time is up.
    static bool wait_for_news(const std::vector<std::unique_ptr<Child>>& children,
                              Clock::time_point deadline) {
        std::vector<pollfd> entries;
        for (const auto& child : children) {
            if (child->ended()) continue;
            entries.push_back({child->pidfd(), POLLIN, 0});
        }
        using std::chrono::milliseconds;
        const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) return false;
        // Reports are looked at now and then as well; a dead child's are read in the end anyway.
        poll(entries.data(), entries.size(), static_cast<int>(std::min<long>(left.count(), 500)));
        return true;
    }

    std::string medium_;
};

}  // namespace

const std::vector<Stage*>& stages() {
    static const auto& all = *new auto([] {  // reachable to the very end
        std::vector<Stage*> found;
        for (const std::string& medium : media())
            if (is_between_processes(medium)) found.push_back(new Processes(medium));
        return found;
    }());
    return all;
}

}  // namespace conformance
