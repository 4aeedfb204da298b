// `via lab exec`: unmodified programs as hosts of a simulated cluster.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <ranges>

#include "commands.hpp"
#include "console/output.hpp"
#include "json.hpp"
#include "lab/exec/cluster.hpp"
#include "laboratory/command.hpp"
#include "laboratory/output.hpp"

namespace via::cli {
namespace {

/// Between them stands a colon.
std::vector<lab::exec::Program> programs_of(const std::vector<std::string>& words) {
    std::vector<lab::exec::Program> programs(1);
    for (const std::string& word : words) {
        if (word == ":")
            programs.emplace_back();
        else
            programs.back().push_back(word);
    }
    return programs;
}

std::string json_of(const lab::exec::Outcome& outcome,
                    const lab::carrier::ClusterCarrier& carrier) {
    const lab::Ledger& ledger = carrier.ledger();
    JsonLine line("via-lab-exec-1");
    line.number("ns", outcome.time.ns);
    line.number("hosts", static_cast<std::int64_t>(carrier.hosts()));
    line.number("messages", static_cast<std::int64_t>(carrier.messages()));
    line.number("packets", static_cast<std::int64_t>(carrier.packets()));
    line.text("busiest", ledger.name_of(ledger.busiest()));
    line.open("spent");
    for (std::size_t share = 0; share < lab::share_count; ++share) {
        const auto of = static_cast<lab::Share>(share);
        line.figure(key_of(of), static_cast<double>(ledger.total(of).ns) / 1e3);
    }
    return line.close().line();
}

std::string text_of(const lab::exec::Outcome& outcome,
                    const lab::carrier::ClusterCarrier& carrier) {
    const lab::Ledger& ledger = carrier.ledger();
    const double all = static_cast<double>(outcome.time.ns);
    std::string text =
        fmt::format("{:.3f} ms of virtual time; {} hosts, {} messages in {} packets\n", all / 1e6,
                    carrier.hosts(), carrier.messages(), carrier.packets());
    Table table;
    table.add({"spent on", "us", "us/message"});
    const double messages = std::max(1.0, static_cast<double>(carrier.messages()));
    for (std::size_t share = 0; share < lab::share_count; ++share) {
        const auto of = static_cast<lab::Share>(share);
        const double spent = static_cast<double>(ledger.total(of).ns) / 1e3;
        if (spent == 0) continue;
        table.add({lab::name_of(of), fmt::format("{:.1f}", spent),
                   fmt::format("{:.2f}", spent / messages)});
    }
    const lab::ResourceId busiest = ledger.busiest();
    return text + table.text() +
           fmt::format("busiest: {}, {:.1f} % of the time\n", ledger.name_of(busiest),
                       all == 0 ? 0 : 100 * static_cast<double>(ledger.busy(busiest).ns) / all);
}

}  // namespace

int run_lab_exec(const lab::study::Trial& trial, const LabOptions& options) {
    const auto programs = programs_of(options.program);
    if (std::ranges::any_of(programs, &lab::exec::Program::empty)) {
        console::complain("via lab exec: there is no program beside a colon");
        return exit_usage;
    }
    auto cluster = lab::exec::Cluster::make({trial.machine, trial.design, trial.load}, options.seed,
                                            std::chrono::seconds(options.patience_s));
    if (!cluster) {
        console::complain("via lab exec: {}", cluster.error());
        return exit_failed;
    }
    const auto outcome = (*cluster)->run(programs);
    if (!outcome) {
        console::complain("via lab exec: {}", outcome.error());
        return exit_failed;
    }
    fmt::print("{}", options.json ? json_of(*outcome, (*cluster)->carrier())
                                  : text_of(*outcome, (*cluster)->carrier()));
    int worst = exit_good;
    for (std::size_t n = 0; n < programs.size(); ++n) {
        if (outcome->statuses[n] == 0) continue;
        console::complain("via lab exec: {} ended with {}", programs[n][0], outcome->statuses[n]);
        worst = exit_failed;
    }
    return worst;
}

}  // namespace via::cli
