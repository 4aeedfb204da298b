// via-weather: a wire between two network namespaces that does to what crosses it what weather
// does, whatever it is: the same weather for UDP, TCP and everything else. The kernel's own tools
// for that (netem) are not everywhere.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "console/command_line.hpp"
#include "console/output.hpp"
#include "wire.hpp"

namespace {

struct Options {
    std::vector<std::string> between;
    weather::Weather weather;
    std::string interface = "weather";
    std::uint32_t mtu = 1500;
    std::uint64_t seed = 1;
};

volatile sig_atomic_t ended = 0;

[[noreturn]] void stop(const std::string& what) {
    via::console::complain("via-weather: {}", what);
    _exit(1);
}
[[noreturn]] void stop_errno(const std::string& what) {
    stop(fmt::format("{}: {}", what, std::strerror(errno)));
}

std::int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void run(const std::string& command) {
    std::vector<std::string> words;
    for (std::istringstream text(command); text >> words.emplace_back();) {
    }
    words.pop_back();
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t pid = 0;
    const int failed = posix_spawnp(&pid, "ip", nullptr, nullptr, arguments.data(), environ);
    if (failed != 0) stop(fmt::format("cannot run ip (posix_spawnp): {}", std::strerror(failed)));
    int status = 0;
    if (waitpid(pid, &status, 0) < 0 || status != 0) stop(fmt::format("'{}' failed", command));
}

// Segments of 64 KB would cross the wire as one frame: switched off at the ends.
void send_frames_one_by_one(const std::string& netns, const std::string& interface) {
    const pid_t pid = fork();
    if (pid < 0) stop_errno("fork");
    if (pid == 0) {
        const int file = open(fmt::format("/run/netns/{}", netns).c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0 || setns(file, CLONE_NEWNET) < 0)
            stop_errno(fmt::format("cannot enter network namespace {} (open, setns)", netns));
        const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ifreq request{};
        std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
        for (const std::uint32_t command :
             std::array<std::uint32_t, 3>{ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_STXCSUM}) {
            ethtool_value value{command, 0};
            request.ifr_data = reinterpret_cast<char*>(&value);
            if (any < 0 || ioctl(any, SIOCETHTOOL, &request) < 0)
                stop_errno(
                    fmt::format("cannot switch offloads of {} off (socket, ioctl)", interface));
        }
        _exit(0);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) < 0 || status != 0) _exit(1);
}

