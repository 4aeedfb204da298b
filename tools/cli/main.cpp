// The command `via`: reads the command line and calls the subcommand.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <limits>
#include <string_view>

#include "bench_options.hpp"
#include "commands.hpp"
#include "console/command_line.hpp"
#include "console/output.hpp"
#include "laboratory/command.hpp"
#include "topology/command.hpp"

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

void add_keys(CLI::App& app, KeysOptions& options) {
    auto* keys = app.add_subcommand("keys", "Keys by which packets between hosts are sealed");
    keys->require_subcommand(1);
    auto* made = keys->add_subcommand("new", "Make one, in a file that only you can read");
    made->add_flag("--system", options.system, "In /etc/openvia, for all users of this host");
    made->add_flag("--beside", options.beside,
                   "Also where there is a key: the new one answers, the first one asks");
    made->add_flag("--host", options.host,
                   "A pair of this host's own, whose public half others are told to trust");
    auto* trust = keys->add_subcommand("trust", "Pin another host's public key");
    trust->add_option("host", options.trusted_host, "Its name or address")->required();
    trust
        ->add_option("key", options.trusted_key, "What 'via keys show' prints there behind \"own\"")
        ->required();
    trust->add_flag("--system", options.system, "In /etc/openvia, for all users of this host");
    for (auto* command : {made, trust})
        command->add_option("--until", options.until, "The day on which it is good no more (UTC)")
            ->type_name("YYYY-MM-DD");
    keys->add_subcommand("show", "Show which keys there are, secret ones by fingerprints");
    auto* decrypt = keys->add_subcommand(
        "decrypt", "Open a capture's sealed packets with keys that OPENVIA_KEY_LOG had written");
    decrypt->add_option("capture", options.capture, "A pcap file")->required();
    decrypt->add_option("-k,--keys", options.log, "The file of the keys")
        ->type_name("FILE")
        ->required();
    decrypt->add_option("-o,--output", options.output, "The pcap file to write")
        ->type_name("FILE")
        ->required();
}

// Arguments that are another program's: the command line's reader never sees them.
bool is_first(const char* command, int argc, char** argv) {
    return argc > 1 && std::string_view(argv[1]) == command;
}

const CLI::App* command_called(const CLI::App& app, const std::string& name) {
    const auto all =
        app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
    return all.empty() ? nullptr : all[0];
}

// The reader of the command line says only that a command is missing, whatever stands there.
int no_such_command(const CLI::App& app, const std::string& given) {
    const std::string of = app.get_parent() == nullptr ? "" : " " + app.get_name();
    std::string all;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        (all += all.empty() ? "" : ", ") += command->get_name();
    const std::string what =
        given.empty() ? "a command is missing" : fmt::format("there is no command \"{}\"", given);
    via::console::complain("via{0}: {1}; there are {2}. 'via help{0}' tells what they do", of, what,
                           all);
    return exit_usage;
}

// The command that the words name, as far as they are names of commands. Null, and said: one is
// none, and has to be.
const CLI::App* command_named(const CLI::App& app, const std::vector<std::string>& words) {
    const CLI::App* of = &app;
    for (const std::string& word : words) {
        const bool has_commands = of->get_require_subcommand_min() > 0;
        if (!has_commands || word.starts_with('-')) break;
        const CLI::App* next = command_called(*of, word);
        if (next == nullptr) {
            no_such_command(*of, word);
            return nullptr;
        }
        of = next;
    }
    return of;
}

// `via help [COMMAND...]`, as `via [COMMAND...] --help`.
int run_help(CLI::App& app, std::vector<std::string> words) {
    if (command_named(app, words) == nullptr) return exit_usage;
    if (!words.empty() && words[0] == "mpirun") return run_mpirun({"--help"});
    if (!words.empty() && words[0] == "sockets") return run_sockets({"--help"});
    words.emplace_back("--help");
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    app.parse(std::move(words));
    return exit_good;
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
    KeysOptions keys;
    BenchOptions bench;
    LabOptions lab;
    TopologyOptions topology;
    add_info(app, info);
    add_stat(app, stat);
    add_demo(app, demo);
    add_keys(app, keys);
    add_bench(app, bench);
    add_lab(app, lab);
    add_topology(app, topology);
    app.add_subcommand("mpirun",
                       "Run an MPI program over VIA: Open MPI's mpirun and its arguments");
    app.add_subcommand("sockets",
                       "Run a program whose TCP connections inside this host go through memory");
    app.set_version_flag("--version", "OpenVIA " VIA_VERSION, "Print the version and exit");
    try {
        if (is_first("mpirun", argc, argv)) return run_mpirun({argv + 2, argv + argc});
        if (is_first("sockets", argc, argv)) return run_sockets({argv + 2, argv + argc});
        const std::vector<std::string> words(argv + 1, argv + argc);
        if (!words.empty() && words[0] == "help") return run_help(app, {argv + 2, argv + argc});
        const CLI::App* named = command_named(app, words);
        if (named == nullptr) return exit_usage;
        if (named->get_require_subcommand_min() > 0 && (words.empty() || words.back()[0] != '-'))
            return no_such_command(*named, "");
        app.parse(argc, argv);
        if (app.got_subcommand("info")) return run_info(info);
        if (app.got_subcommand("stat")) return run_stat(stat);
        if (app.got_subcommand("demo")) return run_demo(demo);
        if (app.got_subcommand("keys")) {
            const CLI::App& which = *app.get_subcommand("keys");
            if (which.got_subcommand("new")) return run_keys_new(keys);
            if (which.got_subcommand("decrypt")) return run_keys_decrypt(keys);
            return which.got_subcommand("trust") ? run_keys_trust(keys) : run_keys_show();
        }
        if (app.got_subcommand("lab")) return run_lab(*app.get_subcommand("lab"), lab);
        if (app.got_subcommand("topology")) return run_topology(topology);
        return run_bench(*app.get_subcommand("bench"), bench);
    } catch (const CLI::ParseError& error) {
        return via::console::answer(app, error, exit_usage);
    }
}

}  // namespace

int main(int argc, char** argv) {
    return via::console::run("via", exit_failed, [&] { return run(argc, argv); });
}
