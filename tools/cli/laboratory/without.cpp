// `via lab without`: which of the papers' figures depend on which mechanism.
#include <algorithm>
#include <iterator>

#include "commands.hpp"
#include "json.hpp"
#include "lab/file/machine_file.hpp"
#include "lab/study/mutations.hpp"
#include "laboratory/options.hpp"
#include "table.hpp"

namespace via::cli {
namespace {

namespace study = via::lab::study;

std::string text_of(const std::vector<study::Mechanism>& taken,
                    const std::vector<study::Change>& changes) {
    Table table;
    table.add({"without", "machine", "figure", "paper", "ours", "then", ""});
    for (const study::Change& one : changes) {
        table.add({std::string(one.mechanism), one.machine, one.with.figure, one.with.paper,
                   one.with.ours, one.without,
                   one.reproduced ? "within bounds" : "not reproduced"});
    }
    std::string text = table.text(true);
    for (const study::Mechanism& one : taken) {
        if (std::ranges::find(changes, one.name, &study::Change::mechanism) == changes.end())
            text += fmt::format("Without {} every figure is what it was.\n", one.name);
    }
    return text;
}

std::string json_of(const std::vector<study::Change>& changes) {
    std::string lines;
    for (const study::Change& one : changes) {
        JsonLine line("via-lab-without-1");
        line.text("without", std::string(one.mechanism)).text("machine", one.machine);
        line.text("figure", one.with.figure).text("paper", one.with.paper);
        lines += line.text("ours", one.with.ours)
                     .text("then", one.without)
                     .boolean("reproduced", one.reproduced)
                     .line();
    }
    return lines;
}

}  // namespace

void add_lab_without(CLI::App& lab, LabOptions& options) {
    auto* without = lab.add_subcommand(
        "without", "Which of the papers' figures are others without which mechanism");
    std::vector<std::string> names;
    for (const study::Mechanism& one : study::mechanisms()) names.emplace_back(one.name);
    without
        ->add_option("mechanisms", options.designs,
                     "What is taken away, each by itself; all of them, if none is named")
        ->check(CLI::IsMember(names));
    without->add_flag("--json", options.json, "One JSON object a line");
}

int run_lab_without(const LabOptions& options) {
    std::vector<study::Mechanism> taken;
    for (const study::Mechanism& one : study::mechanisms()) {
        if (options.designs.empty() || std::ranges::count(options.designs, one.name) != 0)
            taken.push_back(one);
    }
    std::vector<lab::Machine> machines;
    for (const study::Study& one : study::studies()) {
        auto machine = lab::file::load(std::string(one.machine));
        if (!machine) return lab_failed(machine.error());
        machines.push_back(std::move(*machine));
    }
    const auto changes = study::changes_without(taken, machines);
    if (!changes) return lab_failed(changes.error());
    fmt::print("{}", options.json ? json_of(*changes) : text_of(taken, *changes));
    return exit_good;
}

}  // namespace via::cli
