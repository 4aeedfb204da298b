// libfabric's tcp provider, by its public tool fi_pingpong. In each sample the tool runs twice,
// with endpoints of type msg and of type rdm, and the faster one counts. It polls and has no
// warm-up, so its samples are twenty times as long as the others'.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <vector>

#include "bench/channel.hpp"
#include "bench/clock.hpp"
#include "bench/file_handle.hpp"
#include "bench/libfabric_tool.hpp"

namespace via::bench {

namespace {

constexpr std::uint64_t longer = 20;
constexpr std::uint64_t least_iterations = 50;
constexpr std::uint64_t most_bytes = 1 << 20;
constexpr std::int64_t run_ns = 10'000'000'000;
constexpr std::size_t most_output_bytes = 65536;

// fi_pingpong, with what it prints on both streams.
class Tool {
public:
    Tool() = default;
    Tool(const Tool&) = delete;
    Tool& operator=(const Tool&) = delete;
    ~Tool() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        (void)wait();
    }

    Status start(std::vector<std::string> arguments) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) < 0) return fail_errno("pipe2");
        output_ = FileHandle(ends[0]);
        const FileHandle theirs(ends[1]);
        std::vector<char*> pointers;
        for (std::string& argument : arguments) pointers.push_back(argument.data());
        pointers.push_back(nullptr);
        const pid_t parent = ::getpid();
        pid_ = ::fork();
        if (pid_ < 0) return fail_errno("fork");
        if (pid_ > 0) return {};
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(127);
        ::dup2(theirs.get(), STDOUT_FILENO);
        ::dup2(theirs.get(), STDERR_FILENO);
        ::execv(pointers[0], pointers.data());
        ::_exit(127);
    }

    // True once it has ended; at once.
    bool has_ended() {
        pollfd polled{output_.get(), 0, 0};
        return ::poll(&polled, 1, 0) > 0;
    }

    // What it prints until it ends well, within the time.
    Result<std::string> finish() {
        std::string text;
        const std::int64_t deadline_ns = now_ns() + run_ns;
        for (;;) {
            const std::int64_t left_ms = (deadline_ns - now_ns()) / 1'000'000;
            pollfd polled{output_.get(), POLLIN, 0};
            if (left_ms <= 0 || text.size() > most_output_bytes) {
                return fail("fi_pingpong did not come to an end: {}", text.substr(0, 200));
            }
            if (::poll(&polled, 1, static_cast<int>(left_ms)) <= 0) continue;
            std::array<char, 4096> part{};
            const ssize_t got = ::read(output_.get(), part.data(), part.size());
            if (got <= 0) break;
            text.append(part.data(), static_cast<std::size_t>(got));
        }
        const int status = wait();
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
        return fail("fi_pingpong failed: {}", text.substr(0, 200));
    }

private:
    int wait() {
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        pid_ = -1;
        return status;
    }

    pid_t pid_ = -1;
    FileHandle output_;
};

// Whether somebody in this network namespace listens at that TCP port of IPv4.
bool is_listened_to(std::uint16_t port) {
    std::ifstream table("/proc/self/net/tcp");
    const std::string place = fmt::format(":{:04X} 00000000:0000 0A", port);
    std::string line;
    while (std::getline(table, line)) {
        if (line.find(place) != std::string::npos) return true;
    }
    return false;
}

class LibfabricEndpoint final : public Endpoint {
public:
    LibfabricEndpoint(Link& link, std::string program, Places places)
        : link_(link), program_(std::move(program)), places_(std::move(places)) {}

    Result<Reading> measure(const Question& question, const Effort& effort) override {
        double best_us = 0;
        std::string trouble;
        for (const char* type : {"msg", "rdm"}) {
            const auto us = run(type, question.size, effort.messages);
            if (!us) trouble += (trouble.empty() ? "" : "; ") + us.error().what;
            if (us && (best_us == 0 || *us < best_us)) best_us = *us;
        }
        Reading reading;
        if (!link_.is_first()) return reading;
        if (best_us == 0) return fail("{}", trouble);
        // As if so many messages had been sent as were asked for.
        reading.legs = 2;
        reading.messages = effort.messages;
        reading.first_ns = now_ns();
        const double took_ns = best_us * 2000 * static_cast<double>(effort.messages);
        reading.last_ns = reading.first_ns + static_cast<std::int64_t>(took_ns);
        return reading;
    }

private:
    // Both sides run it once. Only the first side learns a figure.
    Result<double> run(const std::string& type, std::uint64_t size, std::uint64_t messages) {
        Tool tool;
        const std::uint64_t iterations = std::max(messages * longer, least_iterations);
        std::vector<std::string> arguments{program_,
                                           "-p",
                                           "tcp",
                                           "-e",
                                           type,
                                           "-I",
                                           std::to_string(iterations),
                                           "-S",
                                           std::to_string(size)};
        Status started;
        if (!link_.is_first()) started = start_server(tool, arguments);
        if (!link_.meet()) return fail("{}", called_off);
        if (link_.is_first()) {
            arguments.insert(arguments.end(),
                             {"-P", std::to_string(link_.theirs().port), places_.address_text(1)});
            started = tool.start(std::move(arguments));
        }
        auto printed = started ? tool.finish() : std::unexpected(started.error());
        if (!link_.meet()) return fail("{}", called_off);
        if (!printed) return std::unexpected(printed.error());
        return link_.is_first() ? one_way_us_of(*printed, size) : 0.0;
    }

    // Comes back when it listens.
    Status start_server(Tool& tool, std::vector<std::string> arguments) {
        const auto port = free_port();
        if (!port) return std::unexpected(port.error());
        link_.mine().port = *port;
        arguments.insert(arguments.end(), {"-B", std::to_string(*port)});
        if (auto started = tool.start(std::move(arguments)); !started) return started;
        const std::int64_t deadline_ns = now_ns() + run_ns;
        while (!is_listened_to(*port) && !tool.has_ended() && now_ns() < deadline_ns) {
            constexpr timespec pause{0, 1'000'000};
            ::nanosleep(&pause, nullptr);
        }
        return {};  // if it does not listen, finish() says why
    }

    static Result<std::uint16_t> free_port() {
        const FileHandle probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const Address any(in_addr{htonl(INADDR_ANY)});
        if (!probe || ::bind(probe.get(), any.get(), any.bytes()) < 0) return fail_errno("bind");
        const auto bound = Address::own_of(probe.get());
        if (!bound) return std::unexpected(bound.error());
        return bound->port();
    }

    Link& link_;
    std::string program_;
    Places places_;
};

class LibfabricChannel final : public Channel {
public:
    explicit LibfabricChannel(const Places& places) : Channel("libfabric-tcp"), places_(places) {}

    Question adapt(const Question& asked) const override {
        Question question = without_vis(asked);
        question.wait = Wait::poll;
        return question;
    }
    std::string refuses(const Question& question) const override {
        if (question.bench != Bench::latency) return "has no stream, only a ping-pong";
        if (question.size == 0) return "has no empty message";
        if (question.size > most_bytes) return "is asked for messages of up to 1M only";
        return {};
    }
    Status prepare(std::uint64_t) override {
        auto program = find_pingpong();
        if (!program) return std::unexpected(program.error());
        program_ = *program;
        return {};
    }
    std::unique_ptr<Endpoint> endpoint(Link& link) override {
        return std::make_unique<LibfabricEndpoint>(link, program_, places_);
    }

private:
    Places places_;
    std::string program_;
};

}  // namespace

std::unique_ptr<Channel> make_libfabric_tcp(const Places& places) {
    return std::make_unique<LibfabricChannel>(places);
}

}  // namespace via::bench
