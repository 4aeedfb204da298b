// via-weather: a wire between two network namespaces that delays, loses and throttles what crosses
// it, whatever it is: the same weather for UDP, TCP and everything else. The kernel's own tools for
// that (netem) are not everywhere.
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
#include <deque>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace {

struct Options {
    std::vector<std::string> between;
    double delay_us = 0;
    double loss_percent = 0;
    double megabits = 0;  // 0: as fast as it goes
    std::uint32_t queue_bytes = 256 * 1024;
    std::uint32_t mtu = 1500;
    std::uint64_t seed = 1;
};

volatile sig_atomic_t ended = 0;

[[noreturn]] void stop(const std::string& what) {
    fmt::print(stderr, "via-weather: {}\n", what);
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
    if (failed != 0) stop(fmt::format("cannot run ip: {}", std::strerror(failed)));
    int status = 0;
    if (waitpid(pid, &status, 0) < 0 || status != 0) stop(fmt::format("'{}' failed", command));
}

// Segments of 64 KB would cross the wire as one frame: switched off at the ends.
void send_frames_one_by_one(const std::string& netns, const std::string& interface) {
    const pid_t pid = fork();
    if (pid < 0) stop_errno("fork");
    if (pid == 0) {
        const int file = open(fmt::format("/run/netns/{}", netns).c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0 || setns(file, CLONE_NEWNET) < 0) stop_errno("network namespace " + netns);
        const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ifreq request{};
        std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
        for (const std::uint32_t command :
             std::array<std::uint32_t, 3>{ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_STXCSUM}) {
            ethtool_value value{command, 0};
            request.ifr_data = reinterpret_cast<char*>(&value);
            if (any < 0 || ioctl(any, SIOCETHTOOL, &request) < 0)
                stop_errno("switching offloads off");
        }
        _exit(0);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) < 0 || status != 0) _exit(1);
}

struct Frame {
    std::int64_t due_ns;
    std::vector<std::byte> bytes;
};

// One direction.
class Wire {
public:
    Wire(const Options& options, std::uint64_t seed) : options_(options), random_(seed) {}

    void enter(const std::byte* bytes, std::size_t length, std::int64_t now) {
        if (chance_(random_) * 100 < options_.loss_percent) {
            ++lost_;
            return;
        }
        std::int64_t leaves = std::max(now, free_ns_);
        if (options_.megabits > 0) {
            const double ns_per_byte = 8000 / options_.megabits;
            if (static_cast<double>(leaves - now) > ns_per_byte * options_.queue_bytes) {
                ++overflowed_;
                return;
            }
            leaves += static_cast<std::int64_t>(ns_per_byte * static_cast<double>(length));
            free_ns_ = leaves;
        }
        const auto delay = static_cast<std::int64_t>(options_.delay_us * 1000);
        frames_.push_back({leaves + delay, {bytes, bytes + length}});
    }
    // Sends what is due; the moment of the next one, or -1.
    std::int64_t leave(int socket, std::int64_t now) {
        for (; !frames_.empty() && frames_.front().due_ns <= now; frames_.pop_front(), ++carried_)
            (void)send(socket, frames_.front().bytes.data(), frames_.front().bytes.size(), 0);
        return frames_.empty() ? -1 : frames_.front().due_ns;
    }
    std::string told() const {
        return fmt::format("{} carried, {} lost, {} dropped by a full queue", carried_, lost_,
                           overflowed_);
    }

private:
    const Options& options_;
    std::mt19937_64 random_;
    std::uniform_real_distribution<double> chance_{0, 1};
    std::deque<Frame> frames_;
    std::int64_t free_ns_ = 0;
    std::uint64_t carried_ = 0;
    std::uint64_t lost_ = 0;
    std::uint64_t overflowed_ = 0;
};

int open_end(const char* interface) {
    const int end = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
    if (end < 0) stop_errno("a packet socket");
    const int room = 8 << 20;
    setsockopt(end, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    setsockopt(end, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(interface));
    if (bind(end, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0)
        stop_errno("binding to an interface");
    return end;
}

void take_in(int end, Wire& wire) {
    static std::array<std::byte, 65536 + 64> bytes;
    for (int n = 0; n < 64; ++n) {
        sockaddr_ll from{};
        socklen_t length = sizeof from;
        const ssize_t got = recvfrom(end, bytes.data(), bytes.size(), 0,
                                     reinterpret_cast<sockaddr*>(&from), &length);
        if (got < 0) return;
        if (from.sll_pkttype != PACKET_OUTGOING)
            wire.enter(bytes.data(), static_cast<std::size_t>(got), now_ns());
    }
}

void build(const Options& options) {
    if (unshare(CLONE_NEWNET) < 0) stop_errno("a network namespace of its own");
    for (std::size_t side = 0; side < 2; ++side) {
        const std::string& netns = options.between[side];
        const std::string inner = fmt::format("inner{}", side);
        run(fmt::format("ip link add {} mtu {} type veth peer name weather netns {}", inner,
                        options.mtu, netns));
        run(fmt::format("ip -n {} link set weather mtu {}", netns, options.mtu));
        run(fmt::format("ip -n {} addr add 10.78.0.{}/24 dev weather", netns, side + 1));
        run(fmt::format("ip -n {} link set weather up", netns));
        run(fmt::format("ip link set {} up", inner));
        send_frames_one_by_one(netns, "weather");
    }
}

void forward(const Options& options) {
    const std::array<int, 2> ends{open_end("inner0"), open_end("inner1")};
    std::array<Wire, 2> wires{Wire(options, options.seed), Wire(options, options.seed + 1)};
    prctl(PR_SET_TIMERSLACK, 1);
    fmt::print("via-weather: ready\n");
    std::fflush(stdout);
    while (ended == 0) {
        const std::int64_t now = now_ns();
        std::int64_t next = -1;
        for (std::size_t side = 0; side < 2; ++side) {
            const std::int64_t due = wires[side].leave(ends[1 - side], now);
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

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{"A wire between two network namespaces that delays, loses and throttles"};
    app.name("via-weather");
    app.add_option("--between", options.between, "The two namespaces: A,B")
        ->delimiter(',')
        ->expected(2)
        ->required();
    app.add_option("--delay", options.delay_us, "One way, in us")->check(CLI::Range(0.0, 10e6));
    app.add_option("--loss", options.loss_percent, "Percent of frames")
        ->check(CLI::Range(0.0, 100.0));
    app.add_option("--rate", options.megabits, "10^6 bits a second each way; 0: unbounded")
        ->check(CLI::Range(0.0, 1e6));
    app.add_option("--queue", options.queue_bytes, "Bytes that wait for the rate")
        ->capture_default_str();
    app.add_option("--mtu", options.mtu, "Of the wire")->check(CLI::Range(576, 65535));
    app.add_option("--seed", options.seed, "Of the losses")->capture_default_str();
    app.footer(
        "Makes an interface `weather` in each of the namespaces (10.78.0.1 and 10.78.0.2), which\n"
        "go when it ends: SIGTERM or SIGINT. Wants the administrator's rights.\n\n"
        "  ip netns add left; ip netns add right\n"
        "  via-weather --between left,right --delay 500 --loss 1 &\n"
        "  via bench bandwidth --device udp --netns left,right --against tcp-socket \\\n"
        "    --keep-disturbed --near-below 1 --far-above 1e6\n\n"
        "Exit codes: 0 ended by a signal; 1 failed; 2 wrong command line.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    struct sigaction action{};
    action.sa_handler = [](int) { ended = 1; };
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    build(options);
    forward(options);
    return 0;
}
