// viad: keeps NICs open, and with them the hosts' ports, so that the processes of a host are found
// whichever of them come and go. Connections of theirs never touch it, unless it is a relay: then
// it passes on datagrams between hosts that do not reach each other.
#include <signal.h>
#include <via/via.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "agent/addresses.hpp"
#include "agent/directory.hpp"
#include "agent/statistics.hpp"
#include "bench_server.hpp"
#include "console/command_line.hpp"
#include "console/output.hpp"
#include "lab/file/text.hpp"
#include "relay_server.hpp"

namespace {

using via::viad::BenchServer;
using via::viad::RelayServer;

struct OpenNic {
    std::string name;
    VIP_NIC_HANDLE handle = nullptr;
};

struct Options {
    std::vector<std::string> names;
    std::string relay;  ///< file of its table; empty: it is none
    std::int64_t polls_us = 50;
    std::string bench;  ///< address where 'via bench serve' answers; empty: nowhere
};

/// It answers for its host; nobody has anything to say to viad itself, or memory of it to fill.
std::string without_paths(const std::string& name) { return name + ",paths=0"; }

void close_all(const std::vector<OpenNic>& nics) {
    for (const OpenNic& nic : nics) VipCloseNic(nic.handle);
}

/// For `via stat`. Nothing: there are none, as was said; the relay works without.
std::unique_ptr<via::agent::Statistics> open_statistics(const via::relay::Ways& ways) {
    const auto directory = via::agent::host_directory();
    std::string why = directory ? "" : directory.error();
    if (directory) {
        std::string name = "relay";
        for (const via::HostAddress& own : ways.own())
            name += (name == "relay" ? ":" : "+") +
                    via::agent::to_text(via::with_port(own, via::relay::relay_port));
        auto opened = via::agent::Statistics::open(*directory, name);
        if (opened) return std::move(*opened);
        why = opened.error();
    }
    via::console::complain("viad: relay: 'via stat' will not see it: {}", why);
    return nullptr;
}

/// Nothing: it cannot be one, as was said.
std::unique_ptr<RelayServer> open_relay(const Options& options) {
    const auto text = via::lab::file::read_text(options.relay);
    if (!text) {
        via::console::complain("viad: {}: {}", options.relay, text.error());
        return nullptr;
    }
    auto ways = via::relay::Ways::parse(*text, options.relay, via::agent::parse_address);
    if (!ways) {
        via::console::complain("viad: {}", ways.error());
        return nullptr;
    }
    auto statistics = open_statistics(*ways);
    auto server = RelayServer::open(std::move(*ways), via::microseconds(options.polls_us),
                                    std::move(statistics));
    if (!server) {
        via::console::complain("viad: {}", server.error());
        return nullptr;
    }
    return std::move(*server);
}

void print_totals(const RelayServer& relay) {
    const RelayServer::Totals all = relay.totals();
    const via::relay::Totals& totals = all.forwarder;
    fmt::print(
        "viad: relay: {} datagrams, {} bytes passed on; {} notices; dropped: {} malformed, {} of "
        "strangers, {} for unknown hosts, {} going round, {} for want of room\n",
        totals.passed_on, totals.bytes, totals.notices, totals.malformed, totals.strangers,
        totals.unknown, totals.going_round, all.no_room);
    via::console::flush_output();
}

std::vector<OpenNic> open_nics(const Options& options, bool& failed) {
    std::vector<OpenNic> nics;
    for (const std::string& name : options.names) {
        OpenNic nic{name, nullptr};
        char why[1024] = "";
        if (ViaOpenNic(without_paths(name).c_str(), &nic.handle, why, sizeof why) != VIP_SUCCESS) {
            via::console::complain("viad: {}", why);
            failed = true;
            break;
        }
        nics.push_back(nic);
        fmt::print("viad: {} is open\n", name);
    }
    return nics;
}

/// Until a signal ends it, or its helper has ended. Returns the exit code.
int serve(const RelayServer* relay, BenchServer* bench, const sigset_t& signals) {
    for (int taken = 0;;) {
        if (sigwait(&signals, &taken) != 0) continue;
        if (taken == SIGUSR1) {
            if (relay != nullptr) print_totals(*relay);
        } else if (taken == SIGCHLD) {
            const auto how = bench == nullptr ? std::nullopt : bench->ended();
            if (!how) continue;
            via::console::complain("viad: 'via bench serve' ended {}", *how);
            return 1;
        } else {
            fmt::print("viad: ended by signal {}\n", taken);
            return 0;
        }
    }
}

int serve_all(const Options& options) {
    // Blocked before anybody starts threads, so that only sigwait() takes them.
    sigset_t signals;
    sigemptyset(&signals);
    for (const int one : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD}) sigaddset(&signals, one);
    sigprocmask(SIG_BLOCK, &signals, nullptr);

    std::unique_ptr<BenchServer> bench;
    if (!options.bench.empty()) {
        auto started = BenchServer::start(options.bench);
        if (!started) {
            via::console::complain("viad: {}", started.error());
            return 1;
        }
        bench = std::move(*started);
    }
    std::unique_ptr<RelayServer> relay;
    if (!options.relay.empty()) {
        relay = open_relay(options);
        if (relay == nullptr) return 1;
        fmt::print("viad: passes on, by {}\n", options.relay);
    }
    bool failed = false;
    const std::vector<OpenNic> nics = open_nics(options, failed);
    via::console::flush_output();
    int result = 1;
    if (!failed) {
        std::jthread thread;
        if (relay != nullptr)
            thread = std::jthread([&](const std::stop_token& stop) { relay->run(stop); });
        result = serve(relay.get(), bench.get(), signals);
        if (relay != nullptr) {
            thread.request_stop();
            thread.join();
            print_totals(*relay);
        }
    }
    close_all(nics);
    return result;
}

int run(int argc, char** argv) {
    CLI::App app{"Keeps NICs open, so that a host is found while its programs come and go"};
    app.name("viad");
    app.set_version_flag("--version", "OpenVIA " VIA_VERSION, "Print the version and exit");
    Options options;
    auto* const nics =
        app.add_option("nics", options.names, "Names of NICs, for instance udp:eth0");
    auto* const relay = app.add_option(
        "--relay", options.relay,
        "Pass on datagrams between hosts that do not reach each other, by this table of "
        "'via topology -o' (docs/guide/clusters.md); SIGUSR1 prints what was passed on");
    app.add_option("--relay-polls", options.polls_us,
                   "Microseconds that the relay looks on after a datagram before it sleeps")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000}))
        ->capture_default_str();
    auto* const bench = app.add_option("--bench", options.bench,
                                       "Let others measure the way to this host: 'via bench serve' "
                                       "at HOST[:PORT] (TCP port "
                                       "9742), for anybody who reaches it")
                            ->type_name("ADDRESS");
    app.footer(
        "Runs until SIGTERM or SIGINT. A host's port that another process has is taken over when\n"
        "that process ends.\n\n"
        "Exit codes: 0 ended by a signal; 1 a NIC or the relay cannot be opened, or 'via bench\n"
        "serve' ended; 2 wrong command line.");
    try {
        app.parse(argc, argv);
        if (nics->empty() && relay->empty() && bench->empty())
            throw CLI::RequiredError("the name of a NIC, --relay or --bench");
    } catch (const CLI::ParseError& error) {
        return via::console::answer(app, error, 2);
    }
    return serve_all(options);
}

}  // namespace

int main(int argc, char** argv) {
    return via::console::run("viad", 1, [&] { return run(argc, argv); });
}
