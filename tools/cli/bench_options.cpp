#include "bench_options.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "console/command_line.hpp"

namespace via::cli {

namespace {

// An option with a value, its range and default in the help as "--depth 1-1024=16".
template <class T>
CLI::Option* number(CLI::App& app, const char* name, T& value, int min, int max, const char* what) {
    return app.add_option(name, value, what)
        ->check(CLI::Range(min, max))
        ->option_text(fmt::format("{}-{}={}", min, max, value));
}

CLI::Option* real(CLI::App& app, const char* name, double& value, double min, double max,
                  const char* what) {
    return app.add_option(name, value, what)
        ->check(console::real_range(min, max))
        ->option_text(fmt::format("NUMBER={}", value));
}

CLI::Option* word(CLI::App& app, const char* name, std::string& value,
                  std::vector<std::string> words, const char* what) {
    return app.add_option(name, value, what)
        ->check(CLI::IsMember(std::move(words)))
        ->option_text("WORD=" + value);
}

CLI::Option* list(CLI::App& app, const char* name, std::vector<std::string>& values,
                  const char* text, const char* what) {
    return app.add_option(name, values, what)->delimiter(',')->option_text(text);
}

void add_device(CLI::App& app, BenchOptions& options, const char* what = "NIC to open") {
    app.add_option("--device", options.device, what)->option_text("NIC=" + options.device);
}

void add_netns(CLI::App& app, BenchOptions& options) {
    list(app, "--netns", options.netns, "A,B", "Two network namespaces, a process in each");
}

void add_rounds(CLI::App& app, BenchOptions& options) {
    number(app, "--rounds", options.rounds, 1, 10000, "Good rounds wanted of each figure");
}

void add_cpus(CLI::App& app, BenchOptions& options, const char* text, const char* what) {
    app.add_option("--cpus", options.cpus, what)->option_text(text);
}

void add_seconds(CLI::App& app, BenchOptions& options, const char* what) {
    number(app, "--max-seconds", options.max_seconds, 1, 86400, what);
}

void add_disturbed(CLI::App& app, BenchOptions& options) {
    app.add_flag("--keep-disturbed", options.keep_disturbed,
                 "Count samples that other processes disturbed (with via-weather)");
}

void add_json(CLI::App& app, BenchOptions& options) {
    app.add_flag("--json", options.json, "One JSON object a line on standard output");
}

void add_modes(CLI::App& app, BenchOptions& options) {
    word(app, "--mode", options.mode, {"any", "near", "far", "both"},
         "Modes that must come: any, near, far or both");
    real(app, "--near-below", options.near_below_ns, 1, 1e6, "A probe under this is near, ns");
    real(app, "--far-above", options.far_above_ns, 1, 1e6, "A probe over this is far, ns");
}

void add_against(CLI::App& app, BenchOptions& options) {
    list(app, "--against", options.against, "LIST",
         "Channels to compare with; 'via bench channels' names them");
}

// What a message is like.
void add_message(CLI::App& app, BenchOptions& options) {
    list(app, "--size", options.sizes, "LIST", "Bytes of a message: 8,64,4K,1M; or netpipe[:MAX]");
    word(app, "--op", options.op, {"send", "write", "read", "atomic"},
         "send, write (RDMA), read (RDMA) or atomic (fetch-and-add)");
    word(app, "--wait", options.wait, {"poll", "block"}, "poll or block");
    word(app, "--reliability", options.reliability, {"unreliable", "delivery", "reception"},
         "unreliable, delivery or reception");
    number(app, "--segments", options.segments, 1, 252, "Data segments of a descriptor");
    app.add_flag("--immediate", options.immediate, "With immediate data (write: and a receive)");
    app.add_option("--reuse", options.reuse,
                   "Percentage of messages in the same buffers, the rest in others")
        ->check(CLI::Range(0, 100))
        ->option_text("0-100");
    app.add_flag("--export", options.exported,
                 "Message memory in shared segments; RDMA goes straight into them");
    app.add_flag("--cq", options.cq, "Take completions from one completion queue");
    number(app, "--vis", options.vis, 0, 65535, "Further connected VIs, idle");
    number(app, "--active-vis", options.active_vis, 1, 65535, "VIs that carry messages in turn");
    app.add_flag("--rotate-vis", options.rotate_vis, "None of --vis is idle: all in turn");
    number(app, "--spinners", options.spinners, 0, 2, "Processors shared with a spinning thread");
}

// What only a stream has.
void add_stream(CLI::App& app, BenchOptions& options) {
    number(app, "--depth", options.depth, 1, 1024, "Descriptors in flight");
    number(app, "--post-many", options.post_many, 1, 64, "Descriptors posted in one call");
    app.add_flag("--both-ways", options.both_ways, "Both directions at once: their sum, and each");
    number(app, "--senders", options.senders, 1, 64,
           "Processes that send to one, through its completion queue");
}

void add_latency(CLI::App& app, BenchOptions& options) {
    add_device(app, options, "NIC to open, or a channel");
    add_message(app, options);
    add_against(app, options);
    add_netns(app, options);
    app.add_option("--peer", options.peer, "Second process where 'via bench serve' runs")
        ->option_text("HOST[:PORT]");
    add_rounds(app, options);
    add_modes(app, options);
    add_disturbed(app, options);
    add_cpus(app, options, "A,B", "Two processors to pin to; with --peer one, A");
    add_seconds(app, options, "Stop measuring after this long");
    add_json(app, options);
}

void add_bandwidth(CLI::App& app, BenchOptions& options) {
    add_latency(app, options);
    add_stream(app, options);
}

void add_operations(CLI::App& app, BenchOptions& options) {
    add_device(app, options);
    list(app, "--size", options.sizes, "LIST", "Bytes to register: 4K,64K,1M");
    add_netns(app, options);
    add_rounds(app, options);
    add_disturbed(app, options);
    add_cpus(app, options, "A,B", "Two processors to pin to");
    add_seconds(app, options, "Stop measuring after this long");
    add_json(app, options);
}

void add_register(CLI::App& app, BenchOptions& options) {
    add_device(app, options);
    list(app, "--size", options.sizes, "LIST", "Bytes to register: 4K,1M,64M");
    add_rounds(app, options);
    add_cpus(app, options, "A", "The processor to pin to");
    add_json(app, options);
}

void add_suite(CLI::App& app, BenchOptions& options) {
    app.add_option("questions", options.places, "Only these: names of files without .jsonl")
        ->option_text("[NAME...]");
    app.add_flag("--quick", options.quick, "Few sizes, 3 rounds");
    app.add_option("-o,--output", options.output, "The folder that results go to")
        ->option_text("DIR=" + options.output);
    add_device(app, options);
    add_against(app, options);
    add_netns(app, options);
    add_rounds(app, options);
    app.get_option("--rounds")->option_text("1-10000=6");
    add_modes(app, options);
    add_disturbed(app, options);
    add_cpus(app, options, "A,B", "Two processors to pin to");
    add_seconds(app, options, "Stop each benchmark after this long");
    app.get_option("--max-seconds")->option_text("1-86400=45");
}

void add_serve(CLI::App& app, BenchOptions& options) {
    app.add_option("--address", options.address, "Listen here (all addresses, TCP port 9742)")
        ->option_text("HOST[:PORT]");
    add_cpus(app, options, "A", "The processor to pin to");
    add_seconds(app, options, "The longest that a client may ask for");
}

void add_channels(CLI::App& /*app*/, BenchOptions& /*options*/) {}

void add_folder(CLI::App& app, BenchOptions& options) {
    app.add_option("folder", options.places, "Files of results, *.jsonl")
        ->required()
        ->expected(1)
        ->option_text("DIR");
}

void add_report(CLI::App& app, BenchOptions& options) {
    add_folder(app, options);
    app.add_option("--markdown", options.markdown,
                   "Write this file and pictures beside it, not DIR/index.html")
        ->option_text("FILE.md");
}

void add_compare(CLI::App& app, BenchOptions& options) {
    app.add_option("results", options.places, "Two files of results, or folders of them")
        ->required()
        ->expected(2)
        ->option_text("BEFORE AFTER");
    real(app, "--tolerance", options.tolerance_percent, 0, 1000, "A smaller change is noise, %");
}

struct Kind {
    const char* name;
    const char* what;
    void (*add)(CLI::App&, BenchOptions&);
    int (*run)(const BenchOptions&);
    const char* footer;
};

constexpr const char* of_bench =
    "A kind's own options: 'via bench KIND --help'.\n"
    "\nlatency, bandwidth and rate: two processes per channel, pinned to two processors, take\n"
    "turns in interleaved rounds. Around each sample they time a cache line between them: under\n"
    "100 ns one way is near, over 150 ns far, else between. Figures of two modes are never mixed\n"
    "or compared. Samples with involuntary switches, steal or foreign load, or during which the\n"
    "mode changed, are dropped and counted.\n"
    "\nTwo machines: 'via bench serve' on one, '--peer HOST[:PORT]' on the other, for udp, auto,\n"
    "udp-socket and tcp-socket. The one with --peer sends first, keeps the time and prints; a\n"
    "stream goes to the one that serves. The mode is called remote: instead of timing a cache\n"
    "line the two compare their clocks around each sample.\n"
    "\nratio is our median to the channel's, of one run and mode; cpu us the processor time of a\n"
    "message, of both processes and of the second one.\n"
    "\nExit codes: 0 done; 1 failed, standard error says why; 2 wrong command line;\n"
    "3 inconclusive: the mode wanted never came often enough, what came is printed;\n"
    "4 compare: one of our figures is slower.\n";

constexpr std::array<Kind, 11> kinds{{
    {"latency", "Half a round trip of a message", add_latency, run_bench_messages,
     "In us: the payload is read by the receiving processor and the sender's completion taken\n"
     "(read: from post to bytes in hand). p99 is of single messages within a round, the median of\n"
     "the rounds. Without --reuse messages take two or up to 256 buffers in turn. netpipe: powers\n"
     "of two and three times those, each with 3 bytes less and more, to MAX (4M).\n"
     "\n  via bench latency --size 8,64,4096 --against unix-socket,tcp-socket,line\n"
     "  via bench latency --wait block --against futex,pipe\n"
     "  via bench latency --size 8 --vis 1000 --cq --json\n"
     "  via bench latency --device udp --netns left,right --against udp-socket\n"
     "  via bench latency --device udp --peer 192.0.2.8\n"},
    {"bandwidth", "Bytes a second of a stream of messages", add_bandwidth, run_bench_messages,
     "In 10^6 bytes a second at the receiver, first post to last receive; p99 is what 99 % of\n"
     "the rounds reach. --reuse P: P % of messages take the buffers of those under way, the\n"
     "others up to 32 MB in turn. fairness is Jain's index of what came from each of --senders\n"
     "when the first had sent everything. With four sizes or more: the half-bandwidth size.\n"
     "\n  via bench bandwidth --size 64K,1M --against ring,cma --mode near\n"
     "  via bench bandwidth --size netpipe:64K --against unix-socket\n"},
    {"rate", "Messages a second", add_bandwidth, run_bench_messages,
     "In 10^6 messages a second at the receiver; p99 is what 99 % of the rounds reach.\n"
     "fairness is Jain's index of what came from each of --senders.\n"
     "\n  via bench rate --active-vis 100 --vis 900 --cq --both-ways\n"
     "  via bench rate --post-many 16 --against spsc,peers\n"},
    {"operations", "Every basic operation of one process", add_operations, run_bench_operations,
     "In us of single calls, all calls of all good rounds: NICs, VIs and queues made and ended,\n"
     "memory registered (pages in memory), connecting from request to answer, posts, polls that\n"
     "find something or nothing, a handler until it runs. null: in null system calls; cpu us\n"
     "where a call may sleep.\n"
     "\n  via bench operations --device udp --netns left,right\n"},
    {"register", "Registering memory", add_register, run_bench_register,
     "VipRegisterMem and VipDeregisterMem of pages never touched, beside mlock and munlock of\n"
     "such (ratio of the sums; present: of pages that are in memory). locked: of a region that is\n"
     "registered already, in us, and calls: null system calls of the same time. cached: a lease\n"
     "of via::RegistrationCache.\n"
     "\n  via bench register --size 4K,1M,64M --rounds 21\n"},
    {"suite", "All published VIA benchmarks, one after the other", add_suite, run_bench_suite,
     "Leaves DIR/NAME.jsonl of each, and DIR/machine.json. --against is for the first ones; of\n"
     "single ones, if named.\n"
     "\n  via bench suite --quick -o results\n"
     "  via bench suite latency rate --against peers -o results\n"},
    {"serve", "The second processes of runs on another machine", add_serve, run_bench_serve,
     "Takes one client at a time until it is ended. Anybody who reaches its TCP port may\n"
     "measure with it: give it an address that only trusted hosts can reach.\n"
     "\n  via bench serve --address 192.0.2.8          (there)\n"
     "  via bench latency --device udp --peer 192.0.2.8 --against udp-socket\n"},
    {"channels", "List what --against takes", add_channels, run_bench_channels, ""},
    {"report", "A page of tables and pictures of results", add_report, run_bench_report,
     "Reads DIR/*.jsonl (what --json printed, a run in each file) and DIR/machine.json and writes\n"
     "DIR/index.html, with pictures that gnuplot draws; with --markdown FILE.md that file and the\n"
     "folder FILE of pictures.\n"
     "\n  via bench latency --against all --json >results/latency.jsonl\n"
     "  via bench report results\n"},
    {"goals", "Check the suite's results against our goals", add_folder, run_bench_goals,
     "A row for each goal and mode: our median, the other's, and ours by the other's (times\n"
     "faster: the other's by ours). inconclusive: the mode did not come for both.\n"
     "\n  via bench suite -o results; via bench goals results\n"},
    {"compare", "What changed between two runs or folders", add_compare, run_bench_compare,
     "More than noise is what the rounds' ranks show (Mann-Whitney, 1 %) if the medians differ by\n"
     "more than --tolerance. Exit code 4: one of our figures is slower.\n"
     "\n  via bench compare yesterday/latency.jsonl results/latency.jsonl\n"},
}};

}  // namespace

void add_bench(CLI::App& app, BenchOptions& options) {
    auto* bench =
        app.add_subcommand("bench", "Measure messages, operations or registering, and compare");
    constexpr std::size_t width = 34;
    auto formatter = std::make_shared<CLI::Formatter>();
    formatter->column_width(width);
    bench->formatter(formatter);
    bench->require_subcommand(1);
    bench->footer(of_bench);
    for (const Kind& kind : kinds) {
        auto* command = bench->add_subcommand(kind.name, kind.what);
        kind.add(*command, options);
        command->footer(kind.footer);
    }
}

int run_bench(const CLI::App& bench, BenchOptions& options) {
    const CLI::App* command = bench.get_subcommands().front();
    options.bench = command->get_name();
    for (const CLI::Option* option : command->get_options()) {
        if (option->count() > 0) options.given.push_back(option->get_name());
    }
    const auto* const kind = std::find_if(
        kinds.begin(), kinds.end(), [&](const Kind& one) { return options.bench == one.name; });
    return kind->run(options);
}

}  // namespace via::cli
