#include "support/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

namespace system_test {

namespace {

constexpr int line_descriptor = 3;
constexpr int shared_descriptor = 4;
/// The parent's are numbered from here, so that moving them to those two collides with nothing.
constexpr int inherited_max = 10;
constexpr std::size_t message_length_max = 4096;

std::map<std::string, RoleFunction>& roles() {
    static std::map<std::string, RoleFunction> all;
    return all;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> result;
    for (std::string& text : strings) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
}

int create_shared() {
    const int created = memfd_create("shared-page", MFD_CLOEXEC);
    require_call(created >= 0 && ftruncate(created, shared_bytes) == 0, "memfd_create");
    const int memory = fcntl(created, F_DUPFD_CLOEXEC, inherited_max);
    close(created);
    return memory;
}

void* map_shared(int memory) {
    void* at = mmap(nullptr, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    require_call(at != MAP_FAILED, "mmap of the shared page");
    return at;
}

}  // namespace

// The line ----------------------------------------------------------------------------------------

Line::~Line() { close(socket_); }

void Line::say(const std::string& message, Where where) {
    const ssize_t sent = send(socket_, message.data(), message.size(), MSG_NOSIGNAL);
    require_call(sent == static_cast<ssize_t>(message.size()), "saying '" + message + "'", where);
}

std::string Line::hear(Where where) {
    pollfd entry{socket_, POLLIN, 0};
    int got = 0;
    do got = poll(&entry, 1, watchdog_ms);
    while (got < 0 && errno == EINTR);
    require(got == 1, "the other process says something in time", where);
    std::string message(message_length_max, '\0');
    const ssize_t length = recv(socket_, message.data(), message.size(), 0);
    require(length > 0, "the other process lives", where);
    message.resize(static_cast<std::size_t>(length));
    if (message.starts_with("failed: ")) fail("the other process " + message, where);
    return message;
}

void Line::expect(const std::string& message, Where where) {
    const std::string heard = hear(where);
    require(heard == message, "'" + message + "' is heard, not '" + heard + "'", where);
}

bool Line::ready() const {
    pollfd entry{socket_, POLLIN, 0};
    return poll(&entry, 1, 0) == 1;
}

// The parent's side
// ---------------------------------------------------------------------------------

struct Child::Start {
    int ours;
    int theirs;
    Start() {
        int pair[2];
        require_call(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0,
                     "socketpair");
        ours = pair[0];
        theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, inherited_max);
        close(pair[1]);
    }
};

Child::Child(const std::string& role, const Options& options) : Child(role, options, Start()) {}

Child::Child(const std::string& role, const Options& options, Start start) : Line(start.ours) {
    memory_ = options.shares_with == nullptr
                  ? create_shared()
                  : fcntl(options.shares_with->memory_, F_DUPFD_CLOEXEC, inherited_max);
    require_call(memory_ >= 0, "a descriptor of the shared page");
    shared_ = map_shared(memory_);

    std::vector<std::string> arguments{"/proc/self/exe", "--role", role, std::to_string(getpid())};
    arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
    std::vector<std::string> environment = options.environment;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const std::string name = text.substr(0, text.find('=') + 1);
        bool replaced = false;
        for (const std::string& ours : options.environment)
            replaced = replaced || ours.starts_with(name);
        if (!replaced) environment.push_back(text);
    }
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, start.theirs, line_descriptor);
    posix_spawn_file_actions_adddup2(&files, memory_, shared_descriptor);
    const int error = posix_spawn(&pid_, "/proc/self/exe", &files, nullptr,
                                  pointers(arguments).data(), pointers(environment).data());
    posix_spawn_file_actions_destroy(&files);
    close(start.theirs);
    errno = error;
    if (error != 0) pid_ = -1;
    require_call(error == 0, "posix_spawn of role " + role);
}

Child::~Child() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    munmap(shared_, shared_bytes);
    close(memory_);
}

void Child::signal(int number) const { require_call(::kill(pid_, number) == 0, "kill"); }

void Child::stop() const {
    signal(SIGSTOP);
    int status = 0;
    require_call(waitpid(pid_, &status, WUNTRACED) == pid_, "waitpid");
    require(WIFSTOPPED(status), "the child stopped rather than ended");
}

void Child::kill() {
    signal(SIGKILL);
    const int status = reap(pid_);
    pid_ = -1;
    require(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the child died of SIGKILL");
}

void Child::join(Where where) {
    const int status = reap(pid_);
    pid_ = -1;
    if (status == 0) return;
    const std::string how = WIFSIGNALED(status)
                                ? "was killed by signal " + std::to_string(WTERMSIG(status))
                                : "ended with status " + std::to_string(WEXITSTATUS(status));
    fail("a child " + how, where);
}

int reap(pid_t pid) {
    const int watch = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    require_call(watch >= 0, "pidfd_open");
    pollfd entry{watch, POLLIN, 0};
    int got = 0;
    do got = poll(&entry, 1, watchdog_ms);
    while (got < 0 && errno == EINTR);
    close(watch);
    require(got == 1, "process " + std::to_string(pid) + " ends");
    int status = 0;
    require_call(waitpid(pid, &status, 0) == pid, "waitpid");
    return status;
}

// The child's side
// ----------------------------------------------------------------------------------

Parent::Parent(std::vector<std::string> arguments, void* shared)
    : Line(line_descriptor), arguments_(std::move(arguments)), shared_(shared) {}

Role::Role(const char* name, RoleFunction function) { roles().emplace(name, function); }

int run_role(int argc, char** argv) {
    if (argc < 4 || std::strcmp(argv[1], "--role") != 0) return -1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (std::to_string(getppid()) != argv[3]) return 1;
    fcntl(line_descriptor, F_SETFD, FD_CLOEXEC);
    fcntl(shared_descriptor, F_SETFD, FD_CLOEXEC);
    Parent parent({argv + 4, argv + argc}, map_shared(shared_descriptor));
    close(shared_descriptor);
    try {
        const auto role = roles().find(argv[2]);
        require(role != roles().end(), std::string("there is a role ") + argv[2]);
        role->second(parent);
        return 0;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "role %s: %s\n", argv[2], failure.what());
        try {
            parent.say(std::string("failed: ") + failure.what());
        } catch (const Failure&) {
            return 1;  // the parent is gone; stderr has it
        }
        return 1;
    }
}

}  // namespace system_test
