#include "laboratory/command.hpp"

#include <charconv>
#include <string_view>

#include "commands.hpp"
#include "console/output.hpp"
#include "json.hpp"
#include "lab/design/list.hpp"
#include "lab/file/machine_file.hpp"
#include "lab/study/explain.hpp"
#include "lab/study/measure.hpp"
#include "lab/study/rows.hpp"
#include "laboratory/output.hpp"

namespace via::cli {
namespace {

namespace study = via::lab::study;

constexpr std::int64_t message_max = 1 << 20;
constexpr std::int64_t registered_max = std::int64_t{1} << 40;

/// "4", "1K", "64M", "1G"; -1 for what is none, or more than `most`.
std::int64_t bytes_of(const std::string& text, std::int64_t most) {
    std::int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    const std::string_view unit(read.ptr, static_cast<std::size_t>(end - read.ptr));
    const std::size_t power = unit.empty() ? 0 : std::string_view("KMG").find(unit) + 1;
    const bool known = unit.empty() || (unit.size() == 1 && power != 0);
    if (read.ec != std::errc() || !known || number < 0 || number > most) return -1;
    for (std::size_t n = 0; n < power && number <= most; ++n) number *= 1024;
    return number <= most ? number : -1;
}

CLI::Validator bytes(std::int64_t most) {
    return {[most](std::string& text) {
                return bytes_of(text, most) >= 0
                           ? std::string()
                           : fmt::format("{}: want bytes, as 4, 64K or 1M, at most {}", text, most);
            },
            "BYTES"};
}

void add_trial(CLI::App& command, LabOptions& options) {
    command.add_option("machine", options.machine, "A machine's name, or the path of its file")
        ->required();
    command.add_option("--design", options.design,
                       "Other parts than the machine's: at=3,cache=1024,doorbell=d1,...");
    command.add_option("--vis", options.vis, "Active VIs")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    command.add_option("--registered", options.registered, "Bytes of memory that are registered")
        ->check(bytes(registered_max))
        ->capture_default_str();
    command.add_option("--queues", options.queues, "Work queues of the completion queue")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    command.add_flag("--json", options.json, "One JSON object a line");
}

std::expected<study::Trial, std::string> trial_of(const LabOptions& options) {
    auto machine = lab::file::load(options.machine);
    if (!machine) return std::unexpected(machine.error());
    study::Trial trial{
        *machine, machine->design, {options.vis, bytes_of(options.registered, registered_max)}, {}};
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
    question.size = bytes_of(size, message_max);
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
    const auto design = lab::design::make(trial->machine, trial->design, trial->load);
    if (!design) return failed(design.error());
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
    if (!options.json) fmt::print("{}", text_of(*design, *trial));
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
        ->check(bytes(message_max));
    run->add_option("--seed", options.seed, "Decides at which moments messages find the NICs")
        ->capture_default_str();
    run->add_flag("--parts", options.parts, "latency: where the time went");
    auto* explain = lab->add_subcommand("explain", "One message, event by event");
    add_trial(*explain, options);
    explain->add_option("--size", options.sizes, "Bytes of the message")
        ->required()
        ->expected(1)
        ->check(bytes(message_max));
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
