#include "support/networks.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace system_test {

namespace {

enum class Told : std::uint8_t { by_itself, nothing };

/// The command, which does not outlive us.
pid_t start(std::vector<std::string> arguments, Told told, int output = -1) {
    std::vector<char*> pointers;
    for (std::string& one : arguments) pointers.push_back(one.data());
    pointers.push_back(nullptr);
    const pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (told == Told::nothing) dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    if (output >= 0) dup2(output, STDOUT_FILENO);
    execvp(pointers[0], pointers.data());
    _exit(127);
}

/// True: the command ran and did what it was told.
bool run(const std::vector<std::string>& arguments, Told told = Told::by_itself) {
    const pid_t pid = start(arguments, told);
    return pid > 0 && reap(pid) == 0;
}

bool try_to_run(const std::vector<std::string>& arguments) { return run(arguments, Told::nothing); }

}  // namespace

Networks::Networks(Joined joined, int hosts) : hosts_(hosts) {
    const std::string prefix = "via-" + std::to_string(getpid()) + "-";
    for (int host = 0; host < hosts; ++host) names_.push_back(prefix + std::to_string(host));
    if (joined == Joined::by_switch) names_.push_back(prefix + "switch");
    if (geteuid() != 0) {
        why_not_ = "network namespaces need the administrator";
        return;
    }
    bool made = true;
    for (const std::string& name : names_)
        made = made && try_to_run({"ip", "netns", "add", name}) &&
               try_to_run({"ip", "-n", name, "link", "set", "lo", "up"});
    if (!made || !join(joined)) {
        why_not_ = "no network namespaces, veth or bridge here, or no command ip";
        return;
    }
    for (int host = 0; host < hosts && joined != Joined::not_yet; ++host) {
        ip(host, {"address", "add", address(host) + "/24", "dev", "via0"});
        set_up(host, true);
    }
    // Given before both ends are up it would be of no use for a second.
    for (int host = 0; host < hosts && joined != Joined::not_yet; ++host) give_ipv6_address(host);
}

Networks::~Networks() {
    for (const std::string& name : names_) try_to_run({"ip", "netns", "delete", name});
}

bool Networks::join(Joined joined) const {
    if (joined == Joined::by_cable)
        return try_to_run({"ip", "link", "add", "via0", "netns", names_[0], "type", "veth", "peer",
                           "name", "via0", "netns", names_[1]});
    if (joined == Joined::not_yet) return true;
    const std::string& middle = names_.back();
    bool made = try_to_run({"ip", "-n", middle, "link", "add", "switch", "type", "bridge"}) &&
                try_to_run({"ip", "-n", middle, "link", "set", "switch", "up"});
    for (int host = 0; host < hosts_; ++host) {
        const std::string port = "port" + std::to_string(host);
        made = made &&
               try_to_run({"ip", "link", "add", "via0", "netns", name(host), "type", "veth", "peer",
                           "name", port, "netns", middle}) &&
               try_to_run({"ip", "-n", middle, "link", "set", port, "master", "switch", "up"});
    }
    return made;
}

void Networks::ip(int host, const std::vector<std::string>& arguments) const {
    std::vector<std::string> all{"ip", "-n", name(host)};
    all.insert(all.end(), arguments.begin(), arguments.end());
    require(run(all), "ip does as it is told");
}

void Networks::set_up(int host, bool up) const {
    ip(host, {"link", "set", "via0", up ? "up" : "down"});
}

void Networks::set_mtu(int host, int mtu) const {
    ip(host, {"link", "set", "via0", "mtu", std::to_string(mtu)});
}

void Networks::give_ipv6_address(int host) const {
    ip(host, {"address", "replace", address_ipv6(host) + "/64", "dev", "via0", "nodad"});
}

namespace {

void make_narrow(const std::string& network, const std::string& interface, int megabits,
                 int queue_bytes) {
    require(run({"tc", "-n", network, "qdisc", "add", "dev", interface, "root", "tbf", "rate",
                 std::to_string(megabits) + "mbit", "burst", "16kb", "limit",
                 std::to_string(queue_bytes)}),
            "tc does as it is told");
}

}  // namespace

void Networks::shape(int host, int megabits, int queue_bytes) const {
    make_narrow(name(host), "via0", megabits, queue_bytes);
}

void Networks::shape_interface(int host, const std::string& interface, int megabits,
                               int queue_bytes) const {
    make_narrow(name(host), interface, megabits, queue_bytes);
}

void Networks::shape_port(int host, int megabits, int queue_bytes) const {
    make_narrow(names_.back(), "port" + std::to_string(host), megabits, queue_bytes);
}

void Networks::remove(int host) const { try_to_run({"ip", "netns", "delete", name(host)}); }

BadWeather::BadWeather(const Networks& networks, const std::vector<std::string>& weather) {
    int output[2];
    require_call(pipe2(output, O_CLOEXEC) == 0, "a pipe");
    std::vector<std::string> arguments{VIA_WEATHER, "--interface", "via0", "--between",
                                       networks.name(0) + "," + networks.name(1)};
    arguments.insert(arguments.end(), weather.begin(), weather.end());
    pid_ = start(arguments, Told::by_itself, output[1]);
    close(output[1]);
    require(pid_ > 0, "via-weather can be started");
    told_ = fdopen(output[0], "r");
    require(std::fgets(line_, sizeof line_, told_) != nullptr, "via-weather is ready");
}

BadWeather::~BadWeather() {
    kill(pid_, SIGTERM);
    while (std::fgets(line_, sizeof line_, told_) != nullptr) std::fputs(line_, stdout);
    std::fclose(told_);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void enter_network(const std::string& name) {
    const int network = open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
    require_call(network >= 0 && setns(network, CLONE_NEWNET) == 0, "entering a network");
    close(network);
}

}  // namespace system_test
