// `via bench latency|bandwidth|rate`: options to a plan, outcome to a table or JSON, and the exit
// code.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "bench/channel.hpp"
#include "bench/cpus.hpp"
#include "bench/progress.hpp"
#include "bench/questions.hpp"
#include "bench/report.hpp"
#include "bench/session.hpp"
#include "bench/sweep.hpp"
#include "commands.hpp"
#include "console/output.hpp"

namespace via::cli {

namespace {

using namespace via::bench;

constexpr std::string_view plain = "plain";

// "all", "kernel", "limits" and "peers" stand for several; all leaves out programs of others, which
// need not be installed.
std::vector<std::string> expand(const std::vector<std::string>& asked, const std::string& device,
                                bool remote) {
    std::vector<std::string> names;
    const auto add = [&](std::string_view name) {
        const bool known = std::find(names.begin(), names.end(), name) != names.end();
        if (!known && name != device) names.emplace_back(name);
    };
    for (const std::string& name : asked) {
        const bool all = name == "all";
        if (!all && name != "kernel" && name != "limits" && name != "peers") {
            add(name);
            continue;
        }
        for (const ChannelInfo& info : known_channels()) {
            const Sort wanted = name == "limits"  ? Sort::limit
                                : name == "peers" ? Sort::peer
                                                  : Sort::kernel;
            if (remote && !info.between_machines) continue;
            const bool in_all = info.sort == Sort::kernel || info.sort == Sort::limit;
            if (info.sort == wanted || (all && in_all)) add(info.name);
        }
    }
    return names;
}

Wanted wanted_of(const std::string& mode) {
    if (mode == "near") return Wanted::near;
    if (mode == "far") return Wanted::far;
    return mode == "both" ? Wanted::both : Wanted::any;
}

Status find_places(const BenchOptions& options, Plan& plan) {
    if (!options.netns.empty() && !options.peer.empty()) {
        return fail("--netns and --peer: one or the other");
    }
    if (!options.netns.empty()) {
        if (options.netns.size() != 2) return fail("--netns wants two names: A,B");
        auto places = Places::in_namespaces(options.netns[0], options.netns[1]);
        if (!places) return std::unexpected(places.error());
        plan.places = *places;
    }
    return {};
}

// With --peer: what makes no sense between machines.
Status fits_between_machines(const BenchOptions& options) {
    const std::string medium = medium_of(options.device);
    if (medium != "udp" && medium != "auto" && !goes_between_machines(medium)) {
        return fail(
            "--device {} does not reach another machine; with --peer it is udp, auto, "
            "udp-socket or tcp-socket",
            options.device);
    }
    if (options.exported) return fail("--export: machines do not share segments");
    if (options.both_ways || options.senders > 1) {
        return fail("--both-ways and --senders: measured on one machine, without --peer");
    }
    if (options.spinners > 0) return fail("--spinners: on one machine, without --peer");
    if (options.mode != "any") {
        return fail("--mode {}: two machines are neither near nor far", options.mode);
    }
    for (const std::string& name : expand(options.against, options.device, true)) {
        if (!goes_between_machines(name)) {
            return fail("--against {} does not reach another machine; udp-socket and tcp-socket do",
                        name);
        }
    }
    return {};
}

Status choose_processors(const BenchOptions& options, Plan& plan) {
    if (!options.peer.empty()) {
        auto cpu = choose_cpu(options.cpus);
        if (!cpu) return std::unexpected(cpu.error());
        plan.cpus = {*cpu, *cpu};
        return {};
    }
    auto cpus = choose_cpus(options.cpus);
    if (!cpus) return std::unexpected(cpus.error());
    plan.cpus = *cpus;
    return {};
}

// Our device without what --cq, --vis and the like ask for: what those cost.
std::unique_ptr<Channel> make_plain(const BenchOptions& options, const Plan& plan) {
    DeviceOptions like{options.device, plan.places, without_vis(plan.questions.front()), false};
    like.name = plain;
    return make_via_device(like);
}

void add_channels(const BenchOptions& options, Plan& plan) {
    if (is_known_channel(options.device)) {
        plan.channels.push_back(make_comparison(options.device, plan.places));
    } else {
        plan.channels.push_back(make_via_device(
            {options.device, plan.places, plan.questions.front(), options.exported, {}}));
    }
    for (const std::string& name : expand(options.against, options.device, !options.peer.empty())) {
        plan.channels.push_back(name == plain ? make_plain(options, plan)
                                              : make_comparison(name, plan.places));
    }
}

// All but the channels, which depend on where the other side is.
Result<Plan> plan_of(const BenchOptions& options) {
    Plan plan;
    auto questions = questions_of(options);
    if (!questions) return std::unexpected(questions.error());
    plan.questions = *questions;
    for (const std::string& name : expand(options.against, options.device, false)) {
        if (is_known_channel(name) || name == plain) continue;
        return fail("--against {}: there is no such channel; 'via bench channels' lists them",
                    name);
    }
    if (auto found = find_places(options, plan); !found) return std::unexpected(found.error());
    if (!options.peer.empty()) {
        const auto fits = fits_between_machines(options);
        if (!fits) return std::unexpected(fits.error());
    }
    if (auto chosen = choose_processors(options, plan); !chosen) {
        return std::unexpected(chosen.error());
    }
    if (options.near_below_ns > options.far_above_ns) {
        return fail("--near-below must not be more than --far-above");
    }
    plan.limits = {options.near_below_ns, options.far_above_ns, options.keep_disturbed};
    plan.rounds = options.rounds;
    plan.wanted = wanted_of(options.mode);
    plan.max_seconds = options.max_seconds;
    return plan;
}

// Greets the other machine, which is no matter of the command line any more.
Status reach_peer(const BenchOptions& options, Plan& plan) {
    if (options.peer.empty()) return {};
    auto peer = Peer::connect(options.peer, options.max_seconds);
    if (!peer) return std::unexpected(peer.error());
    auto places = Places::between_machines(0, (*peer)->own_address(), (*peer)->address());
    if (!places) return std::unexpected(places.error());
    plan.places = *places;
    plan.like = {0, {}, plan.questions.front(), 0, 0};
    plan.peer = std::move(*peer);
    return {};
}

void complain(const std::string& what) { console::complain("via bench: {}", what); }

}  // namespace

int run_bench_channels(const BenchOptions& /*options*/) {
    for (const ChannelInfo& info : known_channels())
        fmt::print("{:<13} {}\n", info.name, info.what);
    fmt::print(
        "{:<13} our own device with one VI and its queues, and whole messages sent\n"
        "kernel, limits, peers stand for all that go through the kernel, bare limits of the\n"
        "machine, and programs of others; all is kernel and limits.\n"
        "\nPrograms of others are those of Debian ('./dev setup --peers' installs them), or small\n"
        "ones of ours on their libraries, which are built where those are installed. They run\n"
        "anew in each sample and tell only a mean; libfabric-tcp runs twice, with endpoints of\n"
        "type msg and of type rdm, and the faster run counts. ucx_perftest and fi_pingpong have\n"
        "one buffer, and their receivers do not read what came.\n",
        plain);
    return exit_good;
}

int run_bench_messages(const BenchOptions& options) {
    auto plan = plan_of(options);
    if (!plan) {
        complain(plan.error().what);
        return exit_usage;
    }
    if (auto reached = reach_peer(options, *plan); !reached) {
        complain(reached.error().what);
        return exit_failed;
    }
    add_channels(options, *plan);
    ProgressLine progress;
    plan->progress = [&](const std::string& what) { progress.show(what); };
    const std::uint32_t rounds = plan->rounds;
    const Wanted wanted = plan->wanted;
    auto outcome = run_session(std::move(*plan));
    progress.clear();
    if (!outcome) {
        complain(outcome.error().what);
        return exit_failed;
    }
    const std::vector<Row> rows = make_rows(*outcome, rounds);
    const std::vector<HalfPoint> halves = half_points(rows);
    fmt::print("{}{}{}", options.json ? json_lines(rows) : table(rows),
               options.json ? half_json(halves) : half_text(halves),
               options.json ? left_out_json(*outcome) : left_out_text(*outcome));
    console::flush_output();
    for (const std::string& note : outcome->notes) complain(note);
    if (const std::string drops = drop_text(*outcome); !drops.empty()) complain(drops);
    if (outcome->out_of_time) {
        complain(fmt::format("stopped after {} s (--max-seconds)", options.max_seconds));
    }
    const auto missing = inconclusive(*outcome, rounds, wanted);
    for (const std::string& line : missing) complain("inconclusive: " + line);
    if (!missing.empty()) {
        complain(outcome->remote
                     ? std::string("try again when both machines are quiet, or with more --rounds")
                     : probe_text(*outcome) +
                           "; try again when the machine is quiet, with more --rounds, "
                           "or, where the mode wanted never comes, with other --near-below and "
                           "--far-above");
    }
    return missing.empty() ? exit_good : exit_inconclusive;
}

}  // namespace via::cli
