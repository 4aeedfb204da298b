// `via bench`: options to a plan, outcome to a table or JSON, and the exit code.
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
            if (info.sort == wanted || (all && info.sort != Sort::peer)) add(info.name);
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
        return fail("--against {}: there is no such channel; 'via bench --help' lists them", name);
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

std::string bench_footer() {
    std::string text =
        "Channels for --against (or kernel, limits, all: both; peers: programs of others):\n";
    for (const ChannelInfo& info : known_channels()) {
        text += fmt::format("  {:<13} {}\n", info.name, info.what);
    }
    text += fmt::format("  {:<13} {}\n", plain,
                        "our own device with one VI and its queues, and whole messages sent");
    text +=
        "Programs of others are those of Debian ('./dev setup --peers' installs them), or small\n"
        "ones of ours on their libraries, which are built where those are installed. They run "
        "anew\n"
        "in each sample and tell a mean alone; libfabric-tcp runs twice, with endpoints of type\n"
        "msg and of type rdm, and the faster run counts. ucx_perftest and fi_pingpong have one\n"
        "buffer, and their receivers do not read what came.\n";
    text +=
        "\nTwo processes per channel, pinned to two processors, are asked in interleaved rounds.\n"
        "Around each sample they time a cache line between them: under 100 ns one way is near,\n"
        "over 150 ns far, else between. Figures of two modes are never mixed or compared.\n"
        "Samples with involuntary switches, steal or foreign load, or during which the mode\n"
        "changed, are dropped and counted.\n"
        "\nTwo machines: 'via bench serve' on one, 'via bench ... --peer HOST[:PORT]' on the "
        "other\n"
        "for udp, auto, udp-socket and tcp-socket. The one with --peer sends first, keeps the "
        "time\n"
        "and prints; a stream goes to the one that serves. There is no cache line to time: the\n"
        "mode is called remote, and instead the two compare their clocks around each sample.\n"
        "serve takes one client at a time until it is ended; whoever reaches its TCP port (9742)\n"
        "may measure with it: give it an address (--address) that only friends can reach.\n\n"
        "  latency    half a round trip in us, payload read by the receiving processor and the\n"
        "             sender's completion reaped (read: post to bytes in hand); p99 is of single\n"
        "             messages within a round, the median of the rounds\n"
        "  bandwidth  10^6 bytes a second at the receiver, first post to last receive\n"
        "  rate       10^6 messages a second at the receiver; p99 of both is what 99 % of the\n"
        "             rounds reach\n"
        "  ratio      ours to the channel's median, of one run and mode\n"
        "  cpu us     processor time per message of both processes, and of the second one\n"
        "  reuse      messages take the same buffer (a stream: those under way), P % of them; the\n"
        "             others buffers of up to 32 MB in turn. Without it, two or up to 256 in turn\n"
        "  senders    processes on the processors that the receiver does not have; fairness is "
        "Jain's\n"
        "             index of what came from each when the first one had sent everything\n"
        "  spinners   threads that spin on the second side's processor, or on both, and never\n"
        "             yield: 3 or 4 spinning on 2 processors\n"
        "  netpipe    powers of two and three times those, each with 3 bytes less and more, to "
        "MAX\n"
        "             (4M); of four sizes or more, the size that reaches half of the bandwidth\n"
        "  operations us of single calls of one process, all calls of all good rounds: NICs, VIs\n"
        "             and queues made and ended, memory registered (pages in memory; --size),\n"
        "             connecting from request to answer, posts, looks in vain and not, a handler\n"
        "             until it runs; null: in null system calls; cpu us where a call may sleep\n"
        "  register   VipRegisterMem and VipDeregisterMem of pages never touched, beside mlock "
        "and\n"
        "             munlock of such (ratio of the sums; present: of pages that are in memory);\n"
        "             locked: of a region that is registered already, in us and in calls, null\n"
        "             system calls of the same time; cached: a lease of via::RegistrationCache\n"
        "  suite      all the papers' questions, one after the other: DIR/NAME.jsonl of each, and\n"
        "             DIR/machine.json; --against is of its first ones; of single ones, if named\n"
        "\n'via bench report DIR' reads DIR/*.jsonl (what --json printed, a run in each file) and\n"
        "DIR/machine.json and writes DIR/index.html: tables, and pictures that gnuplot draws; "
        "with\n"
        "--markdown FILE.md that file and the folder FILE of pictures.\n"
        "'via bench goals DIR' holds the suite's results in DIR against what we want to reach.\n"
        "'via bench compare A B' shows what changed between two files or folders. More than noise\n"
        "is what the rounds' ranks show (Mann-Whitney, 1 %) if the medians differ by more than\n"
        "--tolerance.\n"
        "\nExit codes: 0 done; 1 failed, standard error says why; 2 wrong command line;\n"
        "3 inconclusive: the mode wanted never came often enough, what came is printed;\n"
        "4 compare: a figure of ours is slower.\n"
        "\nExamples:\n"
        "  via bench latency --size 8,64,4096 --against unix-socket,tcp-socket,line\n"
        "  via bench bandwidth --size 64K,1M --against ring,cma --mode near\n"
        "  via bench latency --wait block --against futex,pipe\n"
        "  via bench latency --size 8 --vis 1000 --cq --json\n"
        "  via bench latency --device udp --netns left,right --against udp-socket,tcp-socket\n"
        "  via bench latency --device udp --netns left,right --size 64K,1M \\\n"
        "      --against libfabric-tcp\n"
        "  via bench serve --address 192.0.2.8          (there)\n"
        "  via bench latency --device udp --peer 192.0.2.8 --against udp-socket,tcp-socket\n"
        "  via bench latency --size 8,4K,64K --against ucx-tag,openmpi,mpich,line\n"
        "  via bench latency --size netpipe:64K --against unix-socket,tcp-socket\n"
        "  via bench rate --active-vis 100 --vis 900 --cq --both-ways\n"
        "  via bench operations --device udp --netns left,right\n"
        "  via bench register --size 4K,1M,64M --rounds 21\n"
        "  via bench latency --against all --json >results/latency.jsonl\n"
        "  via bench suite --quick -o results\n"
        "  via bench suite latency rate --against peers -o results\n"
        "  via bench report results\n"
        "  via bench compare yesterday/latency.jsonl results/latency.jsonl\n";
    return text;
}

int run_bench(const BenchOptions& options) {
    if (options.bench == "serve") return run_bench_serve(options);
    if (options.bench == "report") return run_bench_report(options);
    if (options.bench == "goals") return run_bench_goals(options);
    if (options.bench == "compare") return run_bench_compare(options);
    if ((!options.places.empty() && options.bench != "suite") || !options.markdown.empty()) {
        complain("folders, files and --markdown are for 'via bench report' and 'compare'");
        return exit_usage;
    }
    if (!options.address.empty()) {
        complain("--address is for 'via bench serve'");
        return exit_usage;
    }
    if (options.bench == "suite") return run_bench_suite(options);
    const bool to_folder =
        std::find(options.given.begin(), options.given.end(), "--output") != options.given.end();
    if (options.quick || to_folder) {
        complain("--quick and --output are for 'via bench suite'");
        return exit_usage;
    }
    if (std::find(options.given.begin(), options.given.end(), "--tolerance") !=
        options.given.end()) {
        complain("--tolerance is for 'via bench compare'");
        return exit_usage;
    }
    if (options.bench == "operations") return run_bench_operations(options);
    if (options.bench == "register") return run_bench_register(options);
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
