// `via lab measure`: a machine file of our own NIC, of what `via bench` found, and where the model
// agrees with it.
#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <fstream>
#include <iterator>

#include "bench/machine.hpp"
#include "commands.hpp"
#include "json.hpp"
#include "lab/file/machine_file.hpp"
#include "lab/file/text.hpp"
#include "lab/study/software.hpp"
#include "laboratory/measured.hpp"
#include "laboratory/options.hpp"
#include "table.hpp"

namespace via::cli {
namespace {

namespace study = via::lab::study;

std::string processor() {
    const auto text = lab::file::read_text("/proc/cpuinfo");
    return text ? bench::value_in(*text, "model name") : std::string("an unknown processor");
}

/// What the command line says, or the system.
std::expected<MeasuredCache, std::string> cache_of(const LabOptions& options) {
    if (options.cache.empty()) {
        auto found = cache_of_system();
        if (!found) return std::unexpected(found.error() + "; --cache does");
        return found;
    }
    return MeasuredCache{lab_bytes_of(options.cache, lab_registered_max),
                         "via lab measure: --cache"};
}

std::string text_of(const std::vector<study::Agreement>& all) {
    Table table;
    table.add({"bytes", "via bench, us", "the model, us", "difference"});
    for (const study::Agreement& one : all)
        table.add({std::to_string(one.size), fmt::format("{:.4f}", one.measured_us),
                   fmt::format("{:.4f}", one.model_us), fmt::format("{:+.1f} %", one.percent())});
    return table.text() + study::sentence_of(all) + "\n";
}

std::string json_of(const std::vector<study::Agreement>& all) {
    std::string text;
    for (const study::Agreement& one : all) {
        JsonLine line("via-lab-measure-1");
        line.number("size", one.size).figure("measured_us", one.measured_us);
        line.figure("model_us", one.model_us).figure("percent", one.percent());
        text += line.line();
    }
    return text;
}

}  // namespace

void add_lab_measure(CLI::App& lab, LabOptions& options) {
    auto* measure = lab.add_subcommand(
        "measure",
        "This machine's own NIC as a machine: its file, of what via bench found, and at "
        "which sizes the model agrees");
    measure
        ->add_option("results", options.program,
                     "Files or folders of via bench operations --json and via bench latency "
                     "--against line,two-copy --json; or of via bench suite")
        ->required();
    measure->add_option("-o,--output", options.trace, "The machine's file")->required();
    measure
        ->add_option("--cache", options.cache,
                     "What one processor's own caches hold, as 1M, where results are of another "
                     "machine; else the system is asked")
        ->check(lab_bytes(1 << 30));
    measure->add_flag("--json", options.json, "One JSON object a line");
}

int run_lab_measure(const LabOptions& options) {
    std::vector<report::Run> runs;
    for (const std::string& place : options.program) {
        auto read = report::read_runs(place);
        if (!read) return lab_failed(read.error().what);
        std::ranges::move(*read, std::back_inserter(runs));
    }
    const auto nic = measured_nic(runs);
    if (!nic) return lab_failed(nic.error());
    const auto cache = cache_of(options);
    if (!cache) return lab_failed(cache.error());
    const std::string text = machine_text(*nic, *cache, processor());
    const auto machine = lab::file::parse(text, options.trace);
    if (!machine) return lab_failed(machine.error());
    std::ofstream file(options.trace);
    file << text;
    file.close();
    if (!file) return lab_failed("cannot write " + options.trace);
    const auto all = study::agreements(*machine, nic->latencies);
    if (!all) return lab_failed(all.error());
    fmt::print("{}", options.json ? json_of(*all) : text_of(*all));
    return exit_good;
}

}  // namespace via::cli