int open_end(const char* interface) {
    const int end = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
    if (end < 0) stop_errno("cannot open a packet socket (socket)");
    const int room = 8 << 20;
    setsockopt(end, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    setsockopt(end, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(interface));
    if (bind(end, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0)
        stop_errno(fmt::format("cannot bind to interface {} (bind)", interface));
    return end;
}

void take_in(int end, weather::Wire& wire) {
    static std::array<std::byte, 65536 + 64> bytes;
    for (int n = 0; n < 64; ++n) {
        sockaddr_ll from{};
        socklen_t length = sizeof from;
        const ssize_t got = recvfrom(end, bytes.data(), bytes.size(), 0,
                                     reinterpret_cast<sockaddr*>(&from), &length);
        if (got < 0) return;
        if (from.sll_pkttype != PACKET_OUTGOING)
            wire.enter({bytes.data(), static_cast<std::size_t>(got)}, now_ns());
    }
}

void build(const Options& options) {
    if (unshare(CLONE_NEWNET) < 0) stop_errno("cannot make a network namespace (unshare)");
    const bool ipv6 = options.mtu >= 1280 && access("/proc/sys/net/ipv6", F_OK) == 0;
    for (std::size_t side = 0; side < 2; ++side) {
        const std::string& netns = options.between[side];
        const std::string inner = fmt::format("inner{}", side);
        const std::string& outer = options.interface;
        run(fmt::format("ip link add {} mtu {} type veth peer name {} netns {}", inner, options.mtu,
                        outer, netns));
        run(fmt::format("ip -n {} link set {} mtu {}", netns, outer, options.mtu));
        run(fmt::format("ip -n {} addr add 10.78.0.{}/24 dev {}", netns, side + 1, outer));
        if (ipv6)
            run(fmt::format("ip -n {} addr add fd78::{}/64 dev {} nodad", netns, side + 1, outer));
        run(fmt::format("ip -n {} link set {} up", netns, outer));
        run(fmt::format("ip link set {} up", inner));
        send_frames_one_by_one(netns, outer);
    }
}

void forward(const Options& options) {
    const std::array<int, 2> ends{open_end("inner0"), open_end("inner1")};
    std::array<weather::Wire, 2> wires{weather::Wire(options.weather, options.seed),
                                       weather::Wire(options.weather, options.seed + 1)};
    prctl(PR_SET_TIMERSLACK, 1);
    fmt::print("via-weather: ready\n");
    via::console::flush_output();
    while (ended == 0) {
        const std::int64_t now = now_ns();
        std::int64_t next = -1;
        for (std::size_t side = 0; side < 2; ++side) {
            const std::int64_t due =
                wires[side].leave(now, [to = ends[1 - side]](const weather::Bytes& frame) {
                    (void)send(to, frame.data(), frame.size(), 0);
                });
            if (due >= 0 && (next < 0 || due < next)) next = due;
        }
        const std::int64_t wait = next < 0 ? 100'000'000 : std::max<std::int64_t>(next - now, 0);
        const timespec timeout{wait / 1'000'000'000, wait % 1'000'000'000};
        std::array<pollfd, 2> polled{pollfd{ends[0], POLLIN, 0}, pollfd{ends[1], POLLIN, 0}};
        if (ppoll(polled.data(), 2, &timeout, nullptr) < 0 && errno != EINTR) stop_errno("ppoll");
        for (std::size_t side = 0; side < 2; ++side)
            if (polled[side].revents != 0) take_in(ends[side], wires[side]);
    }
    for (std::size_t side = 0; side < 2; ++side)
        fmt::print("via-weather: from {}: {}\n", options.between[side], wires[side].told());
}

int run_wire(int argc, char** argv) {
    Options options;
    CLI::App app{"A wire between two network namespaces, with bad weather"};
    app.name("via-weather");
    app.add_option("--between", options.between, "The two namespaces: A,B")
        ->delimiter(',')
        ->expected(2)
        ->required();
    const auto percent = via::console::real_range(0.0, 100.0);
    weather::Weather& weather = options.weather;
    app.add_option("--delay", weather.delay_us, "One way, in us")
        ->check(via::console::real_range(0.0, 10e6));
    app.add_option("--loss", weather.loss_percent, "Percent of frames")->check(percent);
    app.add_option("--burst", weather.burst_frames, "Frames lost one behind the other, in the mean")
        ->check(via::console::real_range(1.0, 1e6));
    app.add_option("--duplicate", weather.duplicate_percent, "Percent that come twice")
        ->check(percent);
    app.add_option("--corrupt", weather.corrupt_percent, "Percent that are changed")
        ->check(percent);
    app.add_option("--reorder", weather.reorder_percent, "Percent that others overtake")
        ->check(percent);
    app.add_option("--held", weather.held_us, "For how long, at most, in us")
        ->check(via::console::real_range(0.0, 10e6))
        ->capture_default_str();
    app.add_option("--rate", weather.megabits, "10^6 bits a second each way; 0: unbounded")
        ->check(via::console::real_range(0.0, 1e6));
    app.add_option("--queue", weather.queue_bytes, "Bytes that wait for the rate")
        ->check(via::console::whole_number())
        ->capture_default_str();
    app.add_option("--interface", options.interface, "Its name in both")->capture_default_str();
    app.add_option("--mtu", options.mtu, "Of the wire")->check(CLI::Range(576, 65535));
    app.add_option("--seed", options.seed, "Of all that is drawn")
        ->check(via::console::whole_number())
        ->capture_default_str();
    app.footer(
        "Makes an interface in each of the namespaces (10.78.0.1 and fd78::1, 10.78.0.2 and\n"
        "fd78::2), which go when it ends: SIGTERM or SIGINT. Wants the administrator's rights.\n\n"
        "  ip netns add left; ip netns add right\n"
        "  via-weather --between left,right --delay 500 --loss 1 &\n"
        "  via bench bandwidth --device udp --netns left,right --against tcp-socket \\\n"
        "    --keep-disturbed --near-below 1 --far-above 1e6\n\n"
        "Exit codes: 0 ended by a signal; 1 failed; 2 wrong command line.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return via::console::answer(app, error, 2);
    }
    struct sigaction action{};
    action.sa_handler = [](int) { ended = 1; };
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    build(options);
    forward(options);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return via::console::run("via-weather", 1, [&] { return run_wire(argc, argv); });
}
