// The command `via`: reads the command line and calls the subcommand.
#include <CLI/CLI.hpp>

#include <limits>
#include <string_view>

#include "commands.hpp"
#include "console/command_line.hpp"
#include "console/output.hpp"
#include "laboratory/command.hpp"

namespace {

using namespace via::cli;

void add_info(CLI::App& app, InfoOptions& options) {
    auto* info = app.add_subcommand("info", "Show devices, their limits, and why one is absent");
    info->add_option("device", options.device, "Only this device, for instance shm");
    info->add_option("--peer", options.peer,
                     "Only which way the device (auto) would take to that host, and why")
        ->check(CLI::Validator(
            [](const std::string& host) {
                return host.empty() ? std::string("want a host's name or address") : std::string();
            },
            ""));
    info->add_flag("--json", options.json, "One JSON object a line");
}

void add_stat(CLI::App& app, StatOptions& options) {
    auto* stat = app.add_subcommand("stat", "Show live counters of your running processes");
    stat->add_option("pid", options.pid, "Only this process")
        ->check(CLI::Range(1, std::numeric_limits<int>::max()));
    stat->add_option("--interval", options.interval_s, "Again every so many seconds")
        ->check(via::console::real_range(0.1, 86400.0));
    stat->add_flag("--all", options.all, "Also counters that are zero");
    stat->add_flag("--json", options.json, "One JSON object a line");
}

void add_demo(CLI::App& app, DemoOptions& options) {
    auto* demo = app.add_subcommand(
        "demo", "Two processes exchange verified messages; a table beside pipe and sockets");
    demo->add_option("--device", options.device, "NIC to open")->capture_default_str();
}

// What a message of latency, bandwidth and rate is like.
void add_bench_message(CLI::App& bench, BenchOptions& options) {
    bench.add_option("--segments", options.segments, "Data segments of a descriptor")
        ->check(CLI::Range(1, 252))
        ->capture_default_str();
    bench.add_option("--post-many", options.post_many, "Descriptors posted in one call")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    bench.add_flag("--immediate", options.immediate, "With immediate data (write: and a receive)");
    bench
        .add_option("--reuse", options.reuse,
                    "Percentage of messages in the same buffers, the rest in ever others")
        ->check(CLI::Range(0, 100));
    bench.add_option("--reliability", options.reliability, "unreliable, delivery or reception")
        ->check(CLI::IsMember({"unreliable", "delivery", "reception"}))
        ->capture_default_str();
    bench.add_flag("--both-ways", options.both_ways,
                   "Both directions at once: their sum, and each (bandwidth, rate)");
    bench
        .add_option("--senders", options.senders,
                    "Processes that send to one, through its completion queue (bandwidth, rate)")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    bench.add_option("--spinners", options.spinners, "Processors shared with one who spins")
        ->check(CLI::Range(0, 2));
}

void add_bench(CLI::App& app, BenchOptions& options) {
    auto* bench =
        app.add_subcommand("bench", "Measure messages, operations or registering, and compare");
    bench
        ->add_option("bench", options.bench,
                     "latency, bandwidth, rate, operations, register, suite, serve, "
                     "report, goals or compare")
        ->required()
        ->check(CLI::IsMember({"latency", "bandwidth", "rate", "operations", "register", "suite",
                               "serve", "report", "goals", "compare"}));
    bench->add_option("places", options.places,
                      "report, goals: a folder of results; compare: two files or folders of them; "
                      "suite: names of questions (all)");
    bench->add_option("--markdown", options.markdown,
                      "report: write this file and pictures beside it, not the folder's "
                      "index.html");
    bench
        ->add_option("--tolerance", options.tolerance_percent,
                     "compare: a smaller change is noise, %")
        ->check(via::console::real_range(0.0, 1000.0))
        ->capture_default_str();
    bench->add_option("--device", options.device, "NIC to open, or a channel")
        ->capture_default_str();
    bench->add_option("--op", options.op, "send, write (RDMA) or read (RDMA)")
        ->check(CLI::IsMember({"send", "write", "read"}))
        ->capture_default_str();
    bench->add_option("--wait", options.wait, "poll or block")
        ->check(CLI::IsMember({"poll", "block"}))
        ->capture_default_str();
    bench
        ->add_option("--size", options.sizes,
                     "Bytes of a message, a list: 8,64,4K,1M; or NetPIPE's: netpipe[:MAX]")
        ->delimiter(',');
    bench->add_flag("--cq", options.cq, "Take completions from one completion queue");
    bench->add_option("--depth", options.depth, "Descriptors in flight (bandwidth, rate)")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    bench->add_option("--vis", options.vis, "Connected VIs more, idle")
        ->check(CLI::Range(0, 65535))
        ->capture_default_str();
    bench->add_option("--active-vis", options.active_vis, "VIs that messages go over in turn")
        ->check(CLI::Range(1, 65535))
        ->capture_default_str();
    bench->add_flag("--rotate-vis", options.rotate_vis, "None of --vis is idle: all in turn");
    add_bench_message(*bench, options);
    bench->add_flag("--export", options.exported,
                    "Message memory in shared segments; RDMA goes straight into them");
    bench->add_option("--netns", options.netns, "Two network namespaces, a process in each: A,B")
        ->delimiter(',');
    bench->add_option("--peer", options.peer,
                      "The second process on another machine, where 'via bench serve' runs: "
                      "HOST[:PORT]");
    bench->add_option("--address", options.address,
                      "serve: listen here, HOST[:PORT] (all addresses, TCP port 9742)");
    bench->add_option("--against", options.against, "Channels to compare with, a list")
        ->delimiter(',');
    bench->add_option("--rounds", options.rounds, "Good rounds wanted of each figure")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    bench->add_option("--mode", options.mode, "Modes that must come: any, near, far or both")
        ->check(CLI::IsMember({"any", "near", "far", "both"}))
        ->capture_default_str();
    bench->add_option("--near-below", options.near_below_ns, "A probe under this is near, ns")
        ->check(via::console::real_range(1.0, 1e6))
        ->capture_default_str();
    bench->add_option("--far-above", options.far_above_ns, "A probe over this is far, ns")
        ->check(via::console::real_range(1.0, 1e6))
        ->capture_default_str();
    bench->add_flag("--keep-disturbed", options.keep_disturbed,
                    "Count samples that other processes disturbed (with via-weather)");
    bench->add_option("--cpus", options.cpus,
                      "Two processors to pin to: A,B; with --peer and for serve one, A");
    bench
        ->add_option("--max-seconds", options.max_seconds,
                     "Stop measuring after this long; serve: what a client may ask for")
        ->check(CLI::Range(1, 86400))
        ->capture_default_str();
    bench->add_flag("--json", options.json, "One JSON object a line on standard output");
    bench->add_flag("--quick", options.quick, "suite: few sizes, 3 rounds");
    bench->add_option("-o,--output", options.output, "suite: the folder that results go to")
        ->capture_default_str();
    bench->footer([] { return bench_footer(); });
}

// Its arguments are another program's, so the command line's reader never sees them.
bool is_mpirun(int argc, char** argv) { return argc > 1 && std::string_view(argv[1]) == "mpirun"; }

const CLI::App* command_called(const CLI::App& app, const std::string& name) {
    const auto all =
        app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
    return all.empty() ? nullptr : all[0];
}

// The reader of the command line says only that a command is missing, whatever stands there.
int no_such_command(const CLI::App& app, const std::string& given) {
    std::string all;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        (all += all.empty() ? "" : ", ") += command->get_name();
    const std::string what =
        given.empty() ? "a command is missing" : fmt::format("there is no command \"{}\"", given);
    via::console::complain("via: {}; there are {}. 'via help' tells what they do", what, all);
    return exit_usage;
}

// `via help [COMMAND]`, as `via [COMMAND] --help`.
int run_help(const CLI::App& app, const std::vector<std::string>& words) {
    const CLI::App* of = words.empty() ? &app : command_called(app, words[0]);
    if (of == nullptr) return no_such_command(app, words[0]);
    if (of->get_name() == "mpirun") return run_mpirun({"--help"});
    fmt::print("{}", of->help());
    return 0;
}

int run(int argc, char** argv) {
    CLI::App app{"OpenVIA: the Virtual Interface Architecture on Linux"};
    app.name("via");
    app.require_subcommand(1);
    app.footer(
        "Exit codes: 0 done; 1 failed, standard error says why; 2 wrong command line;\n"
        "3 inconclusive (bench); 4 slower (bench compare). 'via COMMAND --help' tells more.");
    InfoOptions info;
    StatOptions stat;
    DemoOptions demo;
    BenchOptions bench;
    LabOptions lab;
    add_info(app, info);
    add_stat(app, stat);
    add_demo(app, demo);
    add_bench(app, bench);
    add_lab(app, lab);
    app.add_subcommand("mpirun",
                       "Run an MPI program over VIA: Open MPI's mpirun and its arguments");
    app.set_version_flag("--version", "OpenVIA " VIA_VERSION, "Print the version and exit");
    try {
        if (is_mpirun(argc, argv)) return run_mpirun({argv + 2, argv + argc});
        const std::string first = argc > 1 ? argv[1] : "";
        if (first == "help") return run_help(app, {argv + 2, argv + argc});
        if (first.empty() || (first[0] != '-' && command_called(app, first) == nullptr))
            return no_such_command(app, first);
        app.parse(argc, argv);
        if (app.got_subcommand("info")) return run_info(info);
        if (app.got_subcommand("stat")) return run_stat(stat);
        if (app.got_subcommand("demo")) return run_demo(demo);
        if (app.got_subcommand("lab")) return run_lab(*app.get_subcommand("lab"), lab);
        for (const CLI::Option* option : app.get_subcommand("bench")->get_options()) {
            if (option->count() > 0) bench.given.push_back(option->get_name());
        }
        return run_bench(bench);
    } catch (const CLI::ParseError& error) {
        return via::console::answer(app, error, exit_usage);
    }
}

}  // namespace

int main(int argc, char** argv) {
    return via::console::run("via", exit_failed, [&] { return run(argc, argv); });
}
