#include "support/networks.hpp"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace system_test {

namespace {

/// True: the command ran and did what it was told.
bool run(std::vector<std::string> arguments, bool silent) {
    arguments.insert(arguments.begin(), "ip");
    std::vector<char*> pointers;
    for (std::string& one : arguments) pointers.push_back(one.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (silent) posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid = -1;
    const int error = posix_spawnp(&pid, "ip", &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    return error == 0 && reap(pid) == 0;
}

}  // namespace

Networks::Networks() {
    for (int host = 0; host < 2; ++host)
        names_[host] = "via-" + std::to_string(getpid()) + "-" + std::to_string(host);
    if (geteuid() != 0) {
        why_not_ = "network namespaces need the administrator";
        return;
    }
    if (!run({"netns", "add", names_[0]}, true) || !run({"netns", "add", names_[1]}, true) ||
        !run({"link", "add", "via0", "netns", names_[0], "type", "veth", "peer", "name", "via0",
              "netns", names_[1]},
             true)) {
        why_not_ = "no network namespaces and no veth here, or no command ip";
        return;
    }
    for (int host = 0; host < 2; ++host) {
        ip(host, {"address", "add", address(host) + "/24", "dev", "via0"});
        ip(host, {"link", "set", "lo", "up"});
        set_up(host, true);
    }
}

Networks::~Networks() {
    for (int host = 0; host < 2; ++host) remove(host);
}

void Networks::ip(int host, const std::vector<std::string>& arguments) const {
    std::vector<std::string> all{"-n", names_[host]};
    all.insert(all.end(), arguments.begin(), arguments.end());
    require(run(all, false), "ip does as it is told");
}

void Networks::set_up(int host, bool up) const {
    ip(host, {"link", "set", "via0", up ? "up" : "down"});
}

void Networks::set_mtu(int host, int mtu) const {
    ip(host, {"link", "set", "via0", "mtu", std::to_string(mtu)});
}

void Networks::remove(int host) const { run({"netns", "delete", names_[host]}, true); }

void enter_network(const std::string& name) {
    const int network = open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
    require_call(network >= 0 && setns(network, CLONE_NEWNET) == 0, "entering a network");
    close(network);
}

}  // namespace system_test
