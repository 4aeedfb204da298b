#include "laboratory/command.hpp"

#include <charconv>

#include "commands.hpp"
#include "console/output.hpp"
#include "json.hpp"
#include "lab/file/machine_file.hpp"
#include "laboratory/output.hpp"
#include "lab/study/explain.hpp"
#include "lab/study/measure.hpp"
#include "lab/study/rows.hpp"

namespace via::cli {
namespace {

namespace study = via::lab::study;

constexpr std::int64_t size_max = 1 << 20;

/// "4", "1K", "64K"; -1 for what is none.
std::int64_t size_of(const std::string& text) {
    std::int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    const bool kilo = end - read.ptr == 1 && (*read.ptr == 'K' || *read.ptr == 'k');
    if (read.ec != std::errc() || (read.ptr != end && !kilo) || number < 0) return -1;
    if (number > size_max) return -1;
    number *= kilo ? 1024 : 1;
    return number <= size_max ? number : -1;
}

CLI::Validator message_size() {
    return {[](std::string& text) {
                return size_of(text) >= 0 ? std::string()
                                          : text + ": want bytes, as 4 or 64K, at most 1024K";
            },
            "SIZE"};
}

void add_trial(CLI::App& command, LabOptions& options) {
    command.add_option("machine", options.machine, "A machine's name, or the path of its file")
        ->required();
    command.add_option("--design", options.design,
                       "Other parts than the machine's: at=3,cache=1024,doorbell=d1,...");
    command.add_option("--vis", options.vis, "Active VIs")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    command.add_option("--queues", options.queues, "Work queues of the completion queue")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    command.add_flag("--json", options.json, "One JSON object a line");
}

std::expected<study::Trial, std::string> trial_of(const LabOptions& options) {
    auto machine = lab::file::load(options.machine);
    if (!machine) return std::unexpected(machine.error());
    study::Trial trial{*machine, machine->design, {options.vis, size_max}, {}};
    const auto added = lab::design::add(trial.design, options.design);
    if (!added) return std::unexpected("--design: " + added.error());
    return trial;
}

int failed(const std::string& why) {
    console::complain("via lab: {}", why);
    return exit_failed;
}

study::Question question_of(const LabOptions& options, const std::string& size) {
    study::Question question;
    question.size = size_of(size);
    question.queues = options.queues;
    question.seed = options.seed;
    return question;
}

std::vector<std::string> sizes_of(const LabOptions& options) {
    if (!options.sizes.empty()) return options.sizes;
    return {"4", "8", "16", "64", "128", "256", "512", "1K", "2K", "4K", "16K", "64K"};
}

int run_measurement(const LabOptions& options) {
    const auto trial = trial_of(options);
    if (!trial) return failed(trial.error());
    LabOutput output(trial->machine.name, options.json, options.parts);
    for (const std::string& size : sizes_of(options)) {
        const study::Question question = question_of(options, size);
        if (options.what == "latency") {
            const auto found = study::latency(*trial, question);
            if (!found) return failed(found.error());
            output.add(question.size, *found);
        } else {
            const auto found = study::bandwidth(*trial, question);
            if (!found) return failed(found.error());
            output.add(question.size, *found);
        }
    }
    fmt::print("{}", output.text());
    return exit_good;
}

int run_explain(const LabOptions& options) {
    const auto trial = trial_of(options);
    if (!trial) return failed(trial.error());
    const auto found = study::explain(*trial, question_of(options, options.sizes.at(0)));
    if (!found) return failed(found.error());
    fmt::print("{}", options.json ? json_of(*found) : text_of(*found));
    return exit_good;
}

int run_reproduce(const LabOptions& options) {
    const auto machine = lab::file::load(options.what);
    if (!machine) return failed(machine.error());
    const auto rows = study::firmvia_rows(*machine);
    if (!rows) return failed(rows.error());
    fmt::print("{}", options.json ? json_of(*rows) : text_of(*rows));
    return study::holds(*rows) ? exit_good : exit_failed;
}

int run_list(const LabOptions& options) {
    for (const auto& built_in : lab::file::built_in()) {
        const auto machine = lab::file::parse(built_in.text, built_in.name);
        if (!machine) return failed(machine.error());
        fmt::print("{}", options.json ? json_of(*machine) : text_of(*machine));
    }
    fmt::print("{}", options.json ? std::string() : text_of_parts());
    return exit_good;
}

}  // namespace

void add_lab(CLI::App& app, LabOptions& options) {
    auto* lab = app.add_subcommand("lab", "Run network interfaces that are models of hardware");
    lab->require_subcommand(1);
    auto* list = lab->add_subcommand("list", "Machines and the parts of designs");
    list->add_flag("--json", options.json, "One JSON object a line");
    auto* run = lab->add_subcommand("run", "Measure latency or bandwidth in virtual time");
    add_trial(*run, options);
    run->add_option("what", options.what, "latency or bandwidth")
        ->required()
        ->check(CLI::IsMember({"latency", "bandwidth"}));
    run->add_option("--sizes", options.sizes, "Bytes of a message, a list: 4,128,1K")
        ->delimiter(',')
        ->check(message_size());
    run->add_option("--seed", options.seed, "Decides at which moments messages find the NICs")
        ->capture_default_str();
    run->add_flag("--parts", options.parts, "latency: where the time went");
    auto* explain = lab->add_subcommand("explain", "One message, event by event");
    add_trial(*explain, options);
    explain->add_option("--size", options.sizes, "Bytes of the message")
        ->required()
        ->expected(1)
        ->check(message_size());
    auto* reproduce = lab->add_subcommand("reproduce",
                                          "A paper's figures beside ours; exit code 1 if one that "
                                          "was reproduced is not any more");
    reproduce->add_option("paper", options.what, "firmvia")
        ->required()
        ->check(CLI::IsMember({"firmvia"}));
    reproduce->add_flag("--json", options.json, "One JSON object a line");
}

int run_lab(const CLI::App& lab, const LabOptions& options) {
    if (lab.got_subcommand("list")) return run_list(options);
    if (lab.got_subcommand("run")) return run_measurement(options);
    if (lab.got_subcommand("explain")) return run_explain(options);
    return run_reproduce(options);
}

}  // namespace via::cli
