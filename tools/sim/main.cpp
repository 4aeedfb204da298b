// via-sim: runs simulated worlds, one per seed, and says what the checkers found.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <expected>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "campaign.hpp"
#include "console/command_line.hpp"
#include "console/output.hpp"
#include "laboratory.hpp"
#include "secure/libcrypto/libcrypto.hpp"
#include "sim/world.hpp"

namespace {

using via::sim::Parameters;
using via::sim::Report;
using via::sim::World;
using via::sim_tool::Block;
using via::sim_tool::Campaign;

constexpr int exit_trouble = 2;  // wrong command line, or a file cannot be read or written

struct Options {
    std::uint64_t seed = 0;
    std::uint64_t seeds = 1;
    std::uint32_t nics = 0;
    std::uint32_t steps = 0;
    std::string medium = "lossless";
    std::string trace;
    std::string log;
    std::string tree = "-";
    std::uint64_t block = 1'000;
    bool frames = false;
    bool twice = false;
    bool quiet = false;
};

struct Total {
    std::uint64_t worlds = 0;
    std::vector<std::uint64_t> bad;
    via::sim::Tally tally;
    // Of the laboratory; of the processor the time that its worlds took
    std::uint64_t lab_events = 0;
    std::clock_t lab_ticks = 0;

    void add(const Report& report) {
        ++worlds;
        tally.connections += report.tally.connections;
        tally.messages += report.tally.messages;
        tally.message_bytes += report.tally.message_bytes;
        tally.reads += report.tally.reads;
        tally.flushed += report.tally.flushed;
        tally.errors += report.tally.errors;
        tally.lost += report.tally.lost;
        tally.turns += report.tally.turns;
    }
};

struct FileCloser {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

/// False: not all that was written to it is there.
bool close_well(File file) {
    const bool written = std::ferror(file.get()) == 0;
    return std::fclose(file.release()) == 0 && written;
}

using via::device::sim::CarrierMaker;
using via::lab::carrier::Plan;

/// read_and_run() saw that it can be loaded.
std::unique_ptr<via::secure::Crypto> make_crypto() { return via::secure::load_libcrypto().value(); }

Report run_world(const Options& options, const Parameters& parameters,
                 const std::optional<Plan>& plan, std::FILE* trace, Total& total) {
    const via::lab::carrier::ClusterCarrier* laboratory = nullptr;
    World world(parameters, options.frames,
                plan ? via::sim_tool::maker_of(*plan, laboratory) : CarrierMaker(), make_crypto);
    if (trace != nullptr)
        world.trace().set_sink(
            [trace](std::string_view line) { std::fwrite(line.data(), 1, line.size(), trace); });
    const std::clock_t begin = std::clock();
    Report report = world.run();
    if (laboratory == nullptr) return report;
    total.lab_ticks += std::clock() - begin;
    total.lab_events += laboratory->events();
    return report;
}

/// How fast the laboratory is, with engines and checkers.
std::string rate_of(const Total& total) {
    if (total.lab_events == 0) return {};
    const auto ticks = static_cast<double>(std::max<std::clock_t>(total.lab_ticks, 1));
    const double seconds = ticks / CLOCKS_PER_SEC;
    const double events = static_cast<double>(total.lab_events);
    return fmt::format(
        "laboratory: {} events in {:.3f} s of a processor, {:.3f} million a second\n",
        total.lab_events, seconds, events / 1e6 / seconds);
}

/// What to type to see it again.
std::string repetition(const Options& options, std::uint64_t seed) {
    std::string text = fmt::format("./dev sim --seed {}", seed);
    if (options.medium != "lossless") text += " --medium " + options.medium;
    if (options.nics != 0) text += fmt::format(" --nics {}", options.nics);
    if (options.steps != 0) text += fmt::format(" --steps {}", options.steps);
    return text + (options.frames ? " --frames" : "");
}

/// No world could be made.
bool fail_seed(std::uint64_t seed, const std::string& why, Total& total) {
    total.bad.push_back(seed);
    via::console::complain("via-sim: seed {}: {}", seed, why);
    return false;
}

bool run_seed(const Options& options, std::uint64_t seed, std::FILE* trace, Total& total) {
    Parameters parameters =
        via::sim::draw_parameters(seed, via::sim::world_kind_of(options.medium).value());
    if (options.nics != 0) parameters.nics = options.nics;
    if (options.steps != 0) parameters.steps = options.steps;
    std::optional<Plan> drawn;
    std::string text = to_text(parameters);
    if (options.medium == "lab") {
        const auto plan = via::sim_tool::draw_plan(seed);
        if (!plan) return fail_seed(seed, plan.error(), total);
        drawn = *plan;
        text += " " + via::sim_tool::to_text(*plan);
    }
    Report report = run_world(options, parameters, drawn, trace, total);
    if (options.twice && report.good()) {
        const Report again = run_world(options, parameters, drawn, nullptr, total);
        if (again.trace_hash != report.trace_hash || again.trace_lines != report.trace_lines)
            report.violation = "repetition: the same seed gave another trace";
    }
    total.add(report);
    if (!options.quiet || !report.good())
        fmt::print(
            "seed {} {} {}: {:.3f} ms, {} turns, {} connections, {} messages, {} reads, "
            "trace {:016x}\n",
            seed, text, report.good() ? "good" : "BAD", static_cast<double>(report.time.ns) / 1e6,
            report.tally.turns, report.tally.connections, report.tally.messages, report.tally.reads,
            report.trace_hash);
    if (report.good()) return true;
    total.bad.push_back(seed);
    fmt::print("  violation of {}\n  again, with a trace: {} --trace FILE\n", report.violation,
               repetition(options, seed));
    return false;
}

using Clock = std::chrono::steady_clock;

/// The worlds that the log does not have, block for block. error: why it cannot be read or written.
std::expected<void, std::string> run_campaign(const Options& options, Total& total) {
    Campaign campaign(options.log, options.medium, options.tree);
    const Block all{options.seed, options.seed + options.seeds - 1};
    if (auto read = campaign.read(); !read) return read;
    for (Block block{}; campaign.next(all, options.block, block);) {
        const Clock::time_point begin = Clock::now();
        const std::size_t bad = total.bad.size();
        for (std::uint64_t n = 0; n <= block.last - block.first; ++n)
            run_seed(options, block.first + n, nullptr, total);
        via::console::flush_output();
        const std::chrono::duration<double> taken = Clock::now() - begin;
        const auto first_bad = total.bad.begin() + static_cast<std::ptrdiff_t>(bad);
        const auto noted = campaign.note(block, {first_bad, total.bad.end()}, taken.count());
        if (!noted) return noted;
    }
    return {};
}

int run(const Options& options) {
    File trace;
    if (!options.trace.empty()) {
        trace.reset(std::fopen(options.trace.c_str(), "w"));
        if (!trace) {
            via::console::complain("via-sim: cannot write {} (open): {}", options.trace,
                                   std::strerror(errno));
            return exit_trouble;
        }
    }
    Total total;
    if (!options.log.empty()) {
        if (const auto done = run_campaign(options, total); !done) {
            via::console::complain("via-sim: cannot go on with the log {}: {}", options.log,
                                   done.error());
            return exit_trouble;
        }
    } else {
        for (std::uint64_t n = 0; n < options.seeds; ++n) {
            run_seed(options, options.seed + n, trace.get(), total);
            via::console::flush_output();
        }
    }
    fmt::print(
        "{} world{}, seeds {} to {}: {} bad; {} turns, {} connections ({} lost), {} messages of "
        "{} bytes, {} reads, {} descriptors flushed, {} with errors\n",
        total.worlds, total.worlds == 1 ? "" : "s", options.seed, options.seed + options.seeds - 1,
        total.bad.size(), total.tally.turns, total.tally.connections, total.tally.lost,
        total.tally.messages, total.tally.message_bytes, total.tally.reads, total.tally.flushed,
        total.tally.errors);
    fmt::print("{}", rate_of(total));
    for (const std::uint64_t seed : total.bad)
        fmt::print("repeat: {}\n", repetition(options, seed));
    if (trace && !close_well(std::move(trace))) {
        via::console::complain("via-sim: {} could not be written to its end", options.trace);
        return exit_trouble;
    }
    return total.bad.empty() ? 0 : 1;
}

int read_and_run(int argc, char** argv) {
    Options options;
    options.seed = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                              std::chrono::seconds(1));
    CLI::App app{
        "Runs simulated worlds of several NICs under virtual time, one per seed, and checks "
        "what happens in them. The same seed gives the same run."};
    app.set_version_flag("--version", "OpenVIA " VIA_VERSION, "print the version and exit");
    app.add_option("--seed", options.seed, "the first seed (default: from the clock)")
        ->check(via::console::whole_number());
    app.add_option("--seeds", options.seeds, "how many worlds, with seeds one after another (1)")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
    CLI::Option* nics =
        app.add_option("--nics", options.nics, "NICs in the world, instead of a drawn number");
    nics->check(CLI::Range(1, 1024));
    CLI::Option* steps = app.add_option("--steps", options.steps,
                                        "steps of the programs, instead of a drawn number");
    steps->check(CLI::Range(1, 1'000'000));
    app.add_option(
           "--medium", options.medium,
           "what the NICs are on: frames that are never lost, or the protocol between hosts "
           "over datagrams in any weather, among strangers who see and forge (hostile), "
           "where nothing is lost (calm), or where ways become narrower under long messages "
           "(narrow), or sealed by keys, among strangers who try all that they can without one "
           "(sealed), or over relays that die (relays), or between hosts of several networks, "
           "whose "
           "cables are cut and repaired (rails); or network interfaces of the laboratory, a "
           "design by each seed (lab) "
           "(lossless)")
        ->check(CLI::IsMember(std::vector<std::string>(std::begin(via::sim::world_kind_names),
                                                       std::end(via::sim::world_kind_names))));
    CLI::Option* trace =
        app.add_option("--trace", options.trace, "write every event to this file, a line each");
    app.add_flag("--frames", options.frames, "show every frame in the trace too");
    app.add_flag("--twice", options.twice, "run each world twice and compare the traces");
    app.add_flag("--quiet", options.quiet, "print bad worlds and the total only");
    CLI::Option* log =
        app.add_option("--log", options.log,
                       "append a line to this file for each block of worlds that is done; those "
                       "that it has already are not run again")
            ->excludes(nics, steps, trace);
    app.add_option("--tree", options.tree, "what the log calls the tree that runs (-)")
        ->check([](const std::string& name) {
            const bool one = !name.empty() && std::ranges::none_of(name, [](unsigned char c) {
                return std::isspace(c) != 0;
            });
            return one ? std::string() : "the log wants one word: '" + name + "'";
        })
        ->needs(log);
    app.add_option("--block", options.block, "worlds for each line of the log (1000)")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
        ->needs(log);
    app.footer(
        "Exit code: 0 all good, 1 a violation (the seed and how to repeat it are printed), "
        "2 wrong command line, or a file could not be read or written.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return via::console::answer(app, error, exit_trouble);
    }
    if (options.seeds - 1 > std::numeric_limits<std::uint64_t>::max() - options.seed) {
        via::console::complain("via-sim: there are not so many seeds behind --seed {}",
                               options.seed);
        return exit_trouble;
    }
    if (options.medium == "sealed" || options.medium == "relays" || options.medium == "rails") {
        if (const auto library = via::secure::load_libcrypto(); !library) {
            via::console::complain("via-sim: worlds with keys want OpenSSL's library: {}",
                                   library.error());
            return exit_trouble;
        }
    }
    return run(options);
}

}  // namespace

int main(int argc, char** argv) {
    return via::console::run("via-sim", exit_trouble, [&] { return read_and_run(argc, argv); });
}
