// The channel of a ToolPeer. Each sample runs its programs anew, pinned as the two processes are.
// They tell a mean alone, and start cold: so such samples are longer than the others', and it is
// the program that is watched, not the two processes, which sleep. A small client of ours measures
// in phases and watches each itself; one of others is watched from outside, from when it listens
// or was started.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>

#include "bench/clock.hpp"
#include "bench/peers/tool_peer.hpp"
#include "bench/tool.hpp"

namespace via::bench {

namespace {

constexpr std::uint64_t longer = 20;
constexpr std::uint64_t least_messages = 10;
constexpr std::int64_t run_ns = 10'000'000'000;

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

Result<std::uint16_t> free_port() {
    const FileHandle probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const Address any(in_addr{htonl(INADDR_ANY)});
    if (!probe || ::bind(probe.get(), any.get(), any.bytes()) < 0) return fail_errno("bind");
    const auto bound = Address::own_of(probe.get());
    if (!bound) return std::unexpected(bound.error());
    return bound->port();
}

// One end of a pipe for each side: the second one sleeps until the first has run its program.
struct Bell {
    FileHandle ear;
    FileHandle rope;

    Status hang() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) < 0) return fail_errno("pipe2");
        ear = FileHandle(ends[0]);
        rope = FileHandle(ends[1]);
        return {};
    }
    void ring() const {
        const char any = 1;
        (void)!::write(rope.get(), &any, 1);
    }
    void wait() const {
        char any = 0;
        while (::read(ear.get(), &any, 1) < 0 && errno == EINTR) {
        }
    }
};

class ToolEndpoint final : public Endpoint {
public:
    ToolEndpoint(Link& link, const std::string& name, const ToolPeer& peer, const Places& places,
                 const Bell& bell)
        : link_(link), name_(name), peer_(peer), places_(places), bell_(bell) {}

    Status open() override {
        link_.mine().cpu = ::sched_getcpu();
        return link_.meet() ? Status{} : fail("{}", called_off);
    }

    // The best of all variants, and the most that any of them lost.
    Result<Reading> measure(const Question& question, const Effort& effort) override {
        double best_ns = 0;
        std::string failure;
        Reading reading;
        for (const std::string& variant : peer_.variants()) {
            const ToolOrder order = order_of(question, effort, variant);
            const auto run_of = run(order);
            if (!run_of) failure += (failure.empty() ? "" : "; ") + run_of.error().what;
            if (!run_of) continue;
            reading.program_lost_ns = std::max(reading.program_lost_ns, run_of->lost_ns);
            if (best_ns != 0 && run_of->message_ns >= best_ns) continue;
            best_ns = run_of->message_ns;
            reading.program_ns = time_of(order, best_ns);
        }
        // The kernel clears up behind programs that ended, for a while, and the next one would pay.
        constexpr timespec rest{0, 20'000'000};
        ::nanosleep(&rest, nullptr);
        if (!link_.is_first()) return reading;
        if (best_ns == 0) return fail("{}", failure);
        // As if so many messages had been sent as were asked for.
        reading.legs = legs_of(question);
        reading.messages = effort.messages;
        reading.first_ns = now_ns();
        const double took_ns = best_ns * reading.legs * static_cast<double>(effort.messages);
        reading.last_ns = reading.first_ns + std::max<std::int64_t>(std::llround(took_ns), 1);
        return reading;
    }

private:
    struct Run {
        double message_ns = 0;
        std::int64_t lost_ns = 0;
    };
    static std::uint32_t legs_of(const Question& question) { return is_stream(question) ? 1 : 2; }
    static std::int64_t time_of(const ToolOrder& order, double message_ns) {
        return std::llround(message_ns * legs_of(order.question) *
                            static_cast<double>(order.messages));
    }

    ToolOrder order_of(const Question& question, const Effort& effort,
                       const std::string& variant) const {
        const auto& sides = link_.shared().published;
        ToolOrder order{link_.side(), question,
                        std::max(effort.messages * longer / peer_.phases(question), least_messages),
                        variant, places_.address_text(1)};
        order.cpus = {sides[0].cpu, sides[1].cpu};
        order.word = sides[1].pid;
        return order;
    }

