// `via lab record`: what a real run asks of VIA; `via lab replay`: the same through a design.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <filesystem>

#include "commands.hpp"
#include "json.hpp"
#include "lab/file/machine_file.hpp"
#include "lab/file/text.hpp"
#include "lab/study/replay.hpp"
#include "lab/study/sweep.hpp"
#include "lab/study/trace_rows.hpp"
#include "laboratory/options.hpp"
#include "laboratory/output.hpp"
#include "laboratory/pictures.hpp"
#include "laboratory/recording.hpp"
#include "laboratory/trace_file.hpp"

namespace via::cli {
namespace {

namespace fs = std::filesystem;
namespace study = via::lab::study;

/// Beside this program, in the tree or where it is installed.
fs::path recorder() {
    std::error_code error;
    const fs::path ours = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
    const fs::path in_tree = ours / "lib/libvia-record.so";
    if (fs::exists(in_tree, error)) return in_tree;
    return ours / VIA_RECORDER_FOLDER "/libvia-record.so";
}

/// A folder that goes with this.
class Scratch {
public:
    Scratch() {
        std::string name = (fs::temp_directory_path() / "via-record-XXXXXX").string();
        if (::mkdtemp(name.data()) != nullptr) path_ = name;
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove_all(path_, ignored);
    }
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

/// Its exit code, as a shell has it.
int run_recorded(const std::vector<std::string>& command, const fs::path& library,
                 const fs::path& folder, bool no_segments) {
    const pid_t child = ::fork();
    if (child < 0) return -1;
    if (child == 0) {
        const char* before = std::getenv("LD_PRELOAD");
        const std::string all =
            library.string() + (before != nullptr ? ":" : "") + (before != nullptr ? before : "");
        ::setenv("LD_PRELOAD", all.c_str(), 1);
        ::setenv("VIA_RECORD", folder.c_str(), 1);
        if (no_segments) ::setenv("VIA_RECORD_SEGMENTS", "refused", 1);
        std::vector<char*> words;
        for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        ::execvp(words[0], words.data());
        fmt::print(stderr, "via lab record: {}: {}\n", command[0], std::strerror(errno));
        ::_exit(127);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// In the order of their process numbers.
std::expected<std::vector<std::string>, std::string> texts_in(const fs::path& folder) {
    std::vector<std::pair<long, fs::path>> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
        files.emplace_back(std::strtol(entry.path().stem().c_str(), nullptr, 10), entry.path());
    if (error)
        return std::unexpected(fmt::format("cannot read {}: {}", folder.string(), error.message()));
    std::ranges::sort(files);
    std::vector<std::string> texts;
    for (const auto& [number, path] : files) {
        auto text = lab::file::read_text(path.string());
        if (!text)
            return std::unexpected(fmt::format("cannot read {}: {}", path.string(), text.error()));
        // A process that did nothing with VIA is none of the recording's.
        if (!text->empty()) texts.push_back(std::move(*text));
    }
    return texts;
}

/// Of what the programs did, nothing if the trace has all of it.
std::string what_is_missing(const Recording& recording) {
    std::string text;
    if (recording.alone != 0)
        text += fmt::format("{} posts left out: the other end was not recorded\n", recording.alone);
    if (recording.imports != 0)
        text += fmt::format(
            "{} imports of segments: what was stored into these is not in the trace "
            "(--no-segments: it is posted)\n",
            recording.imports);
    if (recording.all_memory != 0)
        text += fmt::format("{} registrations of all memory are not in the trace\n",
                            recording.all_memory);
    return text;
}

std::string json_of(const lab::Machine& machine, const study::Replayed& found) {
    JsonLine line("via-lab-replay-1");
    line.text("machine", machine.name);
    line.number("messages", static_cast<std::int64_t>(found.messages));
    line.number("bytes", static_cast<std::int64_t>(found.bytes));
    line.number("within_hosts", static_cast<std::int64_t>(found.within_hosts));
    line.number("ns", found.time.ns);
    line.number("translations", static_cast<std::int64_t>(found.translations()));
    line.number("misses", static_cast<std::int64_t>(found.misses()));
    line.number("cold_misses", static_cast<std::int64_t>(found.cold_misses()));
    line.number("send_misses", static_cast<std::int64_t>(found.send_misses()));
    line.text("busiest", found.busiest);
    line.number("last_pass_ns", found.passes.back().time.ns);
    line.number("last_pass_misses", static_cast<std::int64_t>(found.passes.back().misses));
    return line.line();
}

std::string text_of(const study::Replayed& found) {
    const auto part = [](std::uint64_t of, std::uint64_t all) {
        return all == 0 ? 0 : 100 * static_cast<double>(of) / static_cast<double>(all);
    };
    std::string text = fmt::format(
        "{} messages, {} bytes, {} of them within hosts; {} registrations\n"
        "{:.3f} ms of virtual time, one message after the other; busiest: {}\n"
        "{} translations, {} misses ({:.2f} %), of these {} cold, {} of sends\n",
        found.messages, found.bytes, found.within_hosts, found.registrations,
        static_cast<double>(found.time.ns) / 1e6, found.busiest, found.translations(),
        found.misses(), part(found.misses(), found.translations()), found.cold_misses(),
        found.send_misses());
    for (std::size_t n = 0; found.passes.size() > 1 && n < found.passes.size(); ++n) {
        const study::Pass& pass = found.passes[n];
        text +=
            fmt::format("pass {}: {:.3f} ms, {} translations, {} misses\n", n + 1,
                        static_cast<double>(pass.time.ns) / 1e6, pass.translations, pass.misses);
    }
    Table table;
    table.add({"host", "translations", "misses", "cold", "sent again", "pinned pages"});
    for (std::size_t n = 0; n < found.hosts.size(); ++n) {
        const lab::AdapterCounts& counts = found.hosts[n];
        table.add({std::to_string(n), std::to_string(counts.translations),
                   std::to_string(counts.misses), std::to_string(counts.cold_misses),
                   std::to_string(counts.retransmissions), std::to_string(counts.pinned)});
    }
    return text + table.text();
}

/// A row for each shape, a column for each trace.
Heat missed_by(const std::vector<study::CacheShape>& shapes, const std::vector<std::string>& paths,
               const std::vector<study::Trace>& traces, std::uint32_t per_host) {
    Heat heat{"misses, %", {}, {}, {}};
    for (const std::string& path : paths) heat.columns.push_back(fs::path(path).stem().string());
    for (const study::CacheShape& shape : shapes) {
        heat.rows.push_back(fmt::format("C{} L{} A{}", shape.entries, shape.line, shape.ways));
        std::vector<double>& row = heat.values.emplace_back();
        for (const study::Trace& trace : traces)
            row.push_back(study::missed(trace, shape, per_host).percent());
    }
    return heat;
}

std::vector<std::vector<std::string>> cells_of(const Heat& heat) {
    std::vector<std::vector<std::string>> rows = {{heat.corner}};
    rows[0].insert(rows[0].end(), heat.columns.begin(), heat.columns.end());
    for (std::size_t n = 0; n < heat.rows.size(); ++n) {
        std::vector<std::string>& row = rows.emplace_back();
        row.push_back(heat.rows[n]);
        for (const double value : heat.values[n]) row.push_back(fmt::format("{:.2f}", value));
    }
    return rows;
}

std::string text_of(const Heat& heat) {
    Table table;
    for (auto& row : cells_of(heat)) table.add(std::move(row));
    return table.text();
}

std::string columns_of(const Heat& heat) {
    std::string text;
    for (const auto& row : cells_of(heat)) text += fmt::format("{}\n", fmt::join(row, "\t"));
    return text;
}

}  // namespace

void add_lab_traces(CLI::App& lab, LabOptions& options) {
    auto* record = lab.add_subcommand(
        "record", "Write down what programs ask of VIA on any device, without payload");
    record->add_option("-o,--output", options.trace, "The trace's file")->required();
    record->add_flag("--no-segments", options.no_segments,
                     "Nobody imports a segment, as over a network: what would be stored is posted");
    record->add_option("command", options.program, "Behind --: the command")->required();
    auto* replay = lab.add_subcommand("replay", "A trace's messages through a machine's design");
    replay->add_option("trace", options.trace, "A file of via lab record")->required();
    replay->add_option("machine", options.machine, "A machine's name, or the path of its file")
        ->required();
    replay->add_option("--design", options.design,
                       "Other parts than the machine's: at=dynamic,cache=16384,line=64,ways=4,...");
    replay->add_option("--per-host", options.per_host, "Processes that share a host and its NIC")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    replay
        ->add_option("--passes", options.passes,
                     "How often over the trace; later ones are by caches that have seen it")
        ->check(CLI::Range(1, 100))
        ->capture_default_str();
    replay->add_option("--seed", options.seed, "Decides when a kernel lets its threads run")
        ->capture_default_str();
    replay->add_flag("--json", options.json, "One JSON object");
}

void add_lab_caches(CLI::App& command, LabOptions& options) {
    command.add_option("--per-host", options.per_host, "Processes that share a host and its NIC")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    command.add_option("--divide", options.divide, "Caches have so many times fewer entries")
        ->check(CLI::IsMember({1, 2, 4, 8, 16, 32, 64}))
        ->capture_default_str();
    command.add_option("--divide-lines", options.divide_lines, "Lines have so many times fewer")
        ->check(CLI::IsMember({1, 2, 4, 8}))
        ->capture_default_str();
}

void add_lab_sweep(CLI::App& lab, LabOptions& options) {
    auto* sweep = lab.add_subcommand(
        "sweep", "What traces miss in caches of handles of 36 shapes, as table III of paper 001");
    sweep->add_option("traces", options.program, "Files of via lab record")->required();
    add_lab_caches(*sweep, options);
    add_lab_folder(*sweep, options);
}

int run_lab_trace_rows(const LabOptions& options) {
    const auto of_paper = [&](const study::Study& one) { return options.what == one.name; };
    const auto paper = std::ranges::find_if(study::studies(), of_paper);
    if (paper == study::studies().end())
        return lab_failed("--trace: all papers' figures are not of traces");
    std::vector<study::NamedTrace> traces;
    for (const std::string& path : options.traces) {
        auto trace = load_trace(path);
        if (!trace) return lab_failed(trace.error());
        traces.push_back({fs::path(path).stem().string(), std::move(*trace)});
    }
    const auto machine =
        lab::file::load(options.machine.empty() ? std::string(paper->machine) : options.machine);
    if (!machine) return lab_failed(machine.error());
    const auto rows = study::trace_rows(
        options.what, traces,
        {static_cast<std::uint32_t>(options.per_host), options.divide, options.divide_lines},
        *machine);
    if (!rows) return lab_failed(rows.error());
    fmt::print("{}", options.json ? json_of(*machine, *rows) : text_of(*machine, *rows));
    return exit_good;
}

int run_lab_sweep(const LabOptions& options) {
    std::vector<study::Trace> traces;
    for (const std::string& path : options.program) {
        auto trace = load_trace(path);
        if (!trace) return lab_failed(trace.error());
        traces.push_back(std::move(*trace));
    }
    const Heat heat =
        missed_by(study::table_of_shapes(options.divide, options.divide_lines), options.program,
                  traces, static_cast<std::uint32_t>(options.per_host));
    fmt::print("{}", text_of(heat));
    Pictures pictures(options.folder);
    auto done = pictures.begin();
    if (done) done = pictures.text("sweep.svg", heat_svg("Look-ups that miss, by the cache", heat));
    if (done) done = pictures.text("sweep.tsv", columns_of(heat));
    return done ? exit_good : lab_failed(done.error());
}

int run_lab_record(const LabOptions& options) {
    const fs::path library = recorder();
    std::error_code error;
    if (!fs::exists(library, error)) return lab_failed("there is no " + library.string());
    const Scratch scratch;
    if (scratch.path().empty()) return lab_failed("cannot make a folder for the recording");
    const int code = run_recorded(options.program, library, scratch.path(), options.no_segments);
    const auto texts = texts_in(scratch.path());
    if (!texts) return lab_failed(texts.error());
    const auto recording = recording_of(*texts);
    if (!recording) return lab_failed(recording.error());
    const study::Trace& trace = recording->trace;
    if (trace.processes == 0) return lab_failed("nothing was asked of VIA");
    const auto saved = save_trace(options.trace, trace);
    if (!saved) return lab_failed(saved.error());
    fmt::print("{}: {} processes, {} connections, {} events, {} bytes\n", options.trace,
               trace.processes, trace.connections.size(), trace.events.size(), *saved);
    fmt::print("{}", what_is_missing(*recording));
    if (code != 0) return lab_failed(fmt::format("{} ended with {}", options.program[0], code));
    return exit_good;
}

int run_lab_replay(const LabOptions& options) {
    const auto trial = lab_trial_of(options, options.machine, options.design);
    if (!trial) return lab_failed(trial.error());
    const auto trace = load_trace(options.trace);
    if (!trace) return lab_failed(trace.error());
    study::ReplayQuestion question;
    question.per_host = static_cast<std::uint32_t>(options.per_host);
    question.seed = options.seed;
    question.passes = options.passes;
    const auto found = study::replay(*trial, *trace, question);
    if (!found) return lab_failed(found.error());
    fmt::print("{}", options.json ? json_of(trial->machine, *found) : text_of(*found));
    return exit_good;
}

}  // namespace via::cli
