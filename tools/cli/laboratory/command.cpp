#include "laboratory/command.hpp"

#include <algorithm>
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
#include "laboratory/options.hpp"
#include "laboratory/output.hpp"
#include "laboratory/pictures.hpp"

namespace via::cli {

namespace study = via::lab::study;

std::int64_t lab_bytes_of(const std::string& text, std::int64_t most) {
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

CLI::Validator lab_bytes(std::int64_t most) {
    return {[most](std::string& text) {
                return lab_bytes_of(text, most) >= 0
                           ? std::string()
                           : fmt::format("{}: want bytes, as 4, 64K or 1M, at most {}", text, most);
            },
            "BYTES"};
}

void add_lab_load(CLI::App& command, LabOptions& options) {
    command.add_option("--vis", options.vis, "Active VIs")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    command.add_option("--registered", options.registered, "Bytes of memory that are registered")
        ->check(lab_bytes(lab_registered_max))
        ->capture_default_str();
    command.add_option("--queues", options.queues, "Work queues of the completion queue")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    command.add_flag("--json", options.json, "One JSON object a line");
}

void add_lab_sizes(CLI::App& command, LabOptions& options) {
    command.add_option("--sizes", options.sizes, "Bytes of a message, a list: 4,128,1K")
        ->delimiter(',')
        ->check(lab_bytes(lab_message_max));
}

void add_lab_folder(CLI::App& command, LabOptions& options) {
    command.add_option("-o,--output", options.folder,
                       "A folder for pictures (SVG) and what they show (TSV)");
}

std::vector<std::string> lab_sizes_of(const LabOptions& options) {
    if (!options.sizes.empty()) return options.sizes;
    return {"4", "8", "16", "64", "128", "256", "512", "1K", "2K", "4K", "16K", "64K"};
}

std::expected<study::Trial, std::string> lab_trial_of(const LabOptions& options,
                                                      const std::string& name,
                                                      const std::string& design) {
    auto machine = lab::file::load(name);
    if (!machine) return std::unexpected(machine.error());
    study::Trial trial{*machine,
                       machine->design,
                       {options.vis, lab_bytes_of(options.registered, lab_registered_max)},
                       {}};
    const auto added = lab::design::add(trial.design, design);
    if (!added) return std::unexpected(added.error());
    return trial;
}

int lab_failed(const std::string& why) {
    console::complain("via lab: {}", why);
    return exit_failed;
}

study::Question lab_question_of(const LabOptions& options) {
    study::Question question;
    question.queues = options.queues;
    question.seed = options.seed;
    return question;
}

namespace {

void add_trial(CLI::App& command, LabOptions& options) {
    command.add_option("machine", options.machine, "A machine's name, or the path of its file")
        ->required();
    command.add_option("--design", options.design,
                       "Other parts than the machine's: at=3,cache=1024,doorbell=d1,...");
    add_lab_load(command, options);
    add_lab_folder(command, options);
}

std::expected<study::Trial, std::string> trial_of(const LabOptions& options) {
    return lab_trial_of(options, options.machine, options.design);
}

int failed(const std::string& why) { return lab_failed(why); }

study::Question question_of(const LabOptions& options, const std::string& size) {
    study::Question question = lab_question_of(options);
    question.size = lab_bytes_of(size, lab_message_max);
    return question;
}

/// What the design takes of the NIC's memory; nothing where NICs keep nothing.
std::expected<std::string, std::string> memory_of(const study::Trial& trial) {
    if (!trial.machine.has(lab::Has::adapter)) return std::string();
    const auto made = lab::design::make(trial.machine, study::adapter_words(trial), trial.load);
    if (!made) return std::unexpected(made.error());
    return text_of(*made, trial);
}

std::vector<std::int64_t> numbers_of(const LabOptions& options) {
    std::vector<std::int64_t> sizes;
    for (const std::string& size : lab_sizes_of(options))
        sizes.push_back(lab_bytes_of(size, lab_message_max));
    return sizes;
}

/// Into the folder, if one is asked for.
int drawn(const LabOptions& options, const auto& draw_into) {
    if (options.folder.empty()) return exit_good;
    Pictures pictures(options.folder);
    auto done = pictures.begin();
    if (done) done = draw_into(pictures);
    return done ? exit_good : failed(done.error());
}

int run_measurement(const LabOptions& options) {
    const auto trial = trial_of(options);
    if (!trial) return failed(trial.error());
    const auto memory = memory_of(*trial);
    if (!memory) return failed(memory.error());
    LabOutput output(trial->machine.name, options.json, options.parts);
    for (const std::string& size : lab_sizes_of(options)) {
        study::Question question = question_of(options, size);
        question.rdma = options.what == "rdma";
        if (options.what != "bandwidth") {
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
    if (!options.json) fmt::print("{}", *memory);
    return drawn(options, [&](Pictures& pictures) {
        study::Question question = lab_question_of(options);
        question.rdma = options.what == "rdma";
        return draw_machine(pictures, *trial, question, options.what != "bandwidth",
                            numbers_of(options), "");
    });
}

int run_explain(const LabOptions& options) {
    const auto trial = trial_of(options);
    if (!trial) return failed(trial.error());
    const auto found = study::explain(*trial, question_of(options, options.sizes.at(0)));
    if (!found) return failed(found.error());
    fmt::print("{}", options.json ? json_of(*found) : text_of(*found));
    return drawn(options, [&](Pictures& pictures) {
        return pictures.timeline(
            "timeline", fmt::format("{}: one message of {} B", trial->machine.name, found->size),
            *found);
    });
}

/// The rows as text, and the machine's curves.
Pictures::Done draw_study(Pictures& pictures, const lab::Machine& machine,
                          const std::vector<study::Row>& rows) {
    const study::Trial trial{machine, machine.design, {1, 1 << 20}, {}};
    const std::string prefix = machine.name + "-";
    const std::vector<std::int64_t> sizes = {4,   16,   64,   128,  192,  256,   512,
                                             864, 1024, 2048, 4096, 8192, 16384, 65536};
    if (auto kept = pictures.text(prefix + "rows.txt", text_of(machine, rows)); !kept) return kept;
    for (const bool of_latency : {true, false}) {
        auto done = draw_machine(pictures, trial, study::Question{}, of_latency, sizes, prefix);
        if (!done) return done;
    }
    const auto found = study::explain(trial, study::Question{});
    if (!found) return std::unexpected(found.error());
    return pictures.timeline(prefix + "timeline", machine.name + ": one message of 4 B", *found);
}

int run_reproduce(const LabOptions& options) {
    if (!options.traces.empty()) return run_lab_trace_rows(options);
    bool holds = true;
    const auto of_paper = [&](const study::Study& one) { return options.what == one.name; };
    if (!options.machine.empty() && std::ranges::count_if(study::studies(), of_paper) != 1) {
        console::complain("via lab: --machine: {} has figures of several machines", options.what);
        return exit_usage;
    }
    for (const study::Study& one : study::studies()) {
        if (options.what != one.name && options.what != "all") continue;
        const auto machine =
            lab::file::load(options.machine.empty() ? std::string(one.machine) : options.machine);
        if (!machine) return failed(machine.error());
        const auto rows = one.rows(*machine, {});
        if (!rows) return failed(rows.error());
        fmt::print("{}", options.json ? json_of(*machine, *rows) : text_of(*machine, *rows));
        holds = holds && study::holds(*rows);
        const int code = drawn(
            options, [&](Pictures& pictures) { return draw_study(pictures, *machine, *rows); });
        if (code != exit_good) return code;
    }
    return holds ? exit_good : exit_failed;
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
    auto* run = lab->add_subcommand("run", "Measure latency, RDMA or bandwidth in virtual time");
    add_trial(*run, options);
    run->add_option("what", options.what, "latency, rdma (a write, one way) or bandwidth")
        ->required()
        ->check(CLI::IsMember({"latency", "rdma", "bandwidth"}));
    add_lab_sizes(*run, options);
    run->add_option("--seed", options.seed, "Decides at which moments messages find the NICs")
        ->capture_default_str();
    run->add_flag("--parts", options.parts, "latency and rdma: where the time went");
    auto* exec = lab->add_subcommand(
        "exec", "Run programs, as they are, as hosts of a cluster of such interfaces");
    add_trial(*exec, options);
    exec->add_option("--seed", options.seed, "Decides at which moments messages find the NICs")
        ->capture_default_str();
    exec->add_option("--patience", options.patience_s,
                     "Seconds of real time that a program may spend outside of VIPL; virtual time "
                     "stands still meanwhile, and after that all are ended")
        ->check(CLI::Range(1, 86'400))
        ->capture_default_str();
    exec->add_option("program", options.program,
                     "Behind --: a program and its arguments; more of them behind a colon each. "
                     "They find each other as over shm")
        ->required();
    auto* explain = lab->add_subcommand("explain", "One message, event by event");
    add_trial(*explain, options);
    explain->add_option("--size", options.sizes, "Bytes of the message")
        ->required()
        ->expected(1)
        ->check(lab_bytes(lab_message_max));
    auto* reproduce = lab->add_subcommand("reproduce",
                                          "A paper's figures beside ours; exit code 1 if one that "
                                          "was reproduced is not any more");
    std::vector<std::string> papers = {"all"};
    for (const study::Study& one : study::studies())
        if (papers.back() != one.name) papers.emplace_back(one.name);
    reproduce->add_option("paper", options.what, "Whose figures")
        ->required()
        ->check(CLI::IsMember(papers));
    reproduce->add_option("--machine", options.machine,
                          "Another machine in the place of the paper's: a name, or a file's path");
    reproduce
        ->add_option("--trace", options.traces,
                     "Instead the figures that programs decide, of files of via lab record: "
                     "firmvia's 2 to 5, and what handles says of table III")
        ->allow_extra_args(false);
    add_lab_caches(*reproduce, options);
    reproduce->add_flag("--json", options.json, "One JSON object a line");
    add_lab_folder(*reproduce, options);
    add_lab_without(*lab, options);
    add_lab_compare(*lab, options);
    add_lab_ask(*lab, options);
    add_lab_traces(*lab, options);
    add_lab_sweep(*lab, options);
    add_lab_measure(*lab, options);
}

int run_lab(const CLI::App& lab, const LabOptions& options) {
    if (lab.got_subcommand("list")) return run_list(options);
    if (lab.got_subcommand("run")) return run_measurement(options);
    if (lab.got_subcommand("exec")) {
        const auto trial = trial_of(options);
        return trial ? run_lab_exec(*trial, options) : failed(trial.error());
    }
    if (lab.got_subcommand("explain")) return run_explain(options);
    if (lab.got_subcommand("record")) return run_lab_record(options);
    if (lab.got_subcommand("measure")) return run_lab_measure(options);
    if (lab.got_subcommand("sweep")) return run_lab_sweep(options);
    if (lab.got_subcommand("replay")) return run_lab_replay(options);
    if (lab.got_subcommand("ask")) return run_lab_ask(options);
    if (lab.got_subcommand("without")) return run_lab_without(options);
    if (lab.got_subcommand("compare")) return run_lab_compare(options);
    return run_reproduce(options);
}

}  // namespace via::cli