    // Both sides run it once. Only the first side learns a figure.
    Result<Run> run(ToolOrder order) {
        Tool tool(name_);
        Status started;
        const bool idle = peer_.is_launcher() && !link_.is_first();
        if (!link_.is_first() && !idle) started = start_server(tool, order);
        if (!link_.meet()) return fail("{}", called_off);
        if (link_.is_first()) {
            order.port = static_cast<std::uint16_t>(link_.theirs().port);
            started = start(tool, order);
        }
        Result<std::string> printed;
        if (idle) {
            bell_.wait();
        } else {
            printed = started ? tool.finish(run_ns) : std::unexpected(started.error());
        }
        if (peer_.is_launcher() && link_.is_first()) bell_.ring();
        if (!link_.meet()) return fail("{}", called_off);
        if (!printed) return std::unexpected(printed.error());
        const bool looks_itself = peer_.phases(order.question) > 1;
        if (!link_.is_first()) return Run{0, looks_itself ? 0 : tool.lost_ns()};
        const auto ns = peer_.message_ns(*printed, order);
        if (!ns) return std::unexpected(ns.error());
        return Run{*ns, looks_itself ? peer_.lost_ns(*printed) : tool.lost_ns()};
    }

    Status start(Tool& tool, const ToolOrder& order) const {
        ToolCommand command = peer_.command(order);
        return tool.start(std::move(command.arguments), command.settings);
    }

    // Comes back when it listens, if it does at all.
    Status start_server(Tool& tool, ToolOrder& order) {
        if (!peer_.listens()) return start(tool, order);
        const auto port = free_port();
        if (!port) return std::unexpected(port.error());
        link_.mine().port = order.port = *port;
        if (auto started = start(tool, order); !started) return started;
        const std::int64_t deadline_ns = now_ns() + run_ns;
        while (!is_listened_to(*port) && !tool.has_ended() && now_ns() < deadline_ns) {
            constexpr timespec pause{0, 1'000'000};
            ::nanosleep(&pause, nullptr);
        }
        tool.watch();
        return {};  // if it does not listen, finish() says why
    }

    Link& link_;
    const std::string& name_;
    const ToolPeer& peer_;
    const Places& places_;
    const Bell& bell_;
};

class ToolChannel final : public Channel {
public:
    ToolChannel(std::string name, std::unique_ptr<ToolPeer> peer, const Places& places)
        : Channel(std::move(name)), peer_(std::move(peer)), places_(places) {}

    std::string version() const override { return version_; }
    Question adapt(const Question& asked) const override { return peer_->adapt(asked); }
    std::string refuses(const Question& question) const override {
        if (places_.apart() && peer_->within_host()) return "goes over the memory of one host";
        return peer_->refuses(question);
    }
    Status prepare(std::uint64_t) override {
        if (auto found = peer_->find(); !found) return found;
        auto version = peer_->version();
        if (!version) return std::unexpected(version.error());
        version_ = *version;
        return bell_.hang();
    }
    void drop_files() override { bell_ = {}; }
    std::unique_ptr<Endpoint> endpoint(Link& link) override {
        // So that the death of the first side is heard as well.
        if (!link.is_first()) bell_.rope.reset();
        return std::make_unique<ToolEndpoint>(link, name(), *peer_, places_, bell_);
    }

private:
    std::unique_ptr<ToolPeer> peer_;
    Places places_;
    Bell bell_;
    std::string version_;
};

}  // namespace

Question ToolPeer::adapt(const Question& asked) const {
    Question question = without_vis(asked);
    question.wait = Wait::poll;
    question.reuse.reset();
    return question;
}

Result<std::string> printed_by(std::string name, std::vector<std::string> arguments) {
    Tool tool(std::move(name));
    if (auto started = tool.start(std::move(arguments)); !started) {
        return std::unexpected(started.error());
    }
    return tool.finish(run_ns);
}

std::unique_ptr<Channel> make_tool_channel(std::string name, std::unique_ptr<ToolPeer> peer,
                                           const Places& places) {
    return std::make_unique<ToolChannel>(std::move(name), std::move(peer), places);
}

}  // namespace via::bench
